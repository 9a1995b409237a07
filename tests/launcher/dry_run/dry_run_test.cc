// What a start would do (--dry-run): the value, and both its forms as golden files, which lie in
// tests/data/dry_run and are rewritten with DDPRUN_REWRITE=1. Pure: host and Slurm's variables are
// made up. A dry run must not promise more than is known before the nodes meet, so many tests ask
// for "unknown".
#include "launcher/dry_run/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/dry_run/dry_run_json.h"
#include "launcher/dry_run/dry_run_text.h"
#include "launcher/plan/make_plan.h"
#include "slurm/launch_shape.h"

namespace ddprun::launcher {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kFour = "4";
// The first of four nodes, as srun starts ddprun there.
const Environment kStep{{"SLURM_CLUSTER_NAME", "lab"},
                        {"SLURM_JOB_ID", "8812"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NODELIST", "gpu[01-04]"},
                        {"SLURM_STEP_NUM_NODES", kFour},
                        {"SLURM_STEP_TASKS_PER_NODE", "1(x4)"},
                        {"SLURM_NODEID", "0"}};
// A batch script of four nodes in which srun has not been called. Its GPUs are those of this host
// only.
const Environment kBatch{{"SLURM_CLUSTER_NAME", "lab"},
                         {"SLURM_JOB_ID", "8812"},
                         {"SLURM_JOB_NODELIST", "gpu[01-04]"},
                         {"SLURM_JOB_NUM_NODES", kFour},
                         {"SLURM_NODEID", "0"},
                         {"SLURM_GPUS_ON_NODE", "2"},
                         {"SLURMD_NODENAME", "gpu01"},
                         {"CUDA_VISIBLE_DEVICES", "2,3"}};

// 8 CPUs on two NUMA nodes, and the GPUs divided between these.
HostFacts host(int gpus = 0) {
    HostFacts facts;
    facts.hostname = "me";
    facts.cpus = 8;
    for (int i = 0; i < 8; ++i)
        facts.cpu_list.push_back({.number = i, .numa_node = i / 4, .core = i});
    for (int i = 0; i < gpus; ++i) {
        facts.gpus.emplace_back();
        facts.gpus.back().numa_node = i * 2 / gpus;
    }
    facts.working_directory = "/data";
    facts.random_id = kNotMadeYet;
    return facts;
}

// As main does it: if srun is what is missing, the step to come is planned without this host.
DryRun dry(std::vector<std::string> words, const Environment& environment = {},
           HostFacts facts = host()) {
    if (words.empty() || words.back().starts_with('-')) words.push_back("./train");
    const Options options = parse_options(words, environment).value();
    if (const auto found = environment.find("CUDA_VISIBLE_DEVICES"); found != environment.end())
        facts.cuda_visible_devices = found->second;
    const auto step = step_to_come(options, environment).value();
    JobInput input;
    input.environment = environment;
    input.host = step ? without_host(facts) : facts;
    input.plan =
        step ? make_plan(without_host(options, *step), step->allocation, input.host).value()
             : make_plan(options, slurm::read_allocation(environment).value(), facts).value();
    return make_dry_run(input, step ? &*step : nullptr, options.origins);
}

// A variable of the first worker of this node.
Known<std::string> variable(const DryRun& dry, const std::string& name) {
    for (const DryRun::Variable& each : dry.variables)
        if (each.name == name) return each.value;
    return {std::nullopt, "is not among them"};
}

std::vector<std::string> names(const DryRun& dry) {
    std::vector<std::string> all;
    for (const DryRun::Node& node : dry.nodes) all.push_back(node.name);
    return all;
}

// Known for certain: a value without a note.
Known<std::string> is(std::string value) { return {std::move(value), ""}; }

// A value that no dry run can know; its note says when it will be known.
auto unknown() { return Field(&Known<std::string>::value, std::nullopt); }

// Compares with the golden file, or writes it anew if the user asks for that.
void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(DDPRUN_TEST_DATA "/dry_run/") + name;
    if (std::getenv("DDPRUN_REWRITE")) std::ofstream(path) << text;
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, golden.str()) << path;
}

void expect_golden(const std::string& name, const DryRun& dry) {
    expect_golden(name + ".txt", dry_run_text(dry));
    expect_golden(name + ".json", dry_run_json(dry));
}

