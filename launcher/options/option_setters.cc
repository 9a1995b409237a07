// The table of setters, and the smallest values that make sense.
#include "launcher/options/option_setters.h"

#include <algorithm>
#include <iterator>

#include "launcher/options/nearest.h"
#include "launcher/options/option_table.h"
#include "launcher/options/option_values.h"
#include "launcher/options/signal_names.h"

namespace ddprun::launcher {
namespace {

using std::chrono::milliseconds;
using MaybeError = std::optional<Error>;

Error usage(std::string sentence) { return Error(ErrorCode::usage, std::move(sentence)); }

// Stores a value that could be read, or passes its error on. `target` is unchanged on an error.
template <class Target, class Value>
MaybeError store(Target& target, Result<Value> value) {
    if (!value) return value.error();
    target = std::move(*value);
    return std::nullopt;
}

// Like store(), for a time that must not be below a minimum.
MaybeError store_time(std::optional<milliseconds>& target, std::string_view text,
                      int least_seconds) {
    if (auto error = store(target, read_seconds(text))) return error;
    if (*target < std::chrono::seconds(least_seconds))
        return usage("too short; give " + std::to_string(least_seconds) +
                     (least_seconds == 1 ? " second or more" : " seconds or more"));
    return std::nullopt;
}

// The lease must be at least 2 s. A node may stall for half a lease without effect, and half of
// less than 2 s is too short for the ordinary stalls of a busy host.
constexpr int kLeastLeaseSeconds = 2;

struct SetterRow {
    std::string_view name;
    OptionSetter set;
};

// Checks the value against the words that the option table lists. The error names the closest word,
// else all of them.
MaybeError check_choice(std::string_view name, std::string_view value) {
    std::string_view choices = option_row(name).choices;
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < choices.size();) {
        const std::size_t end = std::min(choices.find(' ', at), choices.size());
        words.push_back(choices.substr(at, end - at));
        at = end + 1;
    }
    if (std::ranges::find(words, value) != words.end()) return std::nullopt;
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i)
        list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    const std::string_view meant = nearest(value, words);
    return usage(meant.empty() ? "not known; give " + list
                               : "not known; did you mean " + std::string(meant) + "?");
}

