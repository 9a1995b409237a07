// Reads an Allocation from Slurm's environment variables.
#include "slurm/allocation.h"

#include <charconv>
#include <numeric>
#include <string_view>

#include "slurm/count_list.h"
#include "slurm/hostlist.h"

namespace ddprun::slurm {
namespace {

// Slurm reserves the highest step ids for steps of its own (SLURM_INTERACTIVE_STEP and others in
// slurm.h). A process can see these three in its environment.
constexpr std::uint32_t kInteractiveStep = 4294967290, kBatchStep = 4294967291,
                        kExternStep = 4294967292;

// Slurm also writes these ids as negative numbers: since 26.05 a batch script has SLURM_STEP_ID=-5.
bool is(const std::string& step_id, std::uint32_t reserved) {
    return step_id == std::to_string(reserved) ||
           step_id == std::to_string(static_cast<std::int32_t>(reserved));
}

// A variable with an empty value counts as not set, because containers and --export pass such
// variables on.
const std::string* find(const Environment& environment, const char* name) {
    auto entry = environment.find(name);
    return entry == environment.end() || entry->second.empty() ? nullptr : &entry->second;
}

// A variable under one of several names. Slurm keeps old names beside new ones (SLURM_JOBID,
// SLURM_JOB_ID), and containers may drop some of them.
struct Variable {
    const char* name;
    const std::string* value;  // null: none of the names is set
};

Variable first_of(const Environment& environment, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const std::string* value = find(environment, name)) return {name, value};
    return {*names.begin(), nullptr};
}

// Every message shows the variable, its text and the problem. The usual reason for a wrong text is
// a variable that was copied from another environment, so the message asks for that.
Error wrong(const char* name, const std::string& value, const std::string& what) {
    return usage_error(std::string(name) + "=\"" + value + "\": " + what +
                       "; is this run inside an allocation?");
}

// No sign, no blanks, nothing after the digits. std::from_chars reports overflow as an error.
template <class Int>
std::optional<Int> whole_number(std::string_view text) {
    Int value{};
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value < 0)
        return std::nullopt;
    return value;
}

// Reads `[type:]n{,[type:]n}`, as in SLURM_GPUS_PER_TASK=a100:2, and returns the sum. The limit per
// item keeps the sum far from overflow.
std::optional<int> typed_count(std::string_view text) {
    int sum = 0;
    while (true) {
        std::string_view item = text.substr(0, text.find(','));
        auto count = whole_number<int>(item.substr(item.rfind(':') + 1));
        if (!count || *count > 65536) return std::nullopt;
        sum += *count;
        if (item.size() == text.size()) return sum;
        text.remove_prefix(item.size() + 1);
    }
}

// Reads one variable after another and keeps only the first error. So the functions below are plain
// lists of what they read, without a check after each line.
class Reader {
  public:
    explicit Reader(const Environment& environment) : environment_(environment) {}

    std::string text(const char* name) const {
        const std::string* value = find(environment_, name);
        return value ? *value : "";
    }

    template <class Int>
    std::optional<Int> number(const char* name) {
        const std::string* value = find(environment_, name);
        if (!value) return std::nullopt;
        auto read = whole_number<Int>(*value);
        if (!read) fail(wrong(name, *value, "not a whole number"));
        return read;
    }

    std::optional<int> typed(const char* name) {
        const std::string* value = find(environment_, name);
        if (!value) return std::nullopt;
        auto read = typed_count(*value);
        if (!read) fail(wrong(name, *value, "not a count like 4 or a100:4"));
        return read;
    }

    std::vector<std::string> hosts(const Variable& variable) {
        if (!variable.value) return {};
        auto names = expand_hostlist(*variable.value);
        if (names) return std::move(*names);
        fail(wrong(variable.name, *variable.value, names.error().sentence()));
        return {};
    }

    std::vector<int> counts(const char* name) {
        const std::string* value = find(environment_, name);
        if (!value) return {};
        auto read = expand_count_list(*value);
        if (!read) {
            fail(wrong(name, *value, read.error().sentence()));
            return {};
        }
        std::vector<int> counts;
        // Counts are capped, so that they fit into an int.
        for (std::int64_t count : *read)
            counts.push_back(static_cast<int>(std::min<std::int64_t>(count, 1 << 30)));
        return counts;
    }

