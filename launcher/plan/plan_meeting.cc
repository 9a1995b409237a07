// Plans where the nodes meet (plan_meeting.h).
#include "launcher/plan/plan_meeting.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "launcher/plan/plan_tasks.h"
#include "slurm/hostlist.h"

namespace ddprun::launcher {
namespace {

using MaybeError = std::optional<Error>;
using slurm::Allocation;

constexpr int kRendezvousPort = 29400, kStaticPort = 29500;  // torchrun's
constexpr std::size_t kMostPorts = 16;                       // each costs a client one more connect

// All of 127.0.0.0/8, because Debian gives a host's own name 127.0.1.1.
bool is_loopback(std::string_view host) {
    return host == "localhost" || host.starts_with("127.") || host == "::1" ||
           host.starts_with("localhost.");
}

// An address must not be shortened at its first dot. IPv6 addresses contain a colon; names of hosts
// never do.
bool is_address(std::string_view host) {
    return host.find(':') != std::string_view::npos ||
           host.find_first_not_of("0123456789.") == std::string_view::npos;
}

// An address that no host has: all of 0.0.0.0/8 and ::, multicast, reserved, broadcast. A server
// may listen on one of them, but none can be called.
bool is_no_host(const std::string& host) {
    if (host.find(':') != host.npos)
        return host.find_first_not_of("0:") == host.npos || host.starts_with("ff") ||
               host.starts_with("FF");
    if (!is_address(host)) return false;
    const int first = std::atoi(host.c_str());
    return first == 0 || first >= 224;
}

// Slurm and the user may write the same host with and without its domain.
std::string_view short_name(std::string_view host) {
    return is_address(host) ? host : host.substr(0, host.find('.'));
}

// The index of a host in a list of names, with its domain or without; -1: not in the list.
int place_of(std::string_view host, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (short_name(names[i]) == short_name(host)) return static_cast<int>(i);
    return -1;
}

std::vector<int> ports_of(const PortRange& range) {
    std::vector<int> ports;
    for (int port = range.first; port <= range.last && ports.size() < kMostPorts; ++port)
        ports.push_back(port);
    return ports;
}

// The endpoint that the user gave, in either form of torchrun. If both are given, --rdzv-endpoint
// counts.
std::optional<HostPort> given_endpoint(const Options& options) {
    if (options.rdzv_endpoint) {
        HostPort endpoint = *options.rdzv_endpoint;
        // As in torchrun, only the static rendezvous takes a missing port from --master-port.
        bool is_static = options.rdzv_backend.value_or("static") == "static";
        if (!endpoint.port && is_static) endpoint.port = options.master_port;
        return endpoint;
    }
    if (!options.master_addr && !options.master_port) return std::nullopt;
    return HostPort{options.master_addr.value_or("127.0.0.1"),
                    options.master_port.value_or(kStaticPort)};
}

// The step is part of the name, because a job may run several steps at the same time.
std::string name_of(const Allocation& allocation) {
    std::string name = allocation.job_id + "." + allocation.step_id;
    return allocation.cluster.empty() ? name : allocation.cluster + "." + name;
}

// The order of trust: the user's choice, then the ports that Slurm has reserved for this step, then
// computed ones, which another program may use.
std::vector<int> step_ports(const Options& options, const Allocation& allocation) {
    if (options.ports) return ports_of(*options.ports);
    if (allocation.reserved_ports.empty()) return derived_ports(allocation);
    auto ports = allocation.reserved_ports;
    ports.resize(std::min(ports.size(), kMostPorts));
    return ports;
}

// Whether the endpoint is a node of the job on which this step does not run. Scripts that take
// `hostname` in the batch shell give such endpoints.
bool outside_step(const HostPort& endpoint, const Allocation& allocation, const HostFacts& host) {
    return place_of(endpoint.host, allocation.nodes) < 0 &&
           (place_of(endpoint.host, allocation.job_nodes) >= 0 ||
            std::ranges::count(host.addresses_outside_step, endpoint.host) > 0);
}

MaybeError place_in_step(Plan& plan, const Options& options, const Allocation& allocation,
                         const HostFacts& host) {
    plan.endpoint = {allocation.nodes.front(), step_ports(options, allocation)};
    plan.lead = allocation.node_id == 0 ? Lead::yes : Lead::no;
    // A batch script calls srun on the first node of the job. A login shell calls it elsewhere,
    // where no node of this job answers.
    if (!allocation.job_nodes.empty() && allocation.job_nodes.front() == allocation.nodes.front())
        plan.endpoint.if_unknown = allocation.launch_node_address;
    auto given = given_endpoint(options);
    // --master-port alone says nothing about the host.
    if (given && !options.rdzv_endpoint && !options.master_addr)
        given->host = allocation.nodes.front();
    if (!given) return std::nullopt;
    // Each node would find only itself there, and wait for the others until the join timeout.
    if (is_loopback(given->host) && allocation.nodes.size() > 1)
        return usage_error("the endpoint " + given->host +
                           " is each node's own loopback address, where " +
                           std::to_string(allocation.nodes.size()) +
                           " nodes cannot meet; leave --rdzv-endpoint and --master-addr out: Slurm "
                           "knows the first node of the step");
    if (host.endpoint_unknown)
        return usage_error("the endpoint " + given->host + ": no host of this name is known on " +
                           allocation.node_name + ", and it is no node of this step (" +
                           slurm::fold_hostlist(allocation.nodes) +
                           "); leave --rdzv-endpoint and --master-addr out: Slurm knows the first "
                           "node of the step");
    // The user's port comes first, then the derived ones: two jobs with one fixed port often share
    // a node.
    if (const int first = given->port.value_or(0); first != 0) {
        std::erase(plan.endpoint.ports, first);
        plan.endpoint.ports.insert(plan.endpoint.ports.begin(), first);
    }
    // Each node that has such a bridge would take itself for the leader, and train alone.
    if (!host.endpoint_bridge.empty() && allocation.nodes.size() > 1) {
        plan.warnings.push_back(
            "the endpoint " + given->host + " is an address of " + host.endpoint_bridge +
            ", a bridge that each host has for itself; the nodes meet at " + plan.endpoint.host +
            ", the first node of the step; leave the option out");
        return std::nullopt;
    }
    // A warning only: Slurm knows where the nodes can meet, so the job can run.
    if (outside_step(*given, allocation, host)) {
        plan.warnings.push_back(
            "the endpoint " + given->host + " is not a node of this step; the nodes meet at " +
            plan.endpoint.host + ", the first node of the step; leave the option out");
        return std::nullopt;
    }
    plan.endpoint.host = given->host;
    // That address belongs to the first node of the step.
    if (place_of(given->host, allocation.nodes) != 0) plan.endpoint.if_unknown.clear();
    // A name that is not in Slurm's list may be an alias or an address of one of its nodes. Each
    // node finds out by itself whether it has this address.
    int place = place_of(given->host, allocation.nodes);
    plan.lead = place < 0                     ? Lead::if_address_matches
                : place == allocation.node_id ? Lead::yes
                                              : Lead::no;
    return std::nullopt;
}

// If a script expands $SLURM_PROCID itself, every node gets 0. The second node is the first to see
// it, and one message is enough.
void say_unused_rank(Plan& plan, const Options& options, const Allocation& allocation) {
    const bool task = options.task_per_worker;
    const int own = task ? allocation.proc_id : allocation.node_id;
    if (!options.node_rank || *options.node_rank == own || own > 1) return;
    plan.host_warnings.push_back(
        "--node-rank=" + std::to_string(*options.node_rank) +
        " is not used: " + (task ? "SLURM_PROCID" : "SLURM_NODEID") + " is " + std::to_string(own) +
        (*options.node_rank == 0
             ? "; if the batch script expands $SLURM_PROCID, it is 0 on every node"
             : "") +
        "; leave the option out");
}

MaybeError meet_in_step(Plan& plan, const Options& options, const Allocation& allocation,
                        const HostFacts& host) {
    int nodes = static_cast<int>(allocation.nodes.size());
    std::string count = std::to_string(nodes);
    std::string names = slurm::fold_hostlist(allocation.nodes);
    if (options.standalone && nodes > 1)
        return usage_error(
            "--standalone: this step has " + count + " nodes (" + names +
            "), and each would train on its own; leave the option out, or use srun --nodes=1");
    NodeRange range = options.nnodes.value_or(NodeRange{nodes, nodes});
    if (range.min > nodes)
        return usage_error(
            "--nnodes=" + std::to_string(range.min) + ": this step has " + count + " node" +
            (nodes == 1 ? "" : "s") + " (" + names +
            "); leave the option out, or ask Slurm for --nodes=" + std::to_string(range.min));
    // A job of one node opens no port, so the other nodes could not even wait as spares.
    if (range.max == 1 && nodes > 1)
        return usage_error(
            "--nnodes=1: this step has " + count + " nodes (" + names +
            "), but a job of one node cannot use the others; leave the option out, or use srun "
            "--nodes=1");
    if (range.max < nodes)
        plan.warnings.push_back("--nnodes allows " + std::to_string(range.max) + " of the step's " +
                                count + " nodes; the others wait as spares");
    plan.limits.min_nodes = range.min, plan.limits.max_nodes = range.max;
    plan.run_id = name_of(allocation);
    // Cluster, job and step tell this run from all others; the user's id may stand in many scripts.
    // The workers see the one that the user has given.
    plan.workers.run_id = options.rdzv_id.value_or("");
    plan.node_name = allocation.node_name;
    plan.limits.order = allocation.nodes;
    plan.node_rank = allocation.node_id;
    plan.slurm_restart_count = allocation.restart_count;
    say_unused_rank(plan, options, allocation);
    // Nobody else can come, so any free port does. An endpoint that the user gave is respected, and
    // several tasks on the node are nodes of their own, which must meet.
    plan.standalone = nodes == 1 && range.max == 1 && !options.rdzv_endpoint &&
                      (!options.task_per_worker || allocation.most_tasks() == 1);
    if (plan.standalone) {
        plan.endpoint = {"localhost",
                         options.ports ? ports_of(*options.ports) : std::vector<int>{0}};
        plan.lead = Lead::yes;
    } else {
        if (auto error = place_in_step(plan, options, allocation, host)) return error;
    }
    plan.service_ports = plan.endpoint.ports;
    if (options.task_per_worker) tasks_as_nodes(plan, options, allocation);
    return std::nullopt;
}

// As in torchrun: is_host decides if it is given. Otherwise rank 0 leads, as with the static
// rendezvous, or the node with the endpoint's address, as with c10d.
Lead lead_of(const Options& options) {
    if (options.rdzv_conf.is_host) return *options.rdzv_conf.is_host ? Lead::yes : Lead::no;
    if (options.node_rank) return *options.node_rank == 0 ? Lead::yes : Lead::no;
    return Lead::if_address_matches;
}

MaybeError meet_elsewhere(Plan& plan, const Options& options, const HostFacts& host) {
    NodeRange range =
        options.standalone ? NodeRange{1, 1} : options.nnodes.value_or(NodeRange{1, 1});
    auto given = given_endpoint(options);
    plan.limits.min_nodes = range.min, plan.limits.max_nodes = range.max;
    plan.node_name = host.hostname;
    plan.standalone = options.standalone || (!given && range.max == 1);
    if (plan.standalone) {
        plan.run_id = options.rdzv_id.value_or(host.random_id);
        plan.endpoint = {"localhost",
                         options.ports ? ports_of(*options.ports) : std::vector<int>{0}};
        plan.lead = Lead::yes;
        return std::nullopt;
    }
    if (!given)
        return usage_error("--nnodes=" + std::to_string(range.max) +
                           ": the nodes need a place to meet; give --rdzv-endpoint=HOST:PORT, or "
                           "start ddprun with srun");
    bool host_only = !options.rdzv_endpoint && !options.master_addr;
    if (host_only && range.max > 1)
        return usage_error(
            "--master-port without --master-addr: the nodes need a host to meet at; give "
            "--rdzv-endpoint=HOST:PORT");
    // The leader would choose a port that no other node can know.
    if (given->port == 0 && range.max > 1)
        return usage_error(
            "--rdzv-endpoint: port 0 (any free port) works for one node only; give a port that all "
            "nodes know");
    if (options.node_rank && *options.node_rank >= range.max)
        return usage_error("--node-rank=" + std::to_string(*options.node_rank) +
                           ": with --nnodes=" + std::to_string(range.max) +
                           " the rank must be 0 to " + std::to_string(range.max - 1));
    plan.node_rank = options.node_rank;
    // "none" is torchrun's default for jobs of several nodes. All nodes must have the same id, so
    // it cannot be random.
    plan.run_id = options.rdzv_id.value_or("none");
    plan.endpoint.host = given->host;
    plan.endpoint.ports = given->port     ? std::vector<int>{*given->port}
                          : options.ports ? ports_of(*options.ports)
                                          : std::vector<int>{kRendezvousPort};
    plan.lead = lead_of(options);
    // It may be meant: the other nodes are containers of this host.
    if (!host.endpoint_bridge.empty() && range.max > 1)
        plan.host_warnings.push_back(
            "the endpoint " + given->host + " is an address of " + host.endpoint_bridge +
            ", a bridge to containers or virtual machines of this host: ddprun on other hosts does "
            "not come here, and leads a job of its own where it has such a bridge; give "
            "--rdzv-endpoint an address that reaches the other hosts");
    return std::nullopt;
}

// Whether nodes of other steps take part, or one that the batch script itself has started, so that
// Slurm's list does not name them all: the user has named an endpoint, and the step is one node
// (the script calls srun once per node) or too small for --nnodes.
bool steps_meet(const Options& options, const Allocation& allocation) {
    if (!options.nnodes || options.standalone || !(options.rdzv_endpoint || options.master_addr))
        return false;
    const auto nodes = static_cast<int>(allocation.nodes.size());
    return nodes == 1 ? options.nnodes->max > 1 : options.nnodes->min > nodes;
}

// For an endpoint of which each node finds out by itself whether it has the address. In a step its
// first node says it: if another one has the address, the first is with it soon.
std::string endpoint_doubt(const Plan& plan) {
    if (plan.lead != Lead::if_address_matches) return {};
    const std::string& host = plan.endpoint.host;
    const std::vector<std::string>& nodes = plan.limits.order;
    const std::string begin = "nobody answers at the endpoint " + host +
                              " yet, which is no address of this node (" + plan.node_name + "); ";
    if (nodes.empty())
        return begin +
               "if it is none of the other nodes', nobody ever will: start ddprun on that host, "
               "too, or correct --rdzv-endpoint";
    if (plan.node_rank != 0) return {};
    return begin + "if it is none of the other nodes' of this step (" +
           slurm::fold_hostlist(nodes) +
           "), nobody ever will: leave --rdzv-endpoint and --master-addr out, since Slurm knows "
           "the first node of the step";
}

}  // namespace

// Takes the first IPv4 address of the interface, else an IPv6 address that is valid beyond the
// local link: an fe80 address means nothing to a host on another link.
MaybeError plan_address(Plan& plan, const Options& options, const HostFacts& host) {
    plan.local_addr = options.local_addr;
    if (!options.interface) return std::nullopt;
    const std::string option = "--interface=" + *options.interface;
    if (options.local_addr)
        return usage_error(option + " with --local-addr: leave one of them out");
    std::string others, v6;
    for (const auto& [interface, address] : host.interfaces) {
        if (interface != *options.interface) {
            // An interface with several addresses is named once.
            if ((" " + others + ",").find(" " + interface + ",") == std::string::npos)
                others += (others.empty() ? "" : ", ") + interface;
            continue;
        }
        const bool four = address.find(':') == std::string::npos;
        if (four && !plan.local_addr) plan.local_addr = address;
        if (!four && v6.empty() && !address.starts_with("fe80")) v6 = address;
    }
    if (!plan.local_addr && !v6.empty()) plan.local_addr = v6;
    if (!plan.local_addr)
        return usage_error(option + ": " + plan.node_name +
                           " has no address on this interface, but on " + others);
    // Tasks of one host may meet on loopback; nodes on different hosts cannot.
    if (is_loopback(*plan.local_addr) && plan.limits.max_nodes > 1 &&
        !(plan.task && is_loopback(plan.endpoint.host)))
        return usage_error(
            option + ": " + *plan.local_addr +
            " is each node's own loopback address; give an interface that reaches the other nodes");
    return std::nullopt;
}

std::vector<int> derived_ports(const Allocation& allocation) {
    constexpr long long kFirst = 20000, kCount = 10000, kApart = 2503;
    auto below_count = [](const std::string& digits) {
        long long value = 0;
        for (char c : digits) value = (value * 10 + (c - '0')) % kCount;
        return value;
    };
    // 37 and 1 keep neighbouring jobs and steps on different ports, also on their alternatives.
    long long start = below_count(allocation.job_id) * 37 + below_count(allocation.step_id);
    std::vector<int> ports;
    for (long long k = 0; k < 4; ++k)
        ports.push_back(static_cast<int>(kFirst + (start + k * kApart) % kCount));
    return ports;
}

MaybeError plan_meeting(Plan& plan, const Options& options,
                        const std::optional<Allocation>& allocation, const HostFacts& host) {
    const bool in_step =
        allocation && (options.task_per_worker || !steps_meet(options, *allocation));
    auto error = in_step ? meet_in_step(plan, options, *allocation, host)
                         : meet_elsewhere(plan, options, host);
    if (!error && plan.limits.max_nodes > 1 && is_no_host(plan.endpoint.host))
        error =
            usage_error("the endpoint " + plan.endpoint.host + " is the address of no host, so " +
                        std::to_string(plan.limits.max_nodes) +
                        " nodes cannot meet there; give the name or address of one of them");
    plan.endpoint_doubt = endpoint_doubt(plan);
    if (in_step) return error;
    if (!error && allocation) {
        plan.node_name = allocation->node_name;
        plan.slurm_restart_count = allocation->restart_count;
        // Leaves the step id out, since it differs from node to node here. Where the batch script
        // may have started a node itself, that one knows no step, and all keep torchrun's default.
        const std::size_t nodes = allocation->nodes.size();
        if (!options.rdzv_id && nodes == 1)
            plan.run_id =
                (allocation->cluster.empty() ? "" : allocation->cluster + ".") + allocation->job_id;
        plan.notes.push_back("this step has " +
                             (nodes == 1 ? "one node" : std::to_string(nodes) + " nodes") +
                             "; the other nodes of --nnodes are in other steps");
    }
    return error;
}

}  // namespace ddprun::launcher
