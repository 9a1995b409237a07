// From options, allocation and host facts to the plan of one node. Pure: no host is asked and no
// file is read. The meeting, tasks and output have tests of their own.
#include "launcher/plan/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/plan/check_plan.h"
#include "rendezvous/model/durations.h"

namespace ddprun::launcher {
namespace {

using slurm::Allocation;
using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Step 8812.0 of so many nodes, seen from the first one.
Allocation step(int nodes) {
    Allocation a;
    a.cluster = "lab", a.job_id = "8812", a.step_id = "0";
    for (int i = 1; i <= nodes; ++i) a.nodes.push_back("n" + std::to_string(i));
    a.node_name = "n1";
    a.submit_directory = "/submit";
    return a;
}

HostFacts plan_host(int cpus, int gpus) {
    HostFacts facts;
    facts.hostname = "me";
    facts.cpus = cpus;
    facts.gpus.resize(static_cast<std::size_t>(gpus));
    facts.working_directory = "/home/u";
    facts.random_id = "random";
    return facts;
}

// Adds ./train where the words name no program. By default the host has 8 CPUs and no GPU.
Result<Plan> plan(std::vector<std::string> words, std::optional<Allocation> allocation = {},
                  HostFacts facts = plan_host(8, 0)) {
    bool has_program =
        std::ranges::any_of(words, [](const std::string& word) { return !word.starts_with('-'); });
    if (!has_program) words.push_back("./train");
    return make_plan(parse_options(words, {}).value(), allocation, facts);
}

// PyTorch's flight recorders: a server in each worker only if asked for; NCCL's pipe and the port
// of its RAS not for torchrun.
TEST(Plan, FlightRecorders) {
    EXPECT_EQ(plan({})->recorders, (agent::RecorderOptions{false, true, true}));
    auto torchrun = plan_host(8, 0);
    torchrun.called_as_torchrun = true;
    EXPECT_EQ(plan({"--flight-recorder"}, {}, torchrun)->recorders,
              (agent::RecorderOptions{true, false, false}));
    const Options options = parse_options({"--flight-recorder", "--check"}, {}).value();
    Plan check = plan({"--flight-recorder", "--check"}).value();
    make_check_plan(check, options, "ddprun", {});
    EXPECT_EQ(check.recorders, agent::RecorderOptions{});
}

// Trainers of frameworks obey a stop where that is asked for, and not by the name torchrun.
TEST(Plan, FrameworkStop) {
    EXPECT_FALSE(plan({})->workers.framework_stop);
    EXPECT_FALSE(plan({"--framework-stop=off"})->workers.framework_stop);
    EXPECT_TRUE(plan({"--framework-stop=auto"})->workers.framework_stop);
    auto torchrun = plan_host(8, 0);
    torchrun.called_as_torchrun = true;
    EXPECT_FALSE(plan({"--framework-stop=auto"}, {}, torchrun)->workers.framework_stop);
    const Options options = parse_options({"--framework-stop=auto", "--check"}, {}).value();
    Plan check = plan({"--framework-stop=auto", "--check"}).value();
    make_check_plan(check, options, "ddprun", {});
    EXPECT_FALSE(check.workers.framework_stop);
}

TEST(Plan, SetAsideTorn) {
    EXPECT_EQ(plan({})->workers.set_aside_torn, "");
    EXPECT_EQ(plan({"--framework-stop=auto"})->workers.set_aside_torn, "");
    EXPECT_EQ(plan({"--set-aside-torn"})->workers.set_aside_torn, "/home/u");
    const Options options = parse_options({"--set-aside-torn", "--check"}, {}).value();
    Plan check = plan({"--set-aside-torn", "--check"}).value();
    make_check_plan(check, options, "ddprun", {});
    EXPECT_EQ(check.workers.set_aside_torn, "") << "its workers load no checkpoint";
}

// One worker for each GPU. What is visible comes from CUDA_VISIBLE_DEVICES, then from the step,
// then from the host. A link named torchrun brings torchrun's default of 1.
TEST(Plan, SlotsWithoutAnOption) {
    EXPECT_EQ(plan({})->slots, 1);
    EXPECT_THAT(plan({})->notes, Contains(HasSubstr("no GPU found: one worker")));
    EXPECT_EQ(plan({}, {}, plan_host(8, 4))->slots, 4);
    auto torchrun = plan_host(8, 4);
    torchrun.called_as_torchrun = true;
    EXPECT_EQ(plan({}, {}, torchrun)->slots, 1);

    auto listed = plan_host(8, 4);
    // CUDA stops reading the list at the first device that does not exist.
    for (auto [list, slots] : {std::pair{"3,2", 2},
                               {"", 1},
                               {"0,-1,2", 1},
                               {"GPU-a,MIG-b,GPU-c", 3},
                               {"NoDevFiles", 1}}) {
        listed.cuda_visible_devices = list;
        EXPECT_EQ(plan({}, {}, listed)->slots, slots) << list;
    }
    auto allocation = step(1);
    // The cluster shows its GPUs to everybody, so somebody else's job may run on them.
    EXPECT_THAT(plan({}, allocation, plan_host(8, 4))->host_warnings,
                ElementsAre(HasSubstr("Slurm gave this step no GPU")));
    EXPECT_THAT(plan({"--nproc-per-node=4"}, allocation, plan_host(8, 4))->host_warnings,
                IsEmpty());
    allocation.gpus_on_node = 2;
    EXPECT_EQ(plan({}, allocation, plan_host(8, 4))->slots, 2);
    EXPECT_EQ(plan({}, allocation, plan_host(8, 0))->slots, 2);
    allocation.visible_devices = "0";
    EXPECT_EQ(plan({}, allocation, plan_host(8, 4))->slots, 1);
}

// "gpu" on a host without one is an error: a job that the user takes for a GPU job would train on
// CPUs.
TEST(Plan, SlotsAsAsked) {
    EXPECT_EQ(plan({"--nproc-per-node=3"})->slots, 3);
    EXPECT_EQ(plan({"--nproc-per-node=cpu"})->slots, 8);
    EXPECT_EQ(plan({"--nproc-per-node=auto"})->slots, 8);
    EXPECT_EQ(plan({"--nproc-per-node=auto"}, {}, plan_host(8, 2))->slots, 2);
    EXPECT_EQ(plan({"--nproc-per-node=gpu"}).error().sentence(),
              "--nproc-per-node=gpu: no GPU is visible on me; see nvidia-smi -L and "
              "CUDA_VISIBLE_DEVICES, or give a count or cpu");
}

// Where Slurm has dealt GPUs, their number is certain, and two ranks of NCCL cannot share one: an
// error before the start beats a crash after it. Otherwise sharing may be meant, and is a warning.
TEST(Plan, MoreWorkersThanGpus) {
    auto allocation = step(1);
    allocation.visible_devices = "0";
    EXPECT_THAT(
        plan({"--nproc-per-node=4"}, allocation)->host_warnings,
        ElementsAre("4 workers, but 1 GPU is visible on n1; some workers will share a GPU"));
    allocation.gpus_on_node = 1;
    EXPECT_EQ(plan({"--nproc-per-node=4"}, allocation).error().sentence(),
              "--nproc-per-node=4: Slurm gave 1 GPU to this task on n1; use --gpus-per-node=4 (if "
              "workers need no GPU: srun env CUDA_VISIBLE_DEVICES= ddprun …)");
    allocation.gpus_per_task = 1;
    EXPECT_EQ(plan({"--nproc-per-node=4"}, allocation).error().sentence(),
              "--nproc-per-node=4: Slurm gave 1 GPU to this task on n1; use --gpus-per-node=4 "
              "rather than --gpus-per-task (if workers need no GPU: srun env CUDA_VISIBLE_DEVICES= "
              "ddprun …)");
    EXPECT_TRUE(plan({"--nproc-per-node=cpu"}, allocation)) << "they are said to use CPUs";
    allocation.visible_devices = "";
    EXPECT_TRUE(plan({"--nproc-per-node=4"}, allocation));
}

// Each worker would start a thread for every CPU. So the node's CPUs are shared out, unless the
// user has set OMP_NUM_THREADS.
TEST(Plan, Threads) {
    EXPECT_EQ(plan({"--nproc-per-node=3"})->workers.omp_num_threads, 2);
    EXPECT_EQ(plan({"--nproc-per-node=16"})->workers.omp_num_threads, 1);
    auto facts = plan_host(8, 0);
    facts.omp_num_threads_set = true;
    EXPECT_EQ(plan({}, {}, facts)->workers.omp_num_threads, std::nullopt);
}

// With a ledger in a shared folder the job survives the loss of its leader. Within a step of
// several nodes it lies where the job works. Elsewhere it is in memory, and a warning says so
// unless memory was chosen.
TEST(Plan, LedgerOfAJob) {
    using LedgerKind = rendezvous::LedgerPlace::Kind;
    auto several = plan({}, step(2));
    EXPECT_EQ(several->ledger.place.kind, LedgerKind::directory);
    EXPECT_EQ(several->ledger.place.path, "/home/u/.ddprun/lab.8812.0");
    EXPECT_FALSE(several->ledger.chosen);
    EXPECT_THAT(several->warnings, IsEmpty());
    // One node has nobody to take over. Only a batch job comes again, and must not train beside
    // itself.
    EXPECT_EQ(plan({}, step(1))->ledger.place.kind, LedgerKind::memory);
    slurm::Allocation batch = step(1);
    batch.batch_job = true;
    EXPECT_EQ(plan({}, batch)->ledger.place.path, "/home/u/.ddprun/lab.8812.0");
    EXPECT_EQ(plan({"--check"}, batch)->ledger.place.kind, LedgerKind::memory);
    EXPECT_EQ(plan({"--ledger=memory"}, batch)->ledger.place.kind, LedgerKind::memory);
    EXPECT_THAT(plan({"--ledger=memory"}, step(2))->warnings, IsEmpty());
    const std::string long_id = "--rdzv-id=" + std::string(201, 'a');
    EXPECT_THAT(
        plan({"--ledger=/l", "--nnodes=2", "--rdzv-endpoint=h", long_id}).error().sentence(),
        HasSubstr("201 characters"));
    // A run id may hold any character. It must not lead out of the ledger's folder.
    auto elsewhere = plan({"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-id=../a b"});
    EXPECT_THAT(elsewhere->warnings,
                ElementsAre(HasSubstr("the loss of the leader's node will end the job")));
    EXPECT_EQ(
        plan({"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-id=../a b", "--ledger=directory:/l/"})
            ->ledger.place.path,
        "/l/%2E.%2Fa%20b");
    // Steps of one node that meet elsewhere: the user's id may begin like the job's.
    const std::vector<std::string> meets{"--nnodes=2", "--rdzv-endpoint=h", "--ledger=/l"};
    const auto place_of_ledger = [&meets](std::vector<std::string> words) {
        words.insert(words.end(), meets.begin(), meets.end());
        return plan(words, step(1))->ledger.place.path;
    };
    EXPECT_EQ(place_of_ledger({}), "/l/lab.8812");
    EXPECT_EQ(place_of_ledger({"--rdzv-id=lab.88129"}), "/l/lab.8812.lab.88129");
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-id=r", "--ledger=etcd:h:1"})
                  ->ledger.place.path,
              "ddprun/r");
}

// Files for TLS must not be given in vain, and a password that travels openly is said.
TEST(Plan, FilesForEtcd) {
    const auto etcd = [](std::vector<std::string> words) {
        words.insert(words.end(), {"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-id=r"});
        return plan(words);
    };
    const auto tls = etcd({"--ledger=etcds:h:1", "--etcd-user-file=u", "--etcd-cacert=a",
                           "--etcd-cert=c", "--etcd-key=k"});
    ASSERT_TRUE(tls) << tls.error();
    EXPECT_EQ(tls->ledger.etcd, (rendezvous::EtcdFiles{"u", "a", "c", "k"}));
    EXPECT_THAT(tls->warnings, IsEmpty());
    EXPECT_THAT(etcd({"--ledger=etcd:h:1", "--etcd-user-file=u"})->warnings,
                ElementsAre(HasSubstr("goes over the network as plain text")));
    EXPECT_THAT(etcd({"--ledger=/l", "--etcd-user-file=u"})->warnings,
                ElementsAre(HasSubstr("the ledger is not in etcd")));
    EXPECT_THAT(etcd({"--ledger=etcd:h:1", "--etcd-cacert=a"}).error().sentence(),
                HasSubstr("etcds, not etcd"));
    EXPECT_THAT(etcd({"--ledger=etcds:h:1", "--etcd-cert=a"}).error().sentence(),
                HasSubstr("give both"));
}

// Under Slurm several nodes need a secret, since any user of the cluster may reach their ports.
// Elsewhere a job without one starts with a warning, as with torchrun. A secret that is not to be
// used is a contradiction, not a preference.
TEST(Plan, IdentityOfAJob) {
    using rendezvous::IdentityMode;
    EXPECT_EQ(plan({}, step(2))->identity.mode, IdentityMode::require);
    EXPECT_EQ(plan({"--identity=none"}, step(2))->identity.mode, IdentityMode::none);
    EXPECT_EQ(plan({}, step(1))->identity.mode, IdentityMode::automatic);
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-endpoint=h"})->identity.mode, IdentityMode::automatic);
    EXPECT_EQ(plan({"--secret-file=/s"}, step(2))->identity.secret_file, "/s");
    EXPECT_THAT(plan({"--secret-file=/s", "--identity=none"}, step(2)).error().sentence(),
                HasSubstr("leave one of them out"));
}

// Defaults, torchrun's keys above them, and our options above both.
TEST(Plan, TimesAndBudget) {
    auto defaults = plan({});
    EXPECT_EQ(defaults->limits.times.lease, milliseconds(10'000));
    EXPECT_EQ(defaults->limits.times.join_timeout, milliseconds(600'000));
    EXPECT_EQ(defaults->limits.times.last_call, milliseconds(30'000));
    EXPECT_EQ(rendezvous::requeue_wait(defaults->limits.times), milliseconds(30'000))
        << "three leases";
    EXPECT_EQ(rendezvous::requeue_wait(plan({"--requeue-wait=5"})->limits.times),
              milliseconds(30'000));
    EXPECT_EQ(rendezvous::requeue_wait(plan({"--requeue-wait=90"})->limits.times),
              milliseconds(90'000));
    EXPECT_EQ(defaults->grace.final_stop, milliseconds(30'000));
    EXPECT_EQ(defaults->grace.restart, milliseconds(5000));
    // In a step Slurm kills 30 s after SIGTERM. The stop must be over before.
    EXPECT_EQ(plan({}, step(1))->grace.final_stop, milliseconds(25'000));
    EXPECT_EQ(defaults->grace.helpers, milliseconds(0));
    EXPECT_EQ(plan({"--wait-for-helpers=60"})->grace.helpers, milliseconds(60'000));
    EXPECT_EQ(defaults->limits.max_restarts, rendezvous::kAutoRestarts);
    EXPECT_EQ(defaults->limits.crash_loop, 2);
    EXPECT_EQ(defaults->limits.hang_timeout, milliseconds(0));
    EXPECT_TRUE(defaults->limits.blame);
    EXPECT_EQ(plan({"--hang-timeout=90"})->limits.hang_timeout, milliseconds(90'000));
    EXPECT_FALSE(plan({"--blame=off"})->limits.blame);
    EXPECT_EQ(defaults->workers.slurm_env, slurm::WorkerVariables::rewrite);
    EXPECT_EQ(plan({"--slurm-env=keep"})->workers.slurm_env, slurm::WorkerVariables::keep);
    auto torchrun = plan_host(8, 0);
    torchrun.called_as_torchrun = true;
    EXPECT_EQ(plan({}, {}, torchrun)->limits.max_restarts, 0);
    EXPECT_EQ(plan({}, {}, torchrun)->grace.helpers, std::nullopt);
    EXPECT_EQ(plan({"--wait-for-helpers=0"}, {}, torchrun)->grace.helpers, milliseconds(0));
    EXPECT_EQ(plan({}, step(1), torchrun)->grace.helpers, milliseconds(0))
        << "the end of the step would end them";

    auto conf = plan({"--rdzv-conf=join_timeout=5,last_call_timeout=1,keep_alive_interval=1",
                      "--shutdown-timeout=7"});
    EXPECT_EQ(conf->limits.times.join_timeout, milliseconds(5000));
    EXPECT_EQ(conf->limits.times.last_call, milliseconds(1000));
    EXPECT_EQ(conf->limits.times.lease, milliseconds(3000));
    EXPECT_EQ(conf->grace.restart, milliseconds(7000));
    auto short_lease = plan({"--rdzv-conf=keep_alive_interval=0.1"});
    // Three attempts of 0.1 s would end healthy jobs.
    EXPECT_EQ(short_lease->limits.times.lease, milliseconds(2000));
    EXPECT_EQ(short_lease->warnings.size(), 1u);
    EXPECT_EQ(plan({"--rdzv-conf=keep_alive_interval=1", "--lease=20"})->limits.times.lease,
              milliseconds(20'000));
}

// A fork server is for later generations.
TEST(Plan, StartsNoForkServerWhereNoRestartIsPossible) {
    using agent::warm::Mode;
    EXPECT_EQ(plan({"--standalone"})->warm, Mode::automatic);
    EXPECT_EQ(plan({"--standalone", "--max-restarts=0"})->warm, Mode::off);
    EXPECT_EQ(plan({"--standalone", "--max-restarts=0", "--warm=always"})->warm, Mode::always);
    EXPECT_EQ(plan({"--nnodes=2", "--rdzv-endpoint=a:1", "--max-restarts=0"})->warm,
              Mode::automatic);
}

// A .py file and a module are Python's; all else runs itself, so a C++ worker needs no option.
// Called as torchrun, everything is Python's, as there.
TEST(Plan, Command) {
    EXPECT_THAT(plan({"./train", "-x"})->workers.argv, ElementsAre("./train", "-x"));
    EXPECT_THAT(plan({"train.py", "--epochs", "3"})->workers.argv,
                ElementsAre("python3", "-u", "train.py", "--epochs", "3"));
    EXPECT_THAT(plan({"-m", "pkg.train", "a"})->workers.argv,
                ElementsAre("python3", "-u", "-m", "pkg.train", "a"));
    EXPECT_THAT(plan({"--no-python", "train.py"})->workers.argv, ElementsAre("train.py"));
    EXPECT_THAT(plan({"--python=/opt/python", "script"})->workers.argv,
                ElementsAre("/opt/python", "-u", "script"));
    EXPECT_THAT(plan({"--run-path", "/s"})->workers.argv, ElementsAre("python3", "-u", "/s"));
    auto facts = plan_host(8, 0);
    facts.called_as_torchrun = true;
    facts.python_exec = "/venv/bin/python";
    auto torchrun = plan({"script", "a"}, {}, facts);
    EXPECT_THAT(torchrun->workers.argv, ElementsAre("/venv/bin/python", "-u", "script", "a"));
    EXPECT_EQ(torchrun->program.display, "script");
    EXPECT_THAT(plan({"--no-python", "script"}, {}, facts)->workers.argv, ElementsAre("script"));
}

// Each limit of the worker store from its own option, each with another number, so that none is
// mixed up.
TEST(Plan, StoreOptions) {
    const auto result =
        plan({"--store-allow=10.0.0.0/8", "--store-max-connections=1", "--store-max-key=2",
              "--store-max-value=3", "--store-max-keys=4", "--store-max-request=5",
              "--store-max-queued=6", "--store-max-memory=7K", "--store-max-total-keys=8", "p"});
    ASSERT_TRUE(result) << result.error();
    // IPv4 networks are kept as part of IPv6: 96 + 8.
    EXPECT_EQ(result->store_allow.at(0).prefix, 104);
    const store::Limits& limits = result->store_limits;
    EXPECT_EQ(limits.max_connections, 1u);
    EXPECT_EQ(limits.max_key, 2u);
    EXPECT_EQ(limits.max_value, 3u);
    EXPECT_EQ(limits.max_keys, 4u);
    EXPECT_EQ(limits.max_request, 5u);
    EXPECT_EQ(limits.max_queued, 6u);
    EXPECT_EQ(limits.max_memory, 7168u);
    EXPECT_EQ(limits.max_total_keys, 8u);
}

TEST(Plan, Role) { EXPECT_EQ(plan({"--role=X:"})->workers.role, "X:"); }

// A container may have time for 3.5 CPUs and see 8. Threads follow the time, or they would only
// wait for each other. Called as torchrun, ddprun does what torchrun does: 1 for several workers,
// else nothing.
TEST(Plan, ThreadsOfWorkers) {
    auto limited = plan_host(8, 0);
    limited.cpu_quota = 3.5;
    EXPECT_EQ(plan({"--nproc-per-node=2"}, {}, limited)->workers.omp_num_threads, 2);
    EXPECT_EQ(plan({"--nproc-per-node=cpu"}, {}, limited)->slots, 8);
    auto torchrun = plan_host(8, 0);
    torchrun.called_as_torchrun = true;
    EXPECT_EQ(plan({}, {}, torchrun)->workers.omp_num_threads, std::nullopt);
    EXPECT_EQ(plan({"--nproc-per-node=2"}, {}, torchrun)->workers.omp_num_threads, 1);
    torchrun.omp_num_threads_set = true;
    EXPECT_EQ(plan({"--nproc-per-node=2"}, {}, torchrun)->workers.omp_num_threads, std::nullopt);
}

// A bound worker has as many threads as it has CPUs. The user's own number stays.
TEST(Plan, BoundWorkers) {
    auto facts = plan_host(4, 0);
    for (int i = 0; i < 4; ++i) facts.cpu_list.push_back({i, i / 2, i / 2, i, i});
    const auto bound = plan({"--numa-binding=node", "--nproc-per-node=2"}, {}, facts);
    EXPECT_THAT(bound->workers.cpus, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
    EXPECT_EQ(bound->workers.more[1].at("OMP_NUM_THREADS"), "2");
    facts.omp_num_threads_set = true;
    EXPECT_THAT(plan({"--numa-binding=node"}, {}, facts)->workers.more, IsEmpty());
    EXPECT_THAT(
        plan({"--numa-binding=exclusive", "--nproc-per-node=5"}, {}, facts).error().sentence(),
        HasSubstr("--numa-binding: "));
}

// Each worker sees its own GPU as device 0. A process can use one MIG instance at most, so with
// divided GPUs the option is needed, and a warning says so.
TEST(Plan, OneDeviceEach) {
    auto facts = plan_host(4, 2);
    facts.cuda_visible_devices = "1,0";
    EXPECT_EQ(plan({"--virtual-local-rank"}, {}, facts)->workers.more[0].at("CUDA_VISIBLE_DEVICES"),
              "1");
    facts.cuda_visible_devices.reset();
    facts.gpus[0].mig = {"MIG-a", "MIG-b"};
    EXPECT_EQ(plan({}, {}, facts)->slots, 3);
    EXPECT_THAT(plan({}, {}, facts)->host_warnings, ElementsAre(HasSubstr("--virtual-local-rank")));
}

// Workers see the names as torchrun gives them. Signals that cancel a job are always handled:
// without that ddprun would die of them, and its workers with it.
TEST(Plan, Signals) {
    EXPECT_EQ(plan({})->workers.signal_names, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
    const auto more = plan({"--signals-to-handle=SIGUSR1,SIGTERM"});
    EXPECT_EQ(more->workers.signal_names, "SIGUSR1,SIGTERM");
    EXPECT_THAT(more->signals, ElementsAre(15, 2, 1, 3, 10));
}

// A signal that --requeue-signal names stops the job and is not passed on to the workers any more.
// Only a step has a queue to go back to.
TEST(Plan, StopAndRequeue) {
    const auto alone = plan({"--stop-before=90", "--stop-signal=USR2", "--requeue-signal=USR1"});
    ASSERT_TRUE(alone);
    EXPECT_EQ(alone->stop.before, std::chrono::seconds(90));
    EXPECT_EQ(alone->stop.worker_signal, SIGUSR2);
    EXPECT_EQ(alone->stop.requeue, agent::RequeueMode::never) << "there is no queue";
    EXPECT_EQ(alone->passed_on, std::vector{SIGUSR2});
    EXPECT_THAT(alone->signals, testing::Contains(SIGUSR1));
    auto two = step(2);
    const auto asks = plan({}, two);
    ASSERT_TRUE(asks);
    // No variable says when the job ends, so Slurm is asked.
    EXPECT_TRUE(asks->stop.in_slurm && asks->stop.ask_job_end);
    EXPECT_EQ(asks->stop.requeue, agent::RequeueMode::automatic);
    two.end_time = 1'800'000'000;
    const auto told = plan({"--requeue=always"}, two);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->job_end, 1'800'000'000);
    EXPECT_TRUE(told->stop.ask_job_end) << "the step may have a limit of its own";
    EXPECT_EQ(told->stop.requeue, agent::RequeueMode::always);
    EXPECT_EQ(told->requeue_begin, kRequeueBegin);
    EXPECT_FALSE(plan({"--requeue-begin=slurm"}, two)->requeue_begin);
    // If the batch host is lost, Slurm keeps the other nodes allocated, so ddprun ends the job.
    EXPECT_TRUE(told->end_headless);
    EXPECT_FALSE(plan({"--headless=keep"}, two)->end_headless);
    EXPECT_FALSE(plan({}, step(1))->end_headless) << "whose batch host is its only one";
    EXPECT_FALSE(alone->end_headless);
}

// Slurm signals all nodes, and who needs all of them cannot lose one.
TEST(Plan, ANodeOfAnElasticJobOutsideSlurmLeavesAtSigterm) {
    const auto outside = [](std::vector<std::string> words, const char* nodes) {
        words.insert(words.end(), {nodes, "--node-rank=0", "--rdzv-endpoint=h:29500"});
        return plan(words);
    };
    EXPECT_TRUE(outside({}, "--nnodes=1:2")->stop.leaves);
    EXPECT_FALSE(outside({"--on-sigterm=stop"}, "--nnodes=1:2")->stop.leaves);
    EXPECT_FALSE(outside({}, "--nnodes=2")->stop.leaves);
    EXPECT_FALSE(plan({"--nnodes=1:2"}, step(2))->stop.leaves);
    EXPECT_TRUE(plan({"--nnodes=1:2", "--on-sigterm=leave"}, step(2))->stop.leaves);
    EXPECT_THAT(plan({"--on-sigterm=leave"}).error().sentence(), HasSubstr("--nnodes=MIN:MAX"));
}

// The script of a batch job of one node starts ddprun without srun. Its options ask for the
// requeue; without them ddprun leaves the script's job alone. Where it can requeue nothing, it says
// so.
TEST(Plan, ABatchScriptWithoutSrunIsRequeuedIfItsOptionsSaySo) {
    HostFacts in_script = plan_host(8, 0);
    in_script.script_job =
        slurm::ScriptJob{.name = "lab.8812", .restart_count = 3, .end_time = 1'800'000'000};
    for (const char* option : {"--requeue-signal=USR1", "--requeue=always", "--requeue=auto"}) {
        const auto asked = plan({option}, {}, in_script);
        ASSERT_TRUE(asked) << option;
        EXPECT_TRUE(asked->stop.in_slurm && asked->stop.ask_job_end) << option;
        EXPECT_NE(asked->stop.requeue, agent::RequeueMode::never) << option;
        EXPECT_EQ(asked->workers.run, "lab.8812.batch") << "after a requeue, too";
        EXPECT_EQ(asked->job_end, 1'800'000'000);
        EXPECT_EQ(asked->slurm_step_id, "batch");
        EXPECT_EQ(asked->slurm_restart_count, 3);
        EXPECT_EQ(asked->grace.final_stop, std::chrono::seconds(25)) << "Slurm's KillWait is 30 s";
        EXPECT_THAT(asked->warnings, IsEmpty());
        EXPECT_THAT(plan({option})->warnings, ElementsAre(HasSubstr("requeue nothing here")));
    }
    for (const auto& words : std::vector<std::vector<std::string>>{{}, {"--requeue=never"}}) {
        EXPECT_FALSE(plan(words, {}, in_script)->stop.in_slurm);
        EXPECT_THAT(plan(words, {}, in_script)->warnings, IsEmpty());
    }
    const auto two =
        plan({"--nnodes=2", "--rdzv-endpoint=n1:1", "--requeue=always"}, {}, in_script);
    EXPECT_FALSE(two->stop.in_slurm) << "a requeue would end what runs on the other node";
    EXPECT_THAT(two->warnings, testing::Contains(HasSubstr("requeue nothing here")));
}

// torchrun reads the key `timeout` with its static rendezvous only.
TEST(Plan, StaticTimeout) {
    EXPECT_EQ(plan({"--rdzv-conf=timeout=60"})->limits.times.join_timeout, milliseconds(60'000));
    EXPECT_EQ(plan({"--rdzv-backend=c10d", "--rdzv-conf=timeout=60"})->limits.times.join_timeout,
              milliseconds(600'000));
}

}  // namespace
}  // namespace ddprun::launcher
