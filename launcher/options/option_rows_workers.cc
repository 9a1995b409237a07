// The rows of the options about the workers: their output, their program, their store's limits.
#include "launcher/options/option_rows.h"
#include "launcher/options/option_setters.h"

namespace ddprun::launcher {
namespace {

// --label and --no-label, --verbose and --quiet are pairs; the last one on the command line wins.
template <int kVerbosity>
MaybeError set_verbosity(Options& options, const std::string&) {
    options.verbosity = kVerbosity;
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
     .may_be_empty = true,
     .default_text = "a new folder in TMPDIR, where files are asked for",
     .help = "Folder for the files of --redirects and --tee: "
             "RUN_XXXXXXXX/attempt_GENERATION/LOCAL_RANK/ with stdout.log and stderr.log, which "
             "nothing writes over. /dev/null: no files",
     .differs = "a new folder in TMPDIR at every start, which nobody removes",
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
     .help = "The same, and to the console too",
     .set = into<&Options::tee, read_streams>},
    {.name = "duplicate-stdout-filters",
     .placeholder = "TEXT,...",
     .torchrun = true,
     .may_be_empty = true,
     .help =
         "Lines of stdout of --tee with one of these texts in them also go to filtered_stdout.log "
         "of the generation, one file for all ranks; two commas stand for one in a text",
     .set = filters<&Options::stdout_filters>},
    {.name = "duplicate-stderr-filters",
     .placeholder = "TEXT,...",
     .torchrun = true,
     .may_be_empty = true,
     .help = "The same for stderr: filtered_stderr.log",
     .set = filters<&Options::stderr_filters>},
    {.name = "local-ranks-filter",
     .placeholder = "RANK,...",
     .torchrun = true,
     .may_be_empty = true,
     .help = "Local ranks that may write to the console",
     .set = into<&Options::local_ranks_filter, read_rank_list>},
    {.name = "label",
     .kind = OptionKind::flag,
     .default_text = "with more than one worker, and for --tee",
     .help = "Put the rank in front of each line on the console",
     .set = on<&Options::label>},
    {.name = "no-label", .kind = OptionKind::flag, .help = "Do not", .set = off<&Options::label>},
    {.name = "log-line-prefix-template",
     .placeholder = "TEXT",
     .torchrun = true,
     .may_be_empty = true,
     .default_text = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, else [${role_name}${local_rank}]:",
     .help =
         "What stands in front of such a line; there are ${role_name}, ${local_rank}, ${rank} and "
         "${hostname}",
     .set = text<&Options::prefix_template>},
    {.name = "console-overflow",
     .placeholder = "block|drop",
     .choices = "block drop",
     .closed = true,
     .default_text = "block",
     .help = "When 64 MiB wait for a console that is too slow: block, and workers that print wait; "
             "drop, and the oldest lines are dropped and counted. Files get all lines",
     .set = set_console_overflow},
    {.name = "verbose",
     .letter = 'v',
     .kind = OptionKind::flag,
     .help = "Say more, as LOGLEVEL=DEBUG does",
     .set = set_verbosity<1>},
    {.name = "quiet",
     .letter = 'q',
     .kind = OptionKind::flag,
     .help = "Say warnings and errors only, as LOGLEVEL=WARNING does",
     .set = set_verbosity<-1>},
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
     .help = "Run the program itself, whatever its name",
     .set = on<&Options::no_python>},
    {.name = "run-path",
     .kind = OptionKind::flag,
     .torchrun = true,
     .help = "Run the program as a Python script, whatever its name",
     .set = on<&Options::run_path>},
    {.name = "python",
     .placeholder = "PATH",
     .default_text = "PYTHON_EXEC, the virtual environment's, python3",
     .help = "The interpreter of Python programs",
     .set = text<&Options::python>},
    {.name = "role",
     .placeholder = "NAME",
     .torchrun = true,
     .default_text = "default",
     .help = "Label of these workers",
     .set = text<&Options::role>},
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
     .help = "Bind each worker to CPUs near its GPU: its NUMA node's, its socket's, a share of the "
             "node's cores, or the cores of one cache. Without GPUs the nodes are dealt out evenly",
     .set = into<&Options::numa_binding, read_numa_binding>},
};

constexpr OptionRow kStore[] = {
    {.name = "store-allow",
     .placeholder = "NET,...|any",
     .help = "Who may connect besides the job's nodes: addresses or networks, e.g. 10.0.0.0/8",
     .set = into<&Options::store_allow, read_networks>},
    {.name = "store-max-connections",
     .placeholder = "N",
     .default_text = "100000",
     .help = "Connections at once",
     .set = limit<&store::Limits::max_connections>},
    {.name = "store-max-key",
     .placeholder = "BYTES",
     .default_text = "64K",
     .help = "Length of a key",
     .set = limit<&store::Limits::max_key>},
    {.name = "store-max-value",
     .placeholder = "BYTES",
     .default_text = "1G",
     .help = "Length of a value",
     .set = limit<&store::Limits::max_value>},
    {.name = "store-max-keys",
     .placeholder = "N",
     .default_text = "1M",
     .help = "Keys in one request",
     .set = limit<&store::Limits::max_keys>},
    {.name = "store-max-request",
     .placeholder = "BYTES",
     .default_text = "2G",
     .help = "Keys and values of one request together",
     .set = limit<&store::Limits::max_request>},
    {.name = "store-max-queued",
     .placeholder = "BYTES",
     .default_text = "256M",
     .help = "Replies waiting for a worker that does not read them; more closes its connection",
     .set = limit<&store::Limits::max_queued>},
    {.name = "store-max-memory",
     .placeholder = "BYTES",
     .default_text = "8G",
     .help = "All that the store holds; a client that adds more loses its connection",
     .set = limit<&store::Limits::max_memory>},
};

}  // namespace

std::span<const OptionRow> output_rows() { return kOutput; }
std::span<const OptionRow> worker_rows() { return kWorker; }
std::span<const OptionRow> store_rows() { return kStore; }

}  // namespace ddprun::launcher
