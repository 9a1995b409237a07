// The rows of the options that print something and leave, and of torchrun's options that have no
// effect here.
#include <sstream>
#include <string_view>

#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"
#include "launcher/options/product_names.h"

namespace ddprun::launcher {
namespace {

MaybeError set_dry_run(Options& options, const std::string& value) {
    options.dry_run = value == "json" ? DryRunFormat::json : DryRunFormat::text;
    return std::nullopt;
}

MaybeError set_check(Options& options, const std::string& value) {
    options.check = value == "json" ? CheckFormat::json : CheckFormat::text;
    return std::nullopt;
}

constexpr std::string_view kFaults = "kill stop node hang disk torn";

// Which faults to play, each once and in the order of kFaults.
MaybeError set_rehearse(Options& options, const std::string& value) {
    std::string given = "," + value + ",";
    auto& faults = options.rehearsal.faults;
    faults.clear();
    std::istringstream known{std::string(kFaults)};
    for (std::string name; known >> name;) {
        const auto at = given.find("," + name + ",");
        if (at == std::string::npos) continue;
        given.erase(at, name.size() + 1);
        faults.push_back(name);
    }
    if (given == ",") return std::nullopt;
    return usage_error(
        "not a list of faults; give some of kill,stop,node,hang,disk,torn, each once");
}

MaybeError set_rehearse_steps(Options& options, const std::string& value) {
    options.rehearsal.first_given = "--rehearse-steps";
    return store(options.rehearsal.steps, read_int(value, 4, 1'000'000'000));
}

MaybeError set_rehearse_seed(Options& options, const std::string& value) {
    options.rehearsal.first_given = "--rehearse-seed";
    return store(options.rehearsal.seed, read_int(value, 0, 1'000'000'000));
}

MaybeError set_rehearse_pattern(Options& options, const std::string& value) {
    options.rehearsal.first_given = "--rehearse-pattern";
    const auto open = value.find('(');
    if (open == std::string::npos || value.find(')', open) == std::string::npos)
        return usage_error("has no group for the step; give for example 'it ([0-9]+)'");
    options.rehearsal.pattern = value;
    return std::nullopt;
}

MaybeError set_rehearse_format(Options& options, const std::string& value) {
    options.rehearsal.first_given = "--rehearse-format";
    options.rehearsal.format = value;
    return std::nullopt;
}

// The values of options without effect are checked, so that a typing error is still found.
MaybeError check_seconds(Options&, const std::string& value) {
    const auto time = read_seconds(value);
    return time ? MaybeError() : time.error();
}

MaybeError check_monitor_interval(Options&, const std::string& value) {
    const auto time = read_seconds(value);
    if (!time) return time.error();
    // torchrun refuses 0 here, so ddprun does as well.
    return *time > std::chrono::milliseconds(0) ? MaybeError() : usage_error("must be above 0");
}

MaybeError check_logs_specs(Options&, const std::string& value) {
    // torchrun loads the class by this name from a Python package.
    if (value == "default") return std::nullopt;
    return usage_error("names a Python class, which ddprun cannot load; leave the option out");
}

// The help text of an option without effect is the reason for that; the warning prints it.
constexpr OptionRow kOther[] = {
    {.name = "monitor-interval",
     .placeholder = "SECONDS",
     .kind = OptionKind::ignored,
     .torchrun = true,
     .help = "ddprun notices the end of a worker immediately",
     .set = check_monitor_interval},
    {.name = "start-method",
     .placeholder = "spawn|fork|forkserver",
     .kind = OptionKind::ignored,
     .torchrun = true,
     .choices = "spawn fork forkserver",
     .closed = true,
     .help = "every worker is a program of its own"},
    {.name = "event-log-handler",
     .placeholder = "NAME",
     .kind = OptionKind::ignored,
     .torchrun = true,
     .choices = "null console dynamic_rendezvous",
     .closed = true,
     .default_text = "null",
     .help = "ddprun writes its own events"},
    {.name = "logs-specs",
     .placeholder = "NAME",
     .kind = OptionKind::ignored,
     .torchrun = true,
     .choices = "default",
     .pet = false,
     .default_text = "default",
     .help = "it names a Python class, which ddprun cannot load",
     .set = check_logs_specs},
    {.name = "exit-barrier-timeout",
     .placeholder = "SECONDS",
     .kind = OptionKind::ignored,
     .torchrun = true,
     .help = "all nodes end together",
     .set = check_seconds},
    {.name = "use-env",
     .kind = OptionKind::ignored,
     .pet = false,
     .help = "LOCAL_RANK is always in the environment, and never an argument"},
    {.name = "config",
     .placeholder = "PATH",
     .pet = false,
     .default_text = "DDPRUN_CONFIG",
     .help =
         "A TOML file with options: nproc-per-node = 4. The command line and PET_ variables win "
         "over it, and it wins over the site's /etc/ddprun/ddprun.toml",
     .set = text<&Options::config>},
    {.name = "dry-run",
     .placeholder = "text|json",
     .brief = "print what a start would do, and start nothing",
     .choices = "text json",
     .closed = true,
     .implied = "text",
     .pet = false,
     .help = "Print what a start would do (nodes, ranks, devices, variables, times, files), and "
             "start nothing. This also works on a login node. In a step that srun starts, the "
             "first node prints it",
     .set = set_dry_run},
    {.name = "check",
     .placeholder = "text|json",
     .brief = "test the allocation, and print each problem with its fix",
     .choices = "text json",
     .closed = true,
     .implied = "text",
     .pet = false,
     .help = "Test the allocation instead of a start, and print each problem with its fix: whether "
             "all nodes meet, reach each other and see the ledger, and their GPUs, clocks, disk "
             "space and limits. The exit code is 69 if there is a problem. PROGRAM may be left out",
     .set = set_check},
    {.name = "rehearse",
     .placeholder = "FAULT,...",
     .choices = kFaults,
     .implied = "kill,stop,node,hang,disk,torn",
     .pet = false,
     .products = kRehearsal,
     .help = "Run the program twice undisturbed, then once with each fault at a random step, and "
             "report whether it resumes, what is lost, and whether the results are the same. It "
             "plays on this node, in a private copy: no file of yours changes. The exit code is 0 "
             "if all held. kill: a rank. node: all ranks and ddprun. stop: SIGTERM to ddprun. "
             "hang: a frozen rank. disk: full for a while. torn: a save that was cut off",
     .set = set_rehearse},
    {.name = "rehearse-steps",
     .placeholder = "N",
     .pet = false,
     .products = kRehearsal,
     .default_text = "100",
     .help = "The last step of each run of a rehearsal",
     .set = set_rehearse_steps},
    {.name = "rehearse-seed",
     .placeholder = "N",
     .pet = false,
     .products = kRehearsal,
     .help = "The same seed draws the same steps and ranks for the faults. Default: drawn, and "
             "printed",
     .set = set_rehearse_seed},
    {.name = "rehearse-pattern",
     .placeholder = "REGEX",
     .pet = false,
     .products = kRehearsal,
     .help = "How a line of the program shows its step: a regular expression of Python with one "
             "group. Default: lines with a step, an iteration, a progress bar or an epoch; else "
             "reported progress",
     .set = set_rehearse_pattern},
    {.name = "rehearse-format",
     .placeholder = "text|json",
     .choices = "text json",
     .closed = true,
     .pet = false,
     .products = kRehearsal,
     .default_text = "text",
     .help = "The form of the report of a rehearsal",
     .set = set_rehearse_format},
    {.name = "print-sbatch",
     .placeholder = "smallest|array|container|elastic|preemptible",
     .brief = "print a batch script for Slurm",
     .choices = "smallest array container elastic preemptible",
     .closed = true,
     .implied = "smallest",
     .pet = false,
     .help = "Print a batch script for Slurm, with the other options and PROGRAM filled in, and "
             "start nothing. elastic: survives lost nodes. preemptible: continues after a "
             "preemption or its time limit. PROGRAM may be left out",
     .set = text<&Options::print_sbatch>},
    {.name = "print-completion",
     .placeholder = "bash|zsh|fish|tcsh",
     .torchrun = true,
     .choices = "bash zsh fish tcsh",
     .closed = true,
     .pet = false,
     .help = "Print the completion script for that shell and exit",
     .set = text<&Options::print_completion>},
    {.name = "print-man",
     .kind = OptionKind::flag,
     .pet = false,
     .help = "Print the manual page and exit: ddprun --print-man | man -l -",
     .set = on<&Options::print_man>},
    {.name = "version",
     .kind = OptionKind::flag,
     .pet = false,
     .help = "Print the version and exit",
     .set = on<&Options::version>},
    {.name = "help",
     .letter = 'h',
     .kind = OptionKind::flag,
     .torchrun = true,
     .pet = false,
     .help = "Print the options that are used most, and exit; -h: a line for each",
     .set = on<&Options::help>},
    {.name = "help-all",
     .kind = OptionKind::flag,
     .pet = false,
     .help = "Print all options, and exit",
     .set = on<&Options::help_all>},
};

}  // namespace

std::span<const OptionRow> other_rows() { return kOther; }

}  // namespace ddprun::launcher
