// The types of option values, and how each is read from its text. Pure.
//
// Every reader returns an error whose sentence lacks the option's name ("not a number; give a
// count, auto, gpu or cpu"); the caller puts the name in front. Possible errors of all readers:
// usage.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/cpu_share.h"
#include "agent/output/output_plan.h"
#include "agent/parts/stop_policy.h"
#include "base/command_line/plain_values.h"
#include "base/error.h"
#include "base/time.h"
#include "rendezvous/model/identity_mode.h"
#include "rendezvous/model/model.h"
#include "slurm/worker_variables.h"
#include "store/door/network.h"

namespace ddprun::launcher {

// --nnodes=N or MIN:MAX, with 1 <= min <= max.
struct NodeRange {
    int min = 1, max = 1;
    bool operator==(const NodeRange&) const = default;
};

// --nproc-per-node: a number, or what to count.
struct WorkersPerNode {
    enum class Kind {
        count,      // `count` workers
        automatic,  // one for each GPU; without GPUs one for each CPU
        gpu,        // one for each GPU; an error if there is none
        cpu,        // one for each CPU of the affinity mask
    };
    Kind kind = Kind::count;
    int count = 1;
    bool operator==(const WorkersPerNode&) const = default;
};

// --ports=FROM-TO, both ends included.
struct PortRange {
    int first = 0, last = 0;
    bool operator==(const PortRange&) const = default;
};

// Which streams of a worker, as torchrun's digit: 0 none, 1 stdout, 2 stderr, 3 both.
struct Streams {
    bool out = false, err = false;
    bool operator==(const Streams&) const = default;
};

// --redirects and --tee: one digit for all workers, or `local rank:digit,…` for some.
struct StreamsPerRank {
    Streams all;
    std::map<int, Streams> by_rank;  // ranks that are not listed have `all`
    Streams of(int local_rank) const {
        auto found = by_rank.find(local_rank);
        return found == by_rank.end() ? all : found->second;
    }
    bool operator==(const StreamsPerRank&) const = default;
};

Result<NodeRange> read_node_range(std::string_view text);
Result<WorkersPerNode> read_workers_per_node(std::string_view text);
Result<PortRange> read_port_range(std::string_view text);
Result<rendezvous::IdentityMode> read_identity(std::string_view text);
Result<rendezvous::OnJoin> read_on_join(std::string_view text);
// Whether a node leaves at SIGTERM.
Result<bool> read_on_sigterm(std::string_view text);
// --max-restarts: a number, or auto, which is rendezvous::kAutoRestarts.
Result<int> read_restart_limit(std::string_view text);
Result<StreamsPerRank> read_streams(std::string_view text);
Result<std::vector<int>> read_rank_list(std::string_view text);
// --duplicate-stdout-filters: texts separated by commas. Two commas in a row mean one comma in a
// text. An empty text matches every line.
std::vector<std::string> read_filters(std::string_view text);
Result<agent::CpuBinding> read_numa_binding(std::string_view text);
Result<slurm::WorkerVariables> read_slurm_env(std::string_view text);
Result<agent::RequeueMode> read_requeue(std::string_view text);
// Options::verbosity for a level of Python's logging, from the variable LOGLEVEL. Nothing: the word
// is no level; the variable may belong to another program.
std::optional<int> verbosity_of(std::string_view level);
// --store-allow: addresses or networks; "any" is the network of all addresses.
Result<std::vector<store::Network>> read_networks(std::string_view text);
// A number of 1 or more; K, M, G or T behind it mean powers of 1024.
Result<std::uint64_t> read_size(std::string_view text);

}  // namespace ddprun::launcher