// Each worker has a GPU and CPUs of its own, and both its streams go to files. The arguments have a
// dollar sign and a quote, as a user's may.
TEST(DryRunForms, OfOneNode) {
    expect_golden("one_node", dry({"--standalone", "--nproc-per-node=gpu", "--virtual-local-rank",
                                   "--numa-binding=exclusive", "--tee=3", "--log-dir=logs",
                                   "--duplicate-stdout-filters=loss", "train.py", "--seed",
                                   "$local_rank", "--name", "it's mine"},
                                  {}, host(4)));
}

// Four equal nodes of Slurm's with four GPUs: the usual case.
TEST(DryRunForms, OfAStepOfFourNodes) { expect_golden("step", dry({}, kStep, host(4))); }

// Without Slurm: the second of two to four nodes, which meet where the options say.
TEST(DryRunForms, OfNodesThatMeetAtAnEndpoint) {
    expect_golden("endpoint", dry({"--nnodes=2:4", "--node-rank=1", "--nproc-per-node=2",
                                   "--rdzv-endpoint=head:29400", "--max-restarts=2",
                                   "--hang-timeout=2.5", "--on-failure=/bin/tell"}));
}

// The same command in a batch script and on a login node: what is known differs.
TEST(DryRunForms, OfAStepToCome) {
    expect_golden("batch", dry({}, kBatch, host(2)));
    expect_golden("login", dry({"--nnodes=40", "--nproc-per-node=8"}));
}

// A command line may hold any bytes. JSON is UTF-8 all the same, or no program could read it.
TEST(DryRunForms, JsonIsUtf8) {
    const std::string text = dry_run_json(dry({"--role=\xff", "p", "\xc3\x28\"\\"}));
    EXPECT_TRUE(nlohmann::json::accept(text));
    EXPECT_THAT(text, Not(HasSubstr("\xff")));
}

// One node waits for nobody, so all is known but what only the start makes: a free port, a folder,
// a random run id.
TEST(DryRun, OneNodeIsKnown) {
    const DryRun one = dry({"--standalone", "--nproc-per-node=3", "--rdzv-id=mine"});
    EXPECT_EQ(one.start, DryRun::Start::one_node);
    EXPECT_EQ(one.world_size, (Known<int>{3, ""}));
    EXPECT_EQ(variable(one, "WORLD_SIZE"), is("3"));
    EXPECT_EQ(variable(one, "MASTER_ADDR"), is("127.0.0.1"));
    EXPECT_EQ(variable(one, "TORCHELASTIC_RUN_ID"), is("mine"));
    EXPECT_EQ(variable(one, "OMP_NUM_THREADS"), is("2"));
    // The port is chosen at the start, when it is free.
    EXPECT_THAT(variable(one, "MASTER_PORT"), unknown());
    EXPECT_THAT(variable(one, "TORCHELASTIC_ERROR_FILE").note,
                "/tmp/ddprun_XXXXXX/attempt_0/0/error.json");
    EXPECT_THAT(one.ports.value, testing::Optional(IsEmpty()));
    EXPECT_THAT(variable(dry({"--standalone"}), "TORCHELASTIC_RUN_ID"), unknown());
}

// Under Slurm the run is told from others by job and step, and the workers see the name that the
// user has given.
TEST(DryRun, WorkersOfAStepSeeTheUsersRunId) {
    const DryRun step = dry({"--rdzv-id=mine"}, kStep);
    EXPECT_EQ(variable(step, "TORCHELASTIC_RUN_ID"), is("mine"));
    EXPECT_EQ(step.run_id, (Known<std::string>{"lab.8812.0", ""}));
    EXPECT_EQ(variable(dry({}, kStep), "TORCHELASTIC_RUN_ID"), is("lab.8812.0"));
    // The key for trackers is made of job and step. Outside Slurm a run has one when it begins.
    EXPECT_EQ(variable(step, "DDPRUN_RUN_KEY"), is("dz94m9gh0v0noa23vxmb"));
    EXPECT_THAT(variable(dry({"--standalone", "--rdzv-id=mine"}), "DDPRUN_RUN_KEY"), unknown());
}