// One setter for each option with a value, and for each ignored option whose value is checked
// first.
constexpr SetterRow kSetters[] = {
    {"nnodes",
     [](Options& o, const std::string& v) { return store(o.nnodes, read_node_range(v)); }},
    {"nproc-per-node",
     [](Options& o, const std::string& v) {
         return store(o.nproc_per_node, read_workers_per_node(v));
     }},
    {"node-rank",
     [](Options& o, const std::string& v) {
         return store(o.node_rank, read_int(v, 0, 1'000'000));
     }},
    {"rdzv-backend",
     [](Options& o, const std::string& v) -> MaybeError {
         // torchrun also has etcd as rendezvous. Here etcd can hold the ledger, which is most
         // likely what is wanted.
         if (v.starts_with("etcd"))
             return usage(
                 "etcd can hold the ledger, but is no rendezvous here; leave the option out, and "
                 "give --ledger=etcd:HOST:PORT");
         if (v != "static" && v != "c10d" && v != "ddprun")
             return usage("not a rendezvous of ours; leave the option out, or give c10d or static");
         o.rdzv_backend = v;
         return std::nullopt;
     }},
    {"rdzv-endpoint",
     [](Options& o, const std::string& v) { return store(o.rdzv_endpoint, read_host_port(v)); }},
    {"rdzv-id",
     [](Options& o, const std::string& v) { return store(o.rdzv_id, Result<std::string>(v)); }},
    {"rdzv-conf",
     [](Options& o, const std::string& v) { return store(o.rdzv_conf, read_rdzv_conf(v)); }},
    {"master-addr",
     [](Options& o, const std::string& v) -> MaybeError {
         auto address = read_host_port(v);
         if (!address) return address.error();
         // torchrun's --master-addr is a host without a port.
         if (address->port) return usage("a port does not belong here; give it as --master-port");
         o.master_addr = address->host;
         return std::nullopt;
     }},
    {"master-port",
     [](Options& o, const std::string& v) { return store(o.master_port, read_int(v, 0, 65535)); }},
    {"local-addr",
     [](Options& o, const std::string& v) { return store(o.local_addr, Result<std::string>(v)); }},
    {"interface",
     [](Options& o, const std::string& v) { return store(o.interface, Result<std::string>(v)); }},
    {"ports", [](Options& o, const std::string& v) { return store(o.ports, read_port_range(v)); }},
    {"ledger",
     [](Options& o, const std::string& v) {
         return store(o.ledger, rendezvous::read_ledger_place(v));
     }},
    {"secret-file",
     [](Options& o, const std::string& v) { return store(o.secret_file, Result<std::string>(v)); }},
    {"identity",
     [](Options& o, const std::string& v) {
         auto error = check_choice("identity", v);
         return error ? error : store(o.identity, read_identity(v));
     }},
    {"lease",
     [](Options& o, const std::string& v) { return store_time(o.lease, v, kLeastLeaseSeconds); }},
    {"join-timeout",
     [](Options& o, const std::string& v) { return store_time(o.join_timeout, v, 1); }},
    {"last-call", [](Options& o, const std::string& v) { return store_time(o.last_call, v, 0); }},
    {"on-join",
     [](Options& o, const std::string& v) {
         auto error = check_choice("on-join", v);
         return error ? error : store(o.on_join, read_on_join(v));
     }},
    {"join-interval",
     [](Options& o, const std::string& v) { return store_time(o.join_interval, v, 0); }},
    {"max-restarts",
     [](Options& o, const std::string& v) { return store(o.max_restarts, read_restart_limit(v)); }},
    {"crash-loop",
     [](Options& o, const std::string& v) {
         return store(o.crash_loop, read_int(v, 0, 1'000'000));
     }},
    {"hang-timeout",
     [](Options& o, const std::string& v) -> MaybeError {
         if (auto error = store(o.hang_timeout, read_seconds(v))) return error;
         // 0 turns it off. Below a second, ordinary pauses would be taken for a hang.
         if (*o.hang_timeout > milliseconds(0) && *o.hang_timeout < milliseconds(1000))
             return usage("too short; give 1 second or more, or 0 for off");
         return std::nullopt;
     }},
    {"blame",
     [](Options& o, const std::string& v) -> MaybeError {
         if (auto error = check_choice("blame", v)) return error;
         o.blame = v == "on";
         return std::nullopt;
     }},
    {"unkillable-timeout",
     [](Options& o, const std::string& v) { return store_time(o.unkillable_timeout, v, 1); }},
    {"on-failure",
     [](Options& o, const std::string& v) { return store(o.on_failure, Result<std::string>(v)); }},
    {"signals-to-handle",
     [](Options& o, const std::string& v) {
         // The text itself is kept, too: workers are told it as the user wrote it.
         o.signal_names = v;
         return store(o.signals, read_signals(v));
     }},
    {"numa-binding",
     [](Options& o, const std::string& v) {
         auto error = check_choice("numa-binding", v);
         return error ? error : store(o.numa_binding, read_numa_binding(v));
     }},
    {"dry-run",
     [](Options& o, const std::string& v) {
         // Stored before the check: if the value is wrong, the options are thrown away anyway.
         o.dry_run = v == "json" ? DryRunFormat::json : DryRunFormat::text;
         return check_choice("dry-run", v);
     }},
    {"check",
     [](Options& o, const std::string& v) {
         o.check = v == "json" ? CheckFormat::json : CheckFormat::text;
         return check_choice("check", v);
     }},
    {"print-completion",
     [](Options& o, const std::string& v) {
         o.print_completion = v;
         return check_choice("print-completion", v);
     }},
    // Options without effect here. Only their values are checked, so that a typing error is still
    // found.
    {"start-method",
     [](Options&, const std::string& v) { return check_choice("start-method", v); }},
    {"event-log-handler",
     [](Options&, const std::string& v) { return check_choice("event-log-handler", v); }},
    {"logs-specs",
     [](Options&, const std::string& v) -> MaybeError {
         // torchrun loads the class by this name from a Python package.
         if (v == "default") return std::nullopt;
         return usage("names a class in Python, of which ddprun has none; leave the option out");
     }},
    {"monitor-interval",
     [](Options&, const std::string& v) -> MaybeError {
         auto time = read_seconds(v);
         if (!time) return time.error();
         // torchrun refuses 0 here, so ddprun does as well.
         return *time > milliseconds(0) ? MaybeError() : usage("must be above 0");
     }},
    {"exit-barrier-timeout",
     [](Options&, const std::string& v) -> MaybeError {
         auto time = read_seconds(v);
         return time ? MaybeError() : time.error();
     }},
    {"shutdown-timeout",
     [](Options& o, const std::string& v) { return store_time(o.shutdown_timeout, v, 0); }},
    {"log-dir",
     [](Options& o, const std::string& v) { return store(o.log_dir, Result<std::string>(v)); }},
    {"redirects",
     [](Options& o, const std::string& v) { return store(o.redirects, read_streams(v)); }},
    {"tee", [](Options& o, const std::string& v) { return store(o.tee, read_streams(v)); }},
    {"local-ranks-filter",
     [](Options& o,
        const std::string& v) { return store(o.local_ranks_filter, read_rank_list(v)); }},
    {"duplicate-stdout-filters",
     [](Options& o, const std::string& v) -> MaybeError {
         o.stdout_filters = read_filters(v);
         return std::nullopt;
     }},
    {"duplicate-stderr-filters",
     [](Options& o, const std::string& v) -> MaybeError {
         o.stderr_filters = read_filters(v);
         return std::nullopt;
     }},
    {"log-line-prefix-template",
     [](Options& o,
        const std::string& v) { return store(o.prefix_template, Result<std::string>(v)); }},
    {"console-overflow",
     [](Options& o, const std::string& v) {
         o.console_overflow = v == "drop" ? agent::Overflow::drop : agent::Overflow::block;
         return check_choice("console-overflow", v);
     }},
    {"python",
     [](Options& o, const std::string& v) { return store(o.python, Result<std::string>(v)); }},
    {"role",
     [](Options& o, const std::string& v) { return store(o.role, Result<std::string>(v)); }},
    {"slurm-env",
     [](Options& o, const std::string& v) {
         auto error = check_choice("slurm-env", v);
         return error ? error : store(o.slurm_env, read_slurm_env(v));
     }},
    {"stop-before",
     [](Options& o, const std::string& v) { return store_time(o.stop_before, v, 1); }},
    {"stop-signal",
     [](Options& o, const std::string& v) { return store(o.stop_signal, read_signal(v)); }},
    {"requeue-signal",
     [](Options& o, const std::string& v) {
         return store(o.requeue_signals, read_signals_freely(v));
     }},
    {"requeue",
     [](Options& o, const std::string& v) {
         auto error = check_choice("requeue", v);
         return error ? error : store(o.requeue, read_requeue(v));
     }},
    {"headless",
     [](Options& o, const std::string& v) {
         o.end_headless = v == "end";
         return check_choice("headless", v);
     }},
    {"store-allow",
     [](Options& o, const std::string& v) { return store(o.store_allow, read_networks(v)); }},
    {"store-max-connections",
     [](Options& o,
        const std::string& v) { return store(o.store_limits.max_connections, read_size(v)); }},
    {"store-max-key",
     [](Options& o, const std::string& v) { return store(o.store_limits.max_key, read_size(v)); }},
    {"store-max-value",
     [](Options& o,
        const std::string& v) { return store(o.store_limits.max_value, read_size(v)); }},
    {"store-max-keys",
     [](Options& o, const std::string& v) { return store(o.store_limits.max_keys, read_size(v)); }},
    {"store-max-request",
     [](Options& o,
        const std::string& v) { return store(o.store_limits.max_request, read_size(v)); }},
    {"store-max-queued",
     [](Options& o,
        const std::string& v) { return store(o.store_limits.max_queued, read_size(v)); }},
    {"store-max-memory",
     [](Options& o,
        const std::string& v) { return store(o.store_limits.max_memory, read_size(v)); }},
};

}  // namespace

