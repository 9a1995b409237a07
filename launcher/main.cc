// ddprun's main(): from the command line to a running job.
//
// The file reads in the order in which things happen. Options and Slurm's variables become one
// plan. The user's program is checked. Then the keeper is forked, before any thread exists, and the
// job runs.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "agent/host/hardware.h"
#include "agent/host/topology.h"
#include "agent/output/attempt_folder.h"
#include "base/exit_code.h"
#include "base/hexadecimal.h"
#include "base/printable.h"
#include "base/release.h"
#include "base/system/descriptor_room.h"
#include "base/system/hear_sigterm.h"
#include "base/system/out_of_resources.h"
#include "base/system/own_limits.h"
#include "base/system/own_proc.h"
#include "base/system/print_text.h"
#include "base/system/random_bytes.h"
#include "base/system/standard_streams.h"
#include "keeper/keeper.h"
#include "launcher/check/check_node.h"
#include "launcher/dry_run/dry_run_json.h"
#include "launcher/dry_run/dry_run_text.h"
#include "launcher/job/job.h"
#include "launcher/job/meeting_point.h"
#include "launcher/job/mpi_library.h"
#include "launcher/job/products.h"
#include "launcher/job/program_check.h"
#include "launcher/options/config_files.h"
#include "launcher/options/options.h"
#include "launcher/options/printed_text.h"
#include "launcher/options/rehearsal_order.h"
#include "launcher/plan/check_plan.h"
#include "launcher/plan/make_plan.h"
#include "rendezvous/ledger/etcd_files.h"
#include "rendezvous/secret/secret.h"
#include "slurm/allocation.h"
#include "slurm/job_id.h"
#include "slurm/launch_shape.h"

extern char** environ;