// What the user has set stays, and is not listed as ddprun's. RANK is ddprun's, whatever it was
// before.
TEST(DryRun, LeavesTheUsersOwn) {
    auto facts = host();
    facts.omp_num_threads_set = true;
    const DryRun one = dry({},
                           {{"OMP_NUM_THREADS", "5"},
                            {"HOME", "/h"},
                            {"RANK", "9"},
                            {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3"}},
                           facts);
    EXPECT_EQ(variable(one, "OMP_NUM_THREADS").note, "is not among them");
    EXPECT_EQ(variable(one, "HOME").note, "is not among them");
    EXPECT_EQ(variable(one, "RANK"), is("0"));
    EXPECT_EQ(variable(one, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), is("3"));
}

// torchrun's file timers: a file of ddprun's own, or the user's.
TEST(DryRun, FileTimers) {
    const Environment served{{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"}};
    EXPECT_EQ(variable(dry({}, served), "TORCHELASTIC_TIMER_FILE").note,
              "/tmp/ddprun_XXXXXX/attempt_0/0/timer");
    auto named = served;
    named["TORCHELASTIC_TIMER_FILE"] = "/run/timer";
    EXPECT_EQ(variable(dry({}, named), "TORCHELASTIC_TIMER_FILE"), is("/run/timer"));
}

// The user's name is the same for all tasks of a host, and each task serves a file of its own.
TEST(DryRun, EachTaskHasAFileForTimersOfItsOwn) {
    Environment task = kStep;
    task["SLURM_STEP_TASKS_PER_NODE"] = "2(x4)";
    task["TORCHELASTIC_ENABLE_FILE_TIMER"] = "1";
    task["TORCHELASTIC_TIMER_FILE"] = "/run/timer";
    for (const auto& [local_id, path] : {std::pair("0", "/run/timer"), {"1", "/run/timer.1"}}) {
        task["SLURM_PROCID"] = task["SLURM_LOCALID"] = local_id;
        EXPECT_EQ(variable(dry({"--task-per-worker"}, task), "TORCHELASTIC_TIMER_FILE"), is(path));
    }
}

// The workers are counted by this node's GPUs. Other nodes may have more or fewer, so what depends
// on them carries a note. With a given count all is certain.
TEST(DryRun, OtherNodesMayBeUnequal) {
    const DryRun counted = dry({}, kStep, host(4));
    EXPECT_EQ(counted.world_size, (Known<int>{16, "if each node has 4 workers, as this one"}));
    EXPECT_EQ(counted.nodes[0].workers, (Known<int>{4, ""}));
    EXPECT_EQ(counted.nodes[2].first_rank,
              (Known<int>{8, "if each node has 4 workers, as this one"}));
    EXPECT_EQ(variable(counted, "RANK"), is("0"));
    const DryRun told = dry({"--nproc-per-node=4"}, kStep);
    EXPECT_EQ(told.world_size, (Known<int>{16, ""}));
    EXPECT_EQ(told.nodes[3].first_rank, (Known<int>{12, ""}));
    EXPECT_THAT(names(told), ElementsAre("gpu01", "gpu02", "gpu03", "gpu04"));
    EXPECT_EQ(variable(told, "MASTER_ADDR"), is("gpu01"));
}

// Two to four nodes: the job may start with two, so the world's size holds only if all four come.
// The rank of the first node is certain.
TEST(DryRun, FewerNodesMayCome) {
    const DryRun some = dry({"--nnodes=2:4", "--nproc-per-node=2"}, kStep);
    EXPECT_EQ(some.world_size, (Known<int>{8, "if all 4 nodes come"}));
    EXPECT_EQ(variable(some, "RANK"), is("0"));
    EXPECT_EQ(variable(some, "GROUP_WORLD_SIZE").note, "if all 4 nodes come");
}

// "As many as come" is a large number in many scripts. The list of nodes has a limit, and the sum
// must not overflow.
TEST(DryRun, AsManyAsCome) {
    const DryRun many =
        dry({"--nnodes=1:1000000", "--nproc-per-node=4096", "--node-rank=0", "--rdzv-endpoint=h"});
    EXPECT_EQ(many.nodes.size(), 65536u);
    EXPECT_EQ(many.world_size, (Known<int>{65536 * 4096, "if 65536 nodes come"}));
    EXPECT_THAT(dry_run_text(dry({"--nnodes=1:1000000"})), HasSubstr("on 65536 nodes"));
}

// Five tasks on two nodes, dealt out in turn (cyclic): rank 2 is the second task of n1. From
// Slurm's layout all places follow. With a host file (arbitrary) they do not.
TEST(DryRun, TasksInTheOrderOfRanks) {
    auto step = kStep;
    step["SLURM_STEP_NODELIST"] = "n[1-2]", step["SLURM_STEP_NUM_NODES"] = "2";
    step["SLURM_STEP_TASKS_PER_NODE"] = "4,1", step["SLURM_STEP_NUM_TASKS"] = "5";
    step["SLURM_NODEID"] = "0", step["SLURM_PROCID"] = "2", step["SLURM_LOCALID"] = "1";
    step["SLURM_DISTRIBUTION"] = "cyclic";
    const DryRun third = dry({"--task-per-worker", "--redirects=3"}, step);
    ASSERT_EQ(third.nodes.size(), 5u);
    EXPECT_EQ(third.nodes[1].name, "n2/0");
    EXPECT_TRUE(third.nodes[2].here);
    EXPECT_EQ(third.nodes[2].first_rank, (Known<int>{2, ""}));
    ASSERT_EQ(third.workers.size(), 1u);
    EXPECT_EQ(third.workers[0].local_rank, 1);
    EXPECT_EQ(third.workers[0].rank, (Known<int>{2, ""}));
    EXPECT_EQ(variable(third, "LOCAL_RANK").value, "1");
    EXPECT_EQ(variable(third, "LOCAL_WORLD_SIZE").value, "4");
    EXPECT_EQ(variable(third, "GROUP_WORLD_SIZE").value, "2");
    EXPECT_THAT(dry_run_text(third), HasSubstr("5 workers on 2 nodes"));
    step["SLURM_DISTRIBUTION"] = "arbitrary";
    EXPECT_FALSE(dry({"--task-per-worker"}, step).nodes[2].first_rank.value);
}

// More nodes than may take part, or an order by names that nobody knows yet: no rank is known
// before the nodes meet. What holds for all of them still is.
TEST(DryRun, APlaceMayBeUnknown) {
    for (const DryRun& open :
         {dry({"--nnodes=2", "--nproc-per-node=2"},
              [] {
                  auto step = kStep;
                  step["PET_NNODES"] = "1:2";
                  return step;
              }()),
          dry({"--nnodes=2", "--nproc-per-node=2", "--rdzv-endpoint=h", "--rdzv-backend=c10d"})}) {
        EXPECT_THAT(names(open), ElementsAre("", ""));
        EXPECT_THAT(variable(open, "RANK"), unknown());
        EXPECT_THAT(variable(open, "GROUP_RANK"), unknown());
        EXPECT_THAT(variable(open, "MASTER_ADDR"), unknown());
        EXPECT_EQ(variable(open, "LOCAL_RANK"), is("0"));
        EXPECT_EQ(variable(open, "WORLD_SIZE"), is("4"));
        EXPECT_THAT(dry_run_text(open), HasSubstr("Variables of the first worker of this node:"));
    }
}

// MASTER_ADDR is the address of rank 0. It is known if that node leads or has been given an
// address; else only the meeting tells.
TEST(DryRun, AddressOfRankZero) {
    EXPECT_THAT(variable(dry({"--rdzv-endpoint=gpu03"}, kStep), "MASTER_ADDR"), unknown());
    EXPECT_EQ(dry({"--rdzv-endpoint=gpu03"}, kStep).leader, is("gpu03"));
    EXPECT_EQ(
        variable(dry({"--rdzv-endpoint=gpu03", "--local-addr=10.0.0.1"}, kStep), "MASTER_ADDR"),
        is("10.0.0.1"));
    EXPECT_EQ(dry({"--rdzv-endpoint=elsewhere"}, kStep).leader.value, std::nullopt);
    EXPECT_THAT(variable(dry({"--nnodes=2", "--node-rank=1", "--rdzv-endpoint=h"}), "MASTER_ADDR"),
                unknown());
}

// srun is still to be called, perhaps for other nodes than this host. Its GPUs and CPUs must not
// show up in the plan.
TEST(DryRun, OfAStepToComeHasNothingOfThisHost) {
    const DryRun batch = dry({"--virtual-local-rank", "--numa-binding=node"}, kBatch, host(2));
    EXPECT_EQ(batch.start, DryRun::Start::step_to_come);
    EXPECT_THAT(names(batch), ElementsAre("gpu01", "gpu02", "gpu03", "gpu04"));
    EXPECT_EQ(batch.workers_per_node.value, std::nullopt);
    EXPECT_EQ(batch.world_size.value, std::nullopt);
    EXPECT_THAT(batch.workers, IsEmpty());
    EXPECT_THAT(batch.warnings, ElementsAre(HasSubstr("srun is missing")));
    EXPECT_THAT(batch.run_id.note, HasSubstr("lab.8812.STEP"));
    EXPECT_THAT(variable(batch, "OMP_NUM_THREADS").note, HasSubstr("the node's CPUs"));
    EXPECT_EQ(variable(batch, "GROUP_WORLD_SIZE"), is("4"));
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE", "MASTER_PORT"})
        EXPECT_THAT(variable(batch, name), unknown()) << name;

    // On a login node not even the names are known.
    const DryRun login = dry({"--nnodes=4", "--nproc-per-node=gpu"});
    EXPECT_THAT(names(login), Each(""));
    EXPECT_THAT(variable(login, "MASTER_ADDR"), unknown());
    EXPECT_EQ(dry({"--nnodes=4", "--nproc-per-node=2"}).world_size, (Known<int>{8, ""}));
}

// A step to come is planned only where a real start would lack srun. If it were planned elsewhere,
// the dry run would show another job than the start runs.
TEST(DryRun, WhereSrunIsMissing) {
    const auto missing = [](const std::vector<std::string>& words, const Environment& environment) {
        return step_to_come(parse_options(words, environment).value(), environment)->has_value();
    };
    EXPECT_TRUE(missing({"p"}, kBatch));
    EXPECT_TRUE(missing({"--nnodes=2", "p"}, {}));
    EXPECT_FALSE(missing({"p"}, {}));
    EXPECT_FALSE(missing({"--standalone", "p"}, kBatch));
    EXPECT_FALSE(missing({"p"}, kStep));
    EXPECT_FALSE(missing({"--nnodes=2", "--rdzv-endpoint=h", "p"}, {}));
    auto one_node = kBatch;
    one_node["SLURM_JOB_NUM_NODES"] = "1", one_node["SLURM_JOB_NODELIST"] = "gpu01";
    EXPECT_FALSE(missing({"p"}, one_node));
    one_node.erase("SLURMD_NODENAME");  // salloc's shell runs on no node of the job
    EXPECT_TRUE(missing({"p"}, one_node));
    auto odd = kBatch;
    odd["SLURM_JOB_NODELIST"] = "gpu[";
    EXPECT_FALSE(step_to_come(parse_options({"p"}, odd).value(), odd));
}

// The first node prints the dry run. Each other node says in one line what is its own.
TEST(DryRun, LineOfAnotherNode) {
    auto third = kStep;
    third["SLURM_NODEID"] = "2";
    EXPECT_EQ(dry_run_line(dry({}, third, host(4))),
              "4 workers: one for each of the 4 GPUs that the driver shows");
}

// "Why only one worker?" is a frequent question, so the plan names what the number comes from.
TEST(DryRun, ReasonOfTheWorkers) {
    const auto reason = [](std::vector<std::string> words, Environment environment, int gpus) {
        return dry(std::move(words), environment, host(gpus)).plan.slots_reason;
    };
    EXPECT_EQ(reason({"--nproc-per-node=3"}, {}, 4), "--nproc-per-node=3");
    EXPECT_EQ(reason({}, {}, 0), "no GPU found");
    EXPECT_EQ(reason({"--nproc-per-node=auto"}, {}, 0),
              "one for each of the 8 CPUs that ddprun may use");
    EXPECT_EQ(reason({"--nproc-per-node=cpu"}, {}, 4),
              "one for each of the 8 CPUs that ddprun may use");
    EXPECT_EQ(reason({"--nproc-per-node=gpu"}, {{"CUDA_VISIBLE_DEVICES", "2,3"}}, 4),
              "one for each GPU of CUDA_VISIBLE_DEVICES=2,3");
    auto step = kStep;
    step["SLURM_GPUS_ON_NODE"] = "2";
    EXPECT_EQ(reason({}, step, 4), "one for each GPU of SLURM_GPUS_ON_NODE=2");
    auto torchrun = host(4);
    torchrun.called_as_torchrun = true;
    EXPECT_EQ(dry({}, {}, torchrun).plan.slots_reason, "torchrun's default");
    EXPECT_FALSE(dry({}, {}, torchrun).plan.slots_counted);
}

}  // namespace
}  // namespace ddprun::launcher