OptionSetter option_setter(std::string_view name) {
    const auto row = std::ranges::find(kSetters, name, &SetterRow::name);
    return row == std::end(kSetters) ? nullptr : row->set;
}

// --label and --no-label, --verbose and --quiet are pairs; the last one on the command line wins.
void set_flag(Options& options, std::string_view name) {
    if (name == "standalone") options.standalone = true;
    if (name == "module") options.module = true;
    if (name == "no-python") options.no_python = true;
    if (name == "run-path") options.run_path = true;
    if (name == "label" || name == "no-label") options.label = name == "label";
    if (name == "verbose" || name == "quiet") options.verbosity = name == "verbose" ? 1 : -1;
    if (name == "virtual-local-rank") options.virtual_local_rank = true;
    if (name == "task-per-worker") options.task_per_worker = true;
    if (name == "version") options.version = true;
    if (name == "print-man") options.print_man = true;
    if (name == "help") options.help = true;
}

bool may_be_empty(std::string_view name) {
    return name == "rdzv-endpoint" || name == "rdzv-id" || name == "rdzv-conf" ||
           name == "log-dir" || name == "local-ranks-filter" || name == "local-addr" ||
           name == "log-line-prefix-template" || name.starts_with("duplicate-");
}

}  // namespace ddprun::launcher