namespace {

using namespace ddprun;
using launcher::Environment;

// A map, because everything below looks variables up by name. An entry without a name or without
// "=" can be neither set nor asked for by any function; workers do not get it.
Environment read_environment() {
    Environment environment;
    for (char** entry = environ; *entry; ++entry) {
        const std::string text = *entry;
        const auto sign = text.find('=');
        if (sign != std::string::npos && sign > 0)
            environment.emplace(text.substr(0, sign), text.substr(sign + 1));
    }
    return environment;
}

// A node that cannot run workers joins to tell the others why. It waits for them so long.
constexpr ddprun::Duration kUnusableComes = std::chrono::seconds{60};
// How long the folders of PATH may take, before a check calls one silent.
constexpr ddprun::Duration kPlacesAnswer = std::chrono::seconds{10};

std::string value_of(const Environment& environment, const std::string& name) {
    const auto it = environment.find(name);
    return it == environment.end() ? std::string() : it->second;
}

std::optional<std::string> optional_value(const Environment& environment, const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? std::nullopt : std::optional(it->second);
}

// A link named torchrun gives torchrun's defaults, so that existing scripts see no change.
bool is_torchrun(const char* called_as) {
    return std::filesystem::path(called_as).filename() == "torchrun";
}

// All that a plan needs to know about this host. The planning itself is pure, so every look at the
// host happens here. The costlier looks are taken only for the options that need them.
launcher::HostFacts look_at_host(const Environment& environment, const char* called_as,
                                 const launcher::Options& options) {
    launcher::HostFacts host;
    std::error_code ignored;  // without a working directory, relative paths mean nothing
    host.hostname = agent::short_host_name();
    host.cpus = static_cast<int>(agent::allowed_cpus().size());
    if (options.numa_binding) host.cpu_list = agent::read_cpus(agent::allowed_cpus());
    host.cpu_quota = agent::cpu_quota();
    if (options.interface)
        for (auto& one : agent::interfaces())
            host.interfaces.emplace_back(std::move(one.interface), std::move(one.address));
    auto [gpus, gpu_fault] = agent::find_gpus();
    host.gpus = std::move(gpus);
    host.gpu_fault = std::move(gpu_fault);
    host.cuda_visible_devices = optional_value(environment, "CUDA_VISIBLE_DEVICES");
    host.hip_visible_devices = optional_value(environment, "HIP_VISIBLE_DEVICES");
    if (const auto folder = optional_value(environment, "TMPDIR"); folder && !folder->empty())
        host.temporary_directory = *folder;
    host.fleeting_directory = agent::temporary_parents().front();
    host.working_directory = std::filesystem::current_path(ignored).string();
    host.script_job = slurm::read_script_job(environment);
    // A dry run makes no random names. It prints a placeholder instead.
    host.random_id = options.dry_run ? launcher::kNotMadeYet : hexadecimal(random_number());
    host.called_as_torchrun = is_torchrun(called_as);
    host.python_exec = launcher::find_python(environment, called_as, host.called_as_torchrun);
    host.python_in_path =
        launcher::find_in_path(launcher::kPython, optional_value(environment, "PATH"));
    host.log_at_terminal = ::isatty(STDERR_FILENO) == 1;
    host.omp_num_threads_set = environment.contains("OMP_NUM_THREADS");
    return host;
}

int fail(const Error& error) {
    std::fprintf(stderr, "ddprun: %s\n", printable(error.sentence()).c_str());
    return exit_code(error);
}

int cannot_run(const Error& error) {
    fail(error);
    return kCannotRunCode;
}

// Every task of a step has the same command line, so one of them (SLURM_PROCID 0) reports what is
// wrong with it. The others only exit with the same code.
int fail_once(const Error& error, const Environment& environment) {
    const std::string task = value_of(environment, "SLURM_PROCID");
    return task.empty() || task == "0" ? fail(error) : exit_code(error);
}

using Allocation = Result<std::optional<slurm::Allocation>>;

// Whether the step's layout can work at all, e.g. not four tasks on a node that each start all
// workers. Every task of the step gets the same answer.
Result<> check_layout(const launcher::Options& options, const Allocation& allocation,
                      const Environment& environment) {
    if (!allocation || !*allocation) return {};  // no step, or plan_job() reports the error
    const auto shape =
        slurm::check_launch_shape(environment, *allocation, launcher::shape_asked(options));
    return shape ? Result<>() : shape.error();
}

// All tasks of a host fail to plan for the same reason, so the first one (SLURM_LOCALID 0) reports
// it. An error that is not a usage error may concern one task alone, so each task reports it.
int fail_on_host(const Error& error, const std::string& local_id) {
    return local_id.empty() || local_id == "0" || error.code() != ErrorCode::usage
               ? fail(error)
               : exit_code(error);
}

int print(const std::string& text) {
    const auto printed = print_text(text);
    return printed ? 0 : fail(printed.error());
}

// What the process needs before anything else.
Result<> prepare_process() {
    end_without_resources("ddprun", kCannotRunCode);
    have_standard_streams();
    hear_sigterm();
    // Writes report EPIPE (the reader has gone) and EFBIG (ulimit -f), and do not kill the process.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    return check_own_limits();
}

// The programs are checked before the nodes meet: a typing error must not cost a wait at the
// rendezvous.
Result<> check_programs(const launcher::Plan& plan, const Environment& environment) {
    const auto path = optional_value(environment, "PATH");
    if (auto good = launcher::check_worker_program(plan, path); !good) return good;
    for (const auto& [option, program] :
         {std::pair("--on-failure: ", plan.on_failure), std::pair("--on-event: ", plan.on_event)}) {
        if (program.empty()) continue;
        const auto good = launcher::check_program(program, path);
        if (!good) return Error(good.error().code(), option + good.error().sentence());
    }
    return {};
}

// A start would hang where programs are looked for; a check says where.
Result<> check_places(const Environment& environment) {
    const std::string silent = launcher::find_silent_place(environment, kPlacesAnswer);
    if (silent.empty()) return {};
    return Error(ErrorCode::unavailable, silent + " does not answer within " +
                                             to_text(kPlacesAnswer) +
                                             ": programs are looked for there (PATH, VIRTUAL_ENV, "
                                             "PYTHON_EXEC); a start on this node would hang");
}

// Plans this node's part of a job. Possible errors: usage, and those of read_secret_file().
Result<launcher::JobInput> plan_job(const launcher::Options& options, const Allocation& allocation,
                                    Environment environment, const char* called_as) {
    if (!allocation) return allocation.error();
    const auto shape =
        slurm::check_launch_shape(environment, *allocation, launcher::shape_asked(options));
    if (!shape) return shape.error();
    const bool in_step = shape->kind == slurm::LaunchShape::Kind::in_step;
    launcher::JobInput input;
    input.host = look_at_host(environment, called_as, options);
    // Only where the user has named an endpoint, since finding these addresses may need a name
    // server.
    if ((options.rdzv_endpoint || options.master_addr) && !options.dry_run) {
        const std::string& endpoint =
            options.rdzv_endpoint ? options.rdzv_endpoint->host : *options.master_addr;
        input.host.endpoint_bridge = agent::host_bridge_at(endpoint);
        if (in_step) {
            input.host.addresses_outside_step =
                launcher::addresses_outside_step(**allocation, endpoint, input.host);
            input.host.endpoint_unknown = launcher::is_unknown_host(endpoint, **allocation);
        }
    }
    auto plan = launcher::make_plan(options, in_step ? *allocation : std::nullopt, input.host);
    if (!plan) return plan.error();
    // A check tests the program on every node and reports it (check_look.h), so it does not stop
    // here.
    if (!options.check) {
        if (auto good = check_programs(*plan, environment); !good) return good.error();
        const auto mpi = launcher::check_mpi(*plan, optional_value(environment, "PATH"));
        if (!mpi) return mpi.error();
        if (!mpi->empty()) plan->host_warnings.push_back(*mpi);
    }
    input.plan = std::move(*plan);
    if (!proc_is_ours())
        input.plan.host_warnings.push_back(
            "/proc is missing here or shows another PID namespace (mount a new one): of what the "
            "workers start, only their own process groups can be killed");
    if (const std::string& fault = input.host.gpu_fault; !fault.empty())
        input.plan.host_warnings.push_back("the MIG instances of this node's GPUs are unknown: " +
                                           fault + "; name them in CUDA_VISIBLE_DEVICES");
    if (const std::string& path = input.plan.identity.secret_file; !path.empty()) {
        auto secret = rendezvous::read_secret_file(path);
        if (!secret) return secret.error();
        input.secret = std::move(*secret);
    }
    auto access = rendezvous::read_ledger_access(input.plan.ledger.etcd, input.plan.ledger.place,
                                                 input.secret);
    if (!access) return access.error();
    input.ledger_access = std::move(*access);
    if (!shape->note.empty()) input.plan.notes.push_back(shape->note);
    input.slurm_job = slurm::JobId(environment);
    input.environment = std::move(environment);
    return input;
}

// Plans a step that srun has not started yet, for a dry run. This host is not one of its nodes, so
// nothing of this host counts, and a program that is missing here is only a warning.
Result<launcher::JobInput> plan_step(const launcher::Options& options,
                                     const launcher::StepToCome& step,
                                     const Environment& environment, const char* called_as) {
    launcher::JobInput input;
    input.host = launcher::without_host(look_at_host(environment, called_as, options));
    auto plan =
        launcher::make_plan(launcher::without_host(options, step), step.allocation, input.host);
    if (!plan) return plan.error();
    input.plan = std::move(*plan);
    if (auto good = check_programs(input.plan, environment); !good)
        input.plan.host_warnings.push_back("on this host: " + good.error().sentence());
    input.environment = environment;
    return input;
}

// When only this node cannot be planned, the other nodes would wait for it until the join timeout.
// So it joins without workers and says why (Plan::unusable). The job can then go on without it, or
// ends at once with that reason. Returns nothing where the others cannot be found either: then the
// plan is wrong for all of them, and each node reports that by itself.
std::optional<launcher::JobInput> come_without_workers(launcher::Options options,
                                                       const Allocation& allocation,
                                                       Environment environment,
                                                       const char* called_as, const Error& why) {
    if (!options.task_per_worker)
        options.nproc_per_node = launcher::WorkersPerNode{launcher::WorkersPerNode::Kind::count, 1};
    // A task always has one worker, so the number of workers cannot be lowered. It joins without
    // GPUs instead. On a single host all tasks have the same problem, and nobody is left to be
    // told.
    if (options.task_per_worker && allocation && *allocation && (*allocation)->nodes.size() > 1)
        environment["CUDA_VISIBLE_DEVICES"] = "";
    options.numa_binding.reset();
    options.virtual_local_rank = false;
    options.on_failure.reset();
    options.on_event.reset();
    // The plan needs some program that exists. It is never started.
    options.program = own_program();
    options.python.reset();
    options.module = options.run_path = false;
    options.no_python = true;
    auto input = plan_job(options, allocation, std::move(environment), called_as);
    if (!input || input->plan.limits.order.size() < 2) return std::nullopt;
    input->plan.unusable = why.sentence();
    input->plan.limits.times.join_timeout =
        std::min(input->plan.limits.times.join_timeout, kUnusableComes);
    input->plan.notes.clear();
    return std::move(*input);
}

// Prints a dry run. In a step that runs already, the first node prints all of it; each other node
// prints one line about itself, so that the output of n nodes is not n copies.
int show(const launcher::DryRun& dry, launcher::DryRunFormat format) {
    if (dry.start == launcher::DryRun::Start::step && dry.plan.node_rank.value_or(0) != 0) {
        if (!launcher::first_on_host(dry.plan)) return 0;
        std::fprintf(stderr, "ddprun %s: %s\n", dry.plan.node_name.c_str(),
                     launcher::dry_run_line(dry).c_str());
        for (const std::string& warning : dry.plan.host_warnings)
            std::fprintf(stderr, "ddprun %s: %s\n", dry.plan.node_name.c_str(),
                         printable(warning).c_str());
        return 0;
    }
    return print(format == launcher::DryRunFormat::json ? launcher::dry_run_json(dry)
                                                        : launcher::dry_run_text(dry));
}

// Where only srun is missing, the step that srun would start is planned, otherwise this node's own
// part.
int dry_run(const launcher::Options& options, const Allocation& allocation,
            const Environment& environment, const char* called_as) {
    const auto step = launcher::step_to_come(options, environment);
    if (!step) return fail(step.error());
    const auto input = *step ? plan_step(options, **step, environment, called_as)
                             : plan_job(options, allocation, environment, called_as);
    if (!input) return fail_on_host(input.error(), value_of(environment, "SLURM_LOCALID"));
    return show(launcher::make_dry_run(*input, *step ? &**step : nullptr, options.origins),
                *options.dry_run);
}

// Only returns with an exit code where the rehearsal cannot begin.
int rehearse(const launcher::Options& options, const Environment& environment,
             const char* called_as, const launcher::Products& products) {
    const auto found = launcher::find_python(environment, called_as, is_torchrun(called_as));
    const std::string python = options.python.value_or(
        found.value_or(launcher::find_in_path("python3", optional_value(environment, "PATH"))));
    if (python.empty())
        return fail(
            Error(ErrorCode::usage, "--rehearse: no python3 is in PATH; name one with --python"));
    const auto tasks = optional_value(environment, "SLURM_STEP_NUM_TASKS");
    if (tasks && *tasks != "1")
        return fail_once(
            Error(ErrorCode::usage, "--rehearse: plays on one node, but this step has " + *tasks +
                                        " tasks; use srun --nodes=1 --ntasks=1"),
            environment);
    std::error_code ignored;
    const auto own = std::filesystem::read_symlink(own_program(), ignored).string();
    return fail(products.rehearse(python, launcher::rehearsal_order(options, own)));
}

}  // namespace

