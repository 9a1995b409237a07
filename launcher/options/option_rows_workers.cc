// The rows of the options about the workers: their output, their program, their store's limits.
#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"
#include "launcher/options/product_names.h"

namespace ddprun::launcher {
namespace {

// --label and --no-label, --verbose and --quiet are pairs; the last one on the command line wins.
template <int kVerbosity>
MaybeError set_verbosity(Options& options, const std::string&) {
    options.verbosity = kVerbosity;
    return std::nullopt;
}

MaybeError set_timestamps(Options& options, const std::string& value) {
    options.timestamps = value == "auto" ? std::nullopt : std::optional(value == "always");
    return std::nullopt;
}

MaybeError set_warm(Options& options, const std::string& value) {
    using agent::warm::Mode;
    options.warm = value == "auto" ? Mode::automatic : value == "always" ? Mode::always : Mode::off;
    return std::nullopt;
}

// Of auto|off.
template <auto kMember>
MaybeError set_auto(Options& options, const std::string& value) {
    options.*kMember = value == "auto";
    return std::nullopt;
}

MaybeError set_log_format(Options& options, const std::string& value) {
    options.log_json = value == "json";
    return std::nullopt;
}

MaybeError set_console_overflow(Options& options, const std::string& value) {
    options.console_overflow = value == "drop" ? agent::Overflow::drop : agent::Overflow::block;
    return std::nullopt;
}

template <auto kFilters>
MaybeError filters(Options& options, const std::string& value) {
    options.*kFilters = read_filters(value);
    return std::nullopt;
}

template <auto kLimit>
MaybeError limit(Options& options, const std::string& value) {
    return store(options.store_limits.*kLimit, read_size(value));
}

constexpr OptionRow kOutput[] = {
    {.name = "log-dir",
     .placeholder = "PATH",
     .torchrun = true,
     .brief = "folder for the workers' output and the failure report",
     .may_be_empty = true,
     .default_text = "a new folder in TMPDIR, if files are needed",
     .help = "Folder for the files of --redirects and --tee: stdout.log and stderr.log in "
             "RUN_XXXXXXXX/attempt_GENERATION/LOCAL_RANK/. They are never overwritten. /dev/null: "
             "no files",
     .differs = "a new folder in TMPDIR at every start, which is never removed",
     .set = text<&Options::log_dir>},
    {.name = "redirects",
     .letter = 'r',
     .placeholder = "DIGIT|RANK:DIGIT,...",
     .torchrun = true,
     .choices = "0 1 2 3",
     .default_text = "0",
     .help = "Streams of the workers that go to files: 0 none, 1 stdout, 2 stderr, 3 both",
     .set = into<&Options::redirects, read_streams>},
    {.name = "tee",
     .letter = 't',
     .placeholder = "DIGIT|RANK:DIGIT,...",
     .torchrun = true,
     .choices = "0 1 2 3",
     .default_text = "0",
     .help =
         "Streams of the workers that go to files and to the console; digits as for --redirects",
     .set = into<&Options::tee, read_streams>},
    {.name = "duplicate-stdout-filters",
     .placeholder = "TEXT,...",
     .torchrun = true,
     .may_be_empty = true,
     .help =
         "Of --tee's stdout, lines that contain one of these texts also go to filtered_stdout.log "
         "of the generation, one file for all ranks. Write a comma in a text as two commas",
     .set = filters<&Options::stdout_filters>},
    {.name = "duplicate-stderr-filters",
     .placeholder = "TEXT,...",
     .torchrun = true,
     .may_be_empty = true,
     .help = "The same for stderr, in filtered_stderr.log",
     .set = filters<&Options::stderr_filters>},
    {.name = "local-ranks-filter",
     .placeholder = "RANK,...",
     .torchrun = true,
     .may_be_empty = true,
     .help = "Local ranks that may write to the console",
     .set = into<&Options::local_ranks_filter, read_rank_list>},
    {.name = "label",
     .kind = OptionKind::flag,
     .default_text = "with more than one worker in the job, and for --tee",
     .help = "Put the rank in front of each line on the console, with several nodes host and rank",
     .set = on<&Options::label>},
    {.name = "no-label",
     .kind = OptionKind::flag,
     .help = "Do not put the rank in front of lines on the console",
     .set = off<&Options::label>},
    {.name = "log-line-prefix-template",
     .placeholder = "TEXT",
     .torchrun = true,
     .may_be_empty = true,
     .default_text = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:, "
                     "with several nodes and no --role [HOST:${rank}]:",
     .help = "What --label puts in front of a line. It may contain ${role_name}, ${local_rank}, "
             "${rank} and ${hostname}",
     .set = text<&Options::prefix_template>},
    {.name = "console-overflow",
     .placeholder = "block|drop",
     .choices = "block drop",
     .closed = true,
     .default_text = "block",
     .help = "Effect when 64 MiB wait for a slow console. block: workers that print wait. drop: "
             "the oldest lines are dropped and counted. Files get all lines in either case",
     .set = set_console_overflow},
    {.name = "collapse",
     .placeholder = "auto|off",
     .choices = "auto off",
     .closed = true,
     .default_text = "auto",
     .help = "auto: at a terminal, a line that several ranks print within 200 ms is shown once, "
             "with all of its ranks in the label ([default0-3]:). Not by the name torchrun, with "
             "--pty=off, --no-label or a template, and never in files. off: each line is shown",
     .set = set_auto<&Options::collapse>},
    {.name = "pty",
     .placeholder = "auto|off",
     .choices = "auto off",
     .closed = true,
     .default_text = "auto",
     .help = "auto: where ddprun's stdout or stderr is a terminal, that of the workers is one, too "
             "(colours, progress bars), as wide as it is beside the label. Streams that also go to "
             "files stay pipes. off: all are pipes",
     .set = set_auto<&Options::pty>},
    {.name = "verbose",
     .letter = 'v',
     .kind = OptionKind::flag,
     .help = "Log more, like LOGLEVEL=DEBUG",
     .set = set_verbosity<1>},
    {.name = "quiet",
     .letter = 'q',
     .kind = OptionKind::flag,
     .help = "Log only warnings and errors, like LOGLEVEL=WARNING",
     .set = set_verbosity<-1>},
    {.name = "timestamps",
     .placeholder = "auto|always|never",
     .choices = "auto always never",
     .closed = true,
     .default_text = "auto",
     .help = "Begin ddprun's own lines with the time in UTC. auto: unless standard error is a "
             "terminal",
     .set = set_timestamps},
    {.name = "status-every",
     .placeholder = "SECONDS",
     .default_text = "600, and 0 (never) at a terminal",
     .help = "After so long without a line of ddprun's own, one line reports the state of the job: "
             "generation, step, restarts, time left",
     .set = seconds<&Options::status_every, 0>},
    {.name = "log-format",
     .placeholder = "text|json",
     .choices = "text json",
     .closed = true,
     .default_text = "text",
     .help = "json: ddprun's own lines are objects with time, level, node and message; the report "
             "of a failure is one line, with the whole report as an object. The workers' lines "
             "stay as they are",
     .set = set_log_format},
};

constexpr OptionRow kWorker[] = {
    {.name = "module",
     .letter = 'm',
     .kind = OptionKind::flag,
     .torchrun = true,
     .help = "The program is a Python module, run as python -m",
     .set = on<&Options::module>},
    {.name = "no-python",
     .kind = OptionKind::flag,
     .torchrun = true,
     .help = "Run the program directly, without Python, whatever its name",
     .set = on<&Options::no_python>},
    {.name = "run-path",
     .kind = OptionKind::flag,
     .torchrun = true,
     .help = "Run the program as a Python script, whatever its name",
     .set = on<&Options::run_path>},
    {.name = "python",
     .placeholder = "PATH",
     .default_text = "PYTHON_EXEC, else the virtual environment's, else python3",
     .help = "Interpreter for Python programs",
     .set = text<&Options::python>},
    {.name = "warm",
     .placeholder = "auto|off|always",
     .choices = "auto off always",
     .closed = true,
     .products = kWarmStarts,
     .default_text = "auto; off when called as torchrun",
     .help =
         "Fork Python workers from a process that has imported PyTorch and NumPy, where the "
         "result is proved to be the same. auto: at a restart, if this process is ready. always: "
         "wait for it, at the first start, too",
     .set = set_warm},
    {.name = "framework-stop",
     .placeholder = "off|auto",
     .choices = "off auto",
     .closed = true,
     .products = kWarmStarts,
     .default_text = "off",
     .help = "auto: trainers of Lightning and transformers obey a stop without a changed line. All "
             "ranks write a checkpoint after the same step and end, and run no line after fit() or "
             "train(). They also report progress and obey ddpctl snapshot. Versions that were not "
             "tried are left alone",
     .set = set_auto<&Options::framework_stop>},
    {.name = "set-aside-torn",
     .kind = OptionKind::flag,
     .products = kWarmStarts,
     .help = "Before a start, rename the newest checkpoint folder of transformers if it is torn: "
             "its save had begun and not ended when the workers died, and an older one is whole. "
             "Needs the callback (--framework-stop=auto). Deletes nothing",
     .set = on<&Options::set_aside_torn>},
    {.name = "role",
     .placeholder = "NAME",
     .torchrun = true,
     .default_text = "default",
     .help = "Label of these workers",
     .set = text<&Options::role>},
    {.name = "pmi",
     .kind = OptionKind::flag,
     .products = kMpi,
     .help = "The program uses MPI: MPICH, Intel MPI or MVAPICH. Its processes find each other by "
             "PMI-1, and are restarted together like all others. All nodes need it",
     .set = on<&Options::pmi>},
    {.name = "virtual-local-rank",
     .kind = OptionKind::flag,
     .torchrun = true,
     .help = "Each worker sees one GPU, and LOCAL_RANK=0",
     .set = on<&Options::virtual_local_rank>},
    {.name = "numa-binding",
     .placeholder = "node|socket|exclusive|core-complex",
     .torchrun = true,
     .choices = "node socket exclusive core-complex",
     .closed = true,
     .pet = false,
     .help = "Bind each worker to CPUs near its GPU. node: those of its NUMA node. socket: those "
             "of its socket. exclusive: a share of the NUMA node's cores. core-complex: the cores "
             "of one cache. Without GPUs the NUMA nodes are distributed evenly over the workers",
     .set = into<&Options::numa_binding, read_numa_binding>},
};

constexpr OptionRow kStore[] = {
    {.name = "store-allow",
     .placeholder = "NET,...|any",
     .help = "Addresses or networks that may connect besides the job's nodes, e.g. 10.0.0.0/8",
     .set = into<&Options::store_allow, read_networks>},
    {.name = "store-max-connections",
     .placeholder = "N",
     .default_text = "100000",
     .help = "Maximum number of connections at the same time",
     .set = limit<&store::Limits::max_connections>},
    {.name = "store-max-key",
     .placeholder = "BYTES",
     .default_text = "64K",
     .help = "Maximum length of a key",
     .set = limit<&store::Limits::max_key>},
    {.name = "store-max-value",
     .placeholder = "BYTES",
     .default_text = "1G",
     .help = "Maximum length of a value",
     .set = limit<&store::Limits::max_value>},
    {.name = "store-max-keys",
     .placeholder = "N",
     .default_text = "1M",
     .help = "Maximum number of keys in one request",
     .set = limit<&store::Limits::max_keys>},
    {.name = "store-max-total-keys",
     .placeholder = "N",
     .default_text = "16M",
     .help = "Maximum number of keys in the store",
     .set = limit<&store::Limits::max_total_keys>},
    {.name = "store-max-request",
     .placeholder = "BYTES",
     .default_text = "2G",
     .help = "Maximum size of one request, keys and values together",
     .set = limit<&store::Limits::max_request>},
    {.name = "store-max-queued",
     .placeholder = "BYTES",
     .default_text = "256M",
     .help = "Maximum size of the replies that wait for a worker that does not read them",
     .set = limit<&store::Limits::max_queued>},
    {.name = "store-max-memory",
     .placeholder = "BYTES",
     .default_text = "8G",
     .help =
         "Maximum size of everything in the store; a client that adds more loses its connection",
     .set = limit<&store::Limits::max_memory>},
};

}  // namespace

std::span<const OptionRow> output_rows() { return kOutput; }
std::span<const OptionRow> worker_rows() { return kWorker; }
std::span<const OptionRow> store_rows() { return kStore; }

}  // namespace ddprun::launcher