    // Reads `20001-20004` or `20001-20002,20007`, with or without brackets. The text has the form
    // of a host list's bracket, so the host list parser reads it.
    std::vector<int> ports(const char* name) {
        const std::string* value = find(environment_, name);
        if (!value) return {};
        auto names = expand_hostlist(value->front() == '[' ? *value : '[' + *value + ']');
        std::vector<int> ports;
        for (const std::string& text : names ? *names : std::vector<std::string>{}) {
            auto port = whole_number<int>(text);
            if (!port || *port == 0 || *port > 65535) break;
            ports.push_back(*port);
        }
        if (!names || ports.size() != names->size())
            fail(wrong(name, *value, "not a range of ports"));
        return ports;
    }

    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }
    const std::optional<Error>& error() const { return error_; }
    const Environment& environment() const { return environment_; }

  private:
    const Environment& environment_;
    std::optional<Error> error_;
};

// The nodes of the step, and which of them is ours. The step's own list comes first: a step may use
// only some of the job's nodes.
void read_nodes(Reader& reader, Allocation& allocation) {
    Variable list = first_of(reader.environment(),
                             {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    if (!list.value)
        return reader.fail(usage_error("SLURM_STEP_NODELIST is not set within step " +
                                       allocation.job_id + "." + allocation.step_id +
                                       "; does --export or a container drop Slurm's variables?"));
    allocation.nodes = reader.hosts(list);
    allocation.job_nodes =
        reader.hosts(first_of(reader.environment(), {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}));
    auto told = reader.number<int>("SLURM_STEP_NUM_NODES");
    if (reader.error()) return;
    std::string count = std::to_string(allocation.nodes.size());
    // The variables contradict each other, for example after a script set one of them by hand. A
    // guess would make this node wait for nodes that never come.
    if (told && static_cast<std::size_t>(*told) != allocation.nodes.size())
        return reader.fail(
            wrong(list.name, *list.value,
                  count + " nodes, but SLURM_STEP_NUM_NODES is " + std::to_string(*told)));

    // Without SLURM_NODEID a node of a larger step does not know which one it is. In a step of one
    // node there is only one answer.
    auto node_id = reader.number<int>("SLURM_NODEID");
    if (!node_id && allocation.nodes.size() > 1)
        return reader.fail(
            usage_error("SLURM_NODEID is not set in a step of " + count +
                        " nodes; does --export or a container drop Slurm's variables?"));
    allocation.node_id = node_id.value_or(0);
    if (static_cast<std::size_t>(allocation.node_id) >= allocation.nodes.size())
        return reader.fail(wrong("SLURM_NODEID", std::to_string(allocation.node_id),
                                 std::string(list.name) + " names only " + count + " nodes"));
    allocation.node_name = allocation.nodes[static_cast<std::size_t>(allocation.node_id)];
}

// How many tasks run on each node, and which of them is ours. The checks reject a task number that
// the counts do not have.
void read_tasks(Reader& reader, Allocation& allocation) {
    allocation.tasks_per_node = reader.counts("SLURM_STEP_TASKS_PER_NODE");
    allocation.proc_id = reader.number<int>("SLURM_PROCID").value_or(0);
    allocation.local_id = reader.number<int>("SLURM_LOCALID").value_or(0);
    allocation.distribution = reader.text("SLURM_DISTRIBUTION");
    // The list of counts must match the list of nodes. Later code uses the same index for both.
    std::size_t counts = allocation.tasks_per_node.size();
    if (!reader.error() && counts != 0 && counts != allocation.nodes.size())
        reader.fail(wrong("SLURM_STEP_TASKS_PER_NODE", reader.text("SLURM_STEP_TASKS_PER_NODE"),
                          std::to_string(counts) + " counts for " +
                              std::to_string(allocation.nodes.size()) + " nodes"));
    if (reader.error() || counts == 0) return;
    const auto below = [&](const char* name, int value, long long tasks, const char* where) {
        if (value >= tasks)
            reader.fail(wrong(name, std::to_string(value),
                              std::string("SLURM_STEP_TASKS_PER_NODE has ") +
                                  std::to_string(tasks) + " tasks " + where));
    };
    const auto& each = allocation.tasks_per_node;
    below("SLURM_LOCALID", allocation.local_id, allocation.tasks_here(), "on this node");
    below("SLURM_PROCID", allocation.proc_id, std::accumulate(each.begin(), each.end(), 0LL),
          "in this step");
}

// What Slurm gave the step on this node: GPUs, CPUs, ports.
void read_resources(Reader& reader, Allocation& allocation) {
    allocation.gpus_on_node = reader.number<int>("SLURM_GPUS_ON_NODE");
    allocation.gpus_per_task = reader.typed("SLURM_GPUS_PER_TASK");
    allocation.cpus_on_node = reader.number<int>("SLURM_CPUS_ON_NODE");
    allocation.cpus_per_task = reader.number<int>("SLURM_CPUS_PER_TASK");
    const Environment& environment = reader.environment();
    // This is the only variable for which empty and unset differ: empty means no GPU, unset may
    // mean all.
    if (auto devices = environment.find("CUDA_VISIBLE_DEVICES"); devices != environment.end())
        allocation.visible_devices = devices->second;
    // SLURM_JOB_GPUS must not be used: on every node it holds the GPU indices of the batch host.
    if (const std::string* gpus = find(environment, "SLURM_STEP_GPUS"))
        allocation.step_gpus = *gpus;
    allocation.reserved_ports = reader.ports("SLURM_STEP_RESV_PORTS");
}

}  // namespace

// The order matters: a batch script has nearly all variables of a task, and only the step id tells
// them apart.
Context context_of(const Environment& environment) {
    if (!first_of(environment, {"SLURM_JOB_ID", "SLURM_JOBID"}).value) return Context::none;
    Variable step = first_of(environment, {"SLURM_STEP_ID", "SLURM_STEPID"});
    // slurmd sets SLURMD_NODENAME. A shell of salloc on a login node was not started by slurmd.
    if (!step.value) return find(environment, "SLURMD_NODENAME") ? Context::batch : Context::shell;
    if (is(*step.value, kInteractiveStep)) return Context::interactive;
    if (is(*step.value, kBatchStep) || is(*step.value, kExternStep)) return Context::batch;
    return Context::step;
}

// The reader collects errors, so this function checks only once, at its end.
Result<std::optional<Allocation>> read_allocation(const Environment& environment) {
    if (context_of(environment) != Context::step) return std::optional<Allocation>();
    Reader reader(environment);
    Allocation allocation;
    allocation.cluster = reader.text("SLURM_CLUSTER_NAME");
    allocation.job_id = *first_of(environment, {"SLURM_JOB_ID", "SLURM_JOBID"}).value;
    allocation.step_id = *first_of(environment, {"SLURM_STEP_ID", "SLURM_STEPID"}).value;
    if (!whole_number<std::int64_t>(allocation.job_id))
        reader.fail(wrong("SLURM_JOB_ID", allocation.job_id, "not a whole number"));
    if (!whole_number<std::int64_t>(allocation.step_id))
        reader.fail(wrong("SLURM_STEP_ID", allocation.step_id, "not a whole number"));
    read_nodes(reader, allocation);
    read_tasks(reader, allocation);
    read_resources(reader, allocation);
    allocation.restart_count = reader.number<int>("SLURM_RESTART_COUNT").value_or(0);
    // sbatch(1) does not list it: slurmd sets it for the script, and srun passes it on.
    allocation.batch_job = reader.text("ENVIRONMENT") == "BATCH";
    allocation.end_time = reader.number<std::int64_t>("SLURM_JOB_END_TIME");
    allocation.launch_node_address = reader.text("SLURM_LAUNCH_NODE_IPADDR");
    allocation.submit_directory = reader.text("SLURM_SUBMIT_DIR");
    if (reader.error()) return *reader.error();
    return std::optional<Allocation>(std::move(allocation));
}

std::optional<ScriptJob> read_script_job(const Environment& environment) {
    Reader reader(environment);
    if (context_of(environment) != Context::batch || reader.text("ENVIRONMENT") != "BATCH" ||
        find(environment, "DDPRUN_STOP_FILE"))
        return std::nullopt;
    ScriptJob job;
    const std::string cluster = reader.text("SLURM_CLUSTER_NAME");
    job.name = (cluster.empty() ? "" : cluster + ".") +
               *first_of(environment, {"SLURM_JOB_ID", "SLURM_JOBID"}).value;
    job.restart_count = reader.number<int>("SLURM_RESTART_COUNT").value_or(0);
    job.end_time = reader.number<std::int64_t>("SLURM_JOB_END_TIME");
    return job;
}

}  // namespace ddprun::slurm