int main(int argc, char** argv) {
    // A keeper that died is replaced by running this binary again with this argument.
    if (argc > 1 && std::string(argv[1]) == agent::kKeeperArgument)
        return agent::keeper_main_exec(argc, argv);
    if (const auto good = prepare_process(); !good) return cannot_run(good.error());
    Environment environment = read_environment();
    // The worker of `ddprun --check` is ddprun itself, started with this argument before the user's
    // own words.
    const bool checks = argc > 1 && std::string(argv[1]) == launcher::kCheckArgument;
    const std::vector<std::string> words(argv + (checks ? 2 : 1), argv + argc);
    const auto files = launcher::read_config_files(words, environment, !is_torchrun(argv[0]));
    if (!files) return fail_once(files.error(), environment);
    const launcher::Products products = launcher::products();
    const auto options = launcher::parse_options(words, environment, *files, products.missing);
    if (!options) return fail_once(options.error(), environment);
    if (const auto text = launcher::printed_text(*options, environment, this_release(),
                                                 is_torchrun(argv[0]) ? "torchrun" : "ddprun"))
        return print(*text);

    const auto allocation = slurm::read_allocation(environment);
    if (const auto good = check_layout(*options, allocation, environment); !good)
        return fail_once(good.error(), environment);
    // A dry run ends here: before anything is opened, started or written.
    if (options->dry_run) return dry_run(*options, allocation, environment, argv[0]);

    if (!options->rehearsal.faults.empty())
        return rehearse(*options, environment, argv[0], products);
    if (options->check)
        if (const auto good = check_places(environment); !good) return fail(good.error());
    auto input = plan_job(*options, allocation, environment, argv[0]);
    if (!input) {
        const int code = fail_on_host(input.error(), value_of(environment, "SLURM_LOCALID"));
        auto unusable =
            come_without_workers(*options, allocation, environment, argv[0], input.error());
        // The worker of a check joins nothing by itself: its own node has already met the others.
        if (!unusable || checks) return code;
        input = std::move(*unusable);
    }
    if (checks)
        return launcher::check_node(*input, options->check.value_or(launcher::CheckFormat::text),
                                    products);
    if (options->check) launcher::make_check_plan(input->plan, *options, own_program(), words);
    input->host.local_addresses = agent::interface_addresses();
    // Before the first thread, where growing the descriptor table costs nothing
    // (descriptor_room.h).
    input->nofile_soft = make_room_for_descriptors();

    input->temporary_name = agent::draw_temporary_name();
    // A worker at a terminal may be a debugger. It stays in our session, so that it can read the
    // keyboard and Ctrl-C and Ctrl-Z reach it.
    auto keeper = agent::Keeper::start({.own_session = ::isatty(STDIN_FILENO) == 0,
                                        .command_line = agent::command_line_of(argc, argv),
                                        .folders = agent::temporary_places(input->temporary_name)});
    if (!keeper) return cannot_run(keeper.error());
    return launcher::run_job(std::move(*input), std::move(*keeper), products).code;
}
