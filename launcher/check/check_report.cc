// Decides what is wrong in a check: one function a row, each from the findings of all nodes.
#include "launcher/check/check_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/count_text.h"
#include "slurm/hostlist.h"

namespace ddprun::launcher {
namespace {

using State = CheckRow::State;

constexpr std::int64_t kMiB = 1 << 20;
// The least free space and descriptors that a job should find. Below these a job can start, but
// often fails later with an error that does not name the cause.
constexpr std::int64_t kLeastTemporary = 100 * kMiB;
constexpr std::int64_t kLeastShared = 128 * kMiB;  // a container's default is 64 MiB
constexpr std::int64_t kLeastFiles = 1024;
constexpr std::size_t kNamed = 3;  // names in one finding

// "n1, n2, n3 and 4 more".
std::string some_of(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i)
        text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kNamed) text += " and " + std::to_string(names.size() - kNamed) + " more";
    return text;
}

// A row is wrong if and only if it has findings.
CheckRow row_of(std::string name, std::string sentence, std::vector<std::string> findings) {
    const State state = findings.empty() ? State::good : State::wrong;
    return {std::move(name), state, std::move(sentence), std::move(findings)};
}

// Collects findings. Nodes with the same problem share one finding: "n2, n3: WHAT".
class Findings {
  public:
    void add(const std::string& what, const std::string& node) { nodes_[what].push_back(node); }
    std::vector<std::string> lines() const {
        std::vector<std::string> lines;
        for (const auto& [what, nodes] : nodes_) lines.push_back(some_of(nodes) + ": " + what);
        return lines;
    }

  private:
    std::map<std::string, std::vector<std::string>> nodes_;
};

// A node that did not answer has told no name, so it is named by its rank.
std::string name_of(const CheckedJob& job, int rank) {
    const auto& facts = job.nodes.at(static_cast<std::size_t>(rank));
    return facts ? facts->name : "the node of rank " + std::to_string(rank);
}

template <class Look>
void each(const CheckedJob& job, Look look) {
    for (const auto& facts : job.nodes)
        if (facts) look(*facts);
}

// Nodes that did not come, and nodes that came and then fell silent. Which names are missing can be
// told only if all that came gave their name. If one is silent, its name may be among those that
// seem missing.
CheckRow nodes_row(const CheckedJob& job) {
    const auto came = job.nodes.size(), wanted = static_cast<std::size_t>(job.nodes_wanted);
    std::vector<std::string> findings, missing, silent;
    std::set<std::string> names;
    each(job, [&](const NodeFacts& node) { names.insert(node.name); });
    for (std::size_t rank = 0; rank < came; ++rank)
        if (!job.nodes[rank]) silent.push_back(std::to_string(rank));
    for (const std::string& name : job.expected)
        if (!names.contains(name) && silent.empty()) missing.push_back(name);
    if (came < wanted)
        findings.push_back(
            (missing.empty() ? count_text(wanted - came, "node") : some_of(missing)) +
            " did not come in time; see ddprun's log there: ddprun did not start, "
            "or cannot reach " +
            job.meeting_place);
    if (!silent.empty())
        findings.push_back("rank " + some_of(silent) +
                           ": joined, then stopped answering; does a file system hang there?");
    if (wanted == 1) return row_of("nodes", "one node", std::move(findings));
    return row_of("nodes",
                  std::to_string(came) + " of " + std::to_string(wanted) + " have met at " +
                      job.meeting_place,
                  std::move(findings));
}

// Connections that failed. A node that nobody reaches is one finding, not one for each other node.
// When two nodes cannot reach each other, both directions are one finding.
CheckRow network_row(const CheckedJob& job) {
    const std::size_t nodes = job.nodes.size();
    if (nodes < 2) return {"network", State::skipped, "only one node: nothing to test", {}};
    std::map<std::pair<int, int>, std::string> cut;  // (from, to) and why
    std::vector<std::size_t> missed(nodes);
    std::vector<std::string> reasons(nodes);  // as the first of these told it
    std::size_t reached = 0;
    for (std::size_t from = 0; from < nodes; ++from) {
        if (!job.nodes[from]) continue;
        reached += static_cast<std::size_t>(job.nodes[from]->reached);
        for (const auto& [to, why] : job.nodes[from]->unreached) {
            // Ranks come from another node's text, so they are checked before they are used as an
            // index.
            if (to < 0 || static_cast<std::size_t>(to) >= nodes) continue;
            cut[{static_cast<int>(from), to}] = why;
            if (missed[static_cast<std::size_t>(to)]++ == 0)
                reasons[static_cast<std::size_t>(to)] = why;
        }
    }
    // The most frequent reasons on a cluster; which one it is, only the site can tell.
    static const std::string fix =
        "; let the nodes of a job connect to each other on all ports (firewall, routes, "
        "--local-addr)";
    std::vector<std::string> findings;
    for (std::size_t to = 0; to < nodes; ++to)
        // Of two nodes one cannot say which is at fault, so this finding needs at least three.
        if (nodes > 2 && missed[to] == nodes - 1)
            findings.push_back("no node reaches " + name_of(job, static_cast<int>(to)) + ": " +
                               reasons[to] + fix);
    for (const auto& [pair, why] : cut) {
        const auto& [from, to] = pair;
        if (nodes > 2 && missed[static_cast<std::size_t>(to)] == nodes - 1) continue;
        const bool both = cut.contains({to, from});
        if (both && to < from) continue;
        findings.push_back(name_of(job, from) + (both ? " and " : " does not reach ") +
                           name_of(job, to) + (both ? " do not reach each other: " : ": ") + why +
                           fix);
    }
    return row_of("network",
                  std::to_string(reached) + " of " + std::to_string(nodes * (nodes - 1)) +
                      " connections between nodes",
                  std::move(findings));
}

// Every node must read the ledger that the leader has begun. Two different marks under one name
// mean two different folders or servers: a local disk at the same path, or a name with two
// meanings.
CheckRow ledger_row(const CheckedJob& job) {
    if (!rendezvous::is_shared(job.ledger))
        return {"ledger",
                State::skipped,
                job.nodes.size() < 2
                    ? "in memory"
                    : "in memory: the loss of the leader's node ends a job; see --ledger",
                {}};
    const rendezvous::LedgerWords words = rendezvous::words_of(job.ledger);
    Findings found;
    const std::uint64_t mark = job.nodes.front() ? job.nodes.front()->ledger_mark : 0;
    each(job, [&](const NodeFacts& node) {
        if (!node.ledger_fault.empty())
            found.add(node.ledger_fault + (words.errors_have_fix ? "" : words.fix), node.name);
        else if (node.ledger_mark != mark)
            found.add("this node sees " + words.another + " than the first node" + words.fix,
                      node.name);
    });
    return row_of("ledger", rendezvous::to_text(job.ledger), found.lines());
}

// Fewer GPUs than Slurm promises: usually a GPU that fell off the bus. More is no fault, because
// Slurm may give a job only some of a node's GPUs.
CheckRow gpus_row(const CheckedJob& job) {
    Findings found;
    // How many nodes have how many GPUs. Slurm's number counts, where there is one.
    std::map<int, int> counts;
    bool any = false;
    each(job, [&](const NodeFacts& node) {
        any = any || node.gpus_given.value_or(0) > 0 || node.gpus_shown > 0;
        ++counts[node.gpus_given.value_or(node.gpus_shown)];
        for (const std::string& fault : node.gpu_faults) found.add(fault, node.name);
        if (node.gpus_given.value_or(0) > node.gpus_shown)
            found.add("Slurm gives " + count_text(*node.gpus_given, "GPU") +
                          ", but the driver shows " + std::to_string(node.gpus_shown) +
                          "; exclude the node (--exclude) and tell the site",
                      node.name);
    });
    if (!any) return {"gpus", State::skipped, "no GPU here, and none requested", {}};
    std::string sentence;
    for (const auto& [count, nodes] : counts)
        sentence += (sentence.empty() ? "" : ", ") + std::to_string(count) + " on " +
                    count_text(nodes, "node");
    return row_of("gpus", sentence, found.lines());
}

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, seconds < 1 ? "%.2g s" : "%.1f s", seconds);
    return text;
}

CheckRow clocks_row(const CheckedJob& job) {
    Findings found;
    double most = 0;
    bool any = false;
    each(job, [&](const NodeFacts& node) {
        // The node with rank 0 has none: the others are compared with it.
        if (!node.clock) return;
        any = true;
        // The measured difference contains the message's travel time. Only the part that this
        // cannot explain counts.
        const double apart = std::max(0.0, std::abs(node.clock->ahead) - node.clock->within);
        most = std::max(most, apart);
        if (apart > kClocksApart)
            found.add(std::string("the clock is ") + seconds_text(apart) +
                          (node.clock->ahead > 0 ? " behind" : " ahead of") +
                          " the first node's; log and file times cannot be compared, and MUNGE may "
                          "refuse credentials; tell the site (NTP)",
                      node.name);
    });
    if (!any) return {"clocks", State::skipped, "no other clock to compare with", {}};
    return row_of("clocks",
                  most > 0 ? "at most " + seconds_text(most) + " from the first node's"
                           : "no measurable difference",
                  found.lines());
}

// The row is named `workers`. It has the faults of the user's program and the number of workers a
// node.
CheckRow program_row(const CheckedJob& job) {
    Findings found;
    int least = 0, most = 0;
    each(job, [&](const NodeFacts& node) {
        if (!node.program_fault.empty()) found.add(node.program_fault, node.name);
        least = least == 0 ? node.slots : std::min(least, node.slots);
        most = std::max(most, node.slots);
    });
    const std::string workers =
        least == most ? count_text(most, "worker")
                      : std::to_string(least) + " to " + std::to_string(most) + " workers";
    return row_of("workers", workers + " on each node", found.lines());
}

// A cold start is no fault, so this row is never wrong.
CheckRow warm_row(const CheckedJob& job) {
    const auto& first = job.nodes.front();
    if (!first || !first->warm)
        return {"warm", State::skipped, "no Python workers, or --warm=off: cold starts", {}};
    const agent::warm::WarmCheck& warm = *first->warm;
    if (!warm.cold.empty())
        return {"warm", State::skipped, "cold starts, because " + warm.cold, {}};
    const std::string sentence = "a server can import " + count_text(warm.modules, "module") +
                                 "; a cold worker reads " + count_text(warm.files, "file") +
                                 " for them, with " + count_text(warm.looks, "look") +
                                 " for files; with the server that happens once on a node";
    return {"warm", State::good, sentence, {}};
}

// The delay is the site's choice, so this row is never wrong.
CheckRow requeue_row(const CheckedJob& job) {
    const auto& first = job.nodes.front();
    if (!first || !first->requeue_delay)
        return {"requeue", State::skipped, "no job of Slurm to put back into its queue", {}};
    const std::string sentence = "Slurm holds a requeued job for " +
                                 std::to_string(*first->requeue_delay) +
                                 " s; --requeue-begin shortens that after a run that was longer "
                                 "and made progress";
    return {"requeue", State::good, sentence, {}};
}

std::string mib(std::int64_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

// A full /tmp or a small /dev/shm (in containers) makes workers fail in ways that hide the cause.
CheckRow space_row(const CheckedJob& job) {
    Findings found;
    each(job, [&](const NodeFacts& node) {
        if (node.temporary_free && *node.temporary_free < kLeastTemporary)
            found.add(node.temporary + " has " + mib(*node.temporary_free) +
                          " free; set TMPDIR to a folder with more space",
                      node.name);
        if (node.shared_memory_free && *node.shared_memory_free < kLeastShared)
            found.add("/dev/shm has " + mib(*node.shared_memory_free) +
                          " free, too little for the memory that NCCL and data loaders share; "
                          "enlarge it, for a container with an option such as --shm-size",
                      node.name);
    });
    return row_of("space", "temporary files and shared memory", found.lines());
}

// Any limit on locked memory is a finding where there is RDMA: registering a buffer fails beyond
// it.
CheckRow limits_row(const CheckedJob& job) {
    Findings found;
    each(job, [&](const NodeFacts& node) {
        if (node.rdma && node.locked_memory)
            found.add("RLIMIT_MEMLOCK is " + std::to_string(*node.locked_memory / 1024) +
                          " KiB, too little for RDMA; run ulimit -l unlimited before sbatch, or "
                          "tell the site",
                      node.name);
        if (node.open_files && *node.open_files < kLeastFiles)
            found.add(
                "RLIMIT_NOFILE is " + std::to_string(*node.open_files) +
                    ", too few open files; raise it with ulimit -n before sbatch, or tell the site",
                node.name);
    });
    return row_of("limits", "locked memory, open files", found.lines());
}

}  // namespace

bool CheckReport::good() const {
    return std::ranges::none_of(rows,
                                [](const CheckRow& row) { return row.state == State::wrong; });
}

CheckReport make_check_report(CheckedJob job) {
    CheckReport report{std::move(job), {}};
    for (auto* make : {nodes_row, network_row, ledger_row, gpus_row, clocks_row, program_row,
                       warm_row, requeue_row, space_row, limits_row})
        report.rows.push_back(make(report.job));
    return report;
}

}  // namespace ddprun::launcher
