// Reads the values of options. Each sentence says what is wrong and what to give instead.
#include "launcher/options/option_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

namespace ddprun::launcher {
namespace {

// Empty parts are kept: a caller can then refuse them.
std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

// Far above what exists. They catch typing errors such as one digit too many.
constexpr int kMostNodes = 1'000'000, kMostWorkers = 4096, kMostPort = 65535;

// Bit 0 is stdout, bit 1 is stderr.
Result<Streams> read_digit(std::string_view text) {
    if (text.size() != 1 || text[0] < '0' || text[0] > '3')
        return usage_error("not 0, 1, 2 or 3 (none, stdout, stderr, both)");
    int digit = text[0] - '0';
    return Streams{(digit & 1) != 0, (digit & 2) != 0};
}

}  // namespace

Result<NodeRange> read_node_range(std::string_view text) {
    std::size_t colon = text.find(':');
    auto min = whole_number(text.substr(0, colon));
    auto max = colon == std::string_view::npos ? min : whole_number(text.substr(colon + 1));
    if (!min || !max) return usage_error("not a number of nodes; give N or MIN:MAX");
    if (std::min(*min, *max) < 1 || std::max(*min, *max) > kMostNodes)
        return usage_error("not within 1 to " + std::to_string(kMostNodes) + "; give N or MIN:MAX");
    if (*min > *max)
        return usage_error("MIN is above MAX; give " + std::to_string(*max) + ":" +
                           std::to_string(*min));
    return NodeRange{*min, *max};
}

Result<WorkersPerNode> read_workers_per_node(std::string_view text) {
    using Kind = WorkersPerNode::Kind;
    if (text == "auto") return WorkersPerNode{Kind::automatic, 0};
    if (text == "gpu") return WorkersPerNode{Kind::gpu, 0};
    if (text == "cpu") return WorkersPerNode{Kind::cpu, 0};
    // torchrun counts these through PyTorch, which ddprun does not load.
    if (text == "xpu") return usage_error("ddprun cannot count these GPUs; give their number");
    // Users pass $SLURM_GPUS_PER_NODE, which is "a100:4" if they asked for a type.
    std::size_t colon = text.rfind(':');
    auto count = whole_number(colon == std::string_view::npos ? text : text.substr(colon + 1));
    if (!count) return usage_error("not a number; give a count, auto, gpu or cpu");
    if (*count < 1 || *count > kMostWorkers)
        return usage_error("not within 1 to " + std::to_string(kMostWorkers) +
                           "; give a count, auto, gpu or cpu");
    return WorkersPerNode{Kind::count, *count};
}

Result<PortRange> read_port_range(std::string_view text) {
    std::size_t dash = text.find('-');
    auto first = whole_number(text.substr(0, dash));
    auto last = dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1));
    if (!first || !last) return usage_error("not a range of ports; give FROM-TO, e.g. 20000-20015");
    if (*first < 1 || *first > *last || *last > kMostPort)
        return usage_error(
            "not a range of ports; give FROM-TO within 1 to 65535, FROM not above TO");
    return PortRange{*first, *last};
}

Result<rendezvous::IdentityMode> read_identity(std::string_view text) {
    if (const auto mode = rendezvous::read_identity_mode(text)) return *mode;
    return usage_error("not known; give auto, require or none");
}

Result<int> read_restart_limit(std::string_view text) {
    if (text == "auto") return rendezvous::kAutoRestarts;
    auto count = whole_number(text);
    if (!count || *count < 0)
        return usage_error("not a number of restarts; give 0 or more, or auto");
    return *count;
}

Result<rendezvous::OnJoin> read_on_join(std::string_view text) {
    if (text == "restart") return rendezvous::OnJoin::restart;
    if (text == "wait") return rendezvous::OnJoin::wait;
    if (text == "spare") return rendezvous::OnJoin::spare;
    return usage_error("not known; give restart, wait or spare");
}

Result<bool> read_on_sigterm(std::string_view text) {
    if (text == "leave") return true;
    if (text == "stop") return false;
    return usage_error("not known; give leave or stop");
}

// A colon anywhere makes it a list; ranks that are not in it have nothing.
Result<StreamsPerRank> read_streams(std::string_view text) {
    StreamsPerRank result;
    if (text.find(':') == std::string_view::npos) {
        auto all = read_digit(text);
        if (!all) return all.error();
        result.all = *all;
        return result;
    }
    for (std::string_view part : split(text, ',')) {
        std::size_t colon = part.find(':');
        auto rank = whole_number(trimmed(part.substr(0, colon)));
        if (colon == std::string_view::npos || !rank || *rank < 0)
            return usage_error("give one digit for all local ranks, or RANK:DIGIT,… for some");
        auto streams = read_digit(trimmed(part.substr(colon + 1)));
        if (!streams) return streams.error();
        result.by_rank[*rank] = *streams;
    }
    return result;
}

Result<std::vector<int>> read_rank_list(std::string_view text) {
    std::vector<int> ranks;
    for (std::string_view part : split(text, ',')) {
        auto rank = whole_number(trimmed(part));
        if (!rank || *rank < 0) return usage_error("not a list of local ranks like 0,1");
        ranks.push_back(*rank);
    }
    return ranks;
}

std::vector<std::string> read_filters(std::string_view text) {
    // There is always one filter, if only an empty one: an option that was given is never "no
    // filter".
    std::vector<std::string> filters(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != ',') {
            filters.back() += text[i];
        } else if (text.substr(i).starts_with(",,")) {
            filters.back() += ',';
            ++i;
        } else {
            filters.emplace_back();
        }
    }
    return filters;
}

Result<std::vector<store::Network>> read_networks(std::string_view text) {
    if (text == "any") return std::vector{store::Network{{}, 0}};
    std::vector<store::Network> networks;
    for (std::string_view part : split(text, ',')) {
        auto network = store::read_network(trimmed(part));
        if (!network)
            return usage_error(std::string(trimmed(part)) + ": " + network.error().sentence() +
                               " (any: all addresses)");
        networks.push_back(*network);
    }
    return networks;
}

Result<std::uint64_t> read_size(std::string_view text) {
    constexpr std::string_view kUnits = "KMGT";
    int shift = 0;
    if (!text.empty()) {
        const std::size_t unit = kUnits.find(text.back());
        if (unit != std::string_view::npos) {
            shift = 10 * (static_cast<int>(unit) + 1);
            text.remove_suffix(1);
        }
    }
    std::uint64_t value = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || failure != std::errc() || end != text.data() + text.size())
        return usage_error("not a size; give a number, with K, M, G or T for powers of 1024");
    // Compared before the shift, which could overflow.
    constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
    if (value < 1 || value > kMost >> shift) return usage_error("not within 1 to 1024T");
    return value << shift;
}

// The setters check the words first (check_choice); these sentences are for other callers.
Result<agent::CpuBinding> read_numa_binding(std::string_view text) {
    if (text == "node") return agent::CpuBinding::node;
    if (text == "socket") return agent::CpuBinding::socket;
    if (text == "exclusive") return agent::CpuBinding::exclusive;
    if (text == "core-complex") return agent::CpuBinding::core_complex;
    return usage_error("not known; give node, socket, exclusive or core-complex");
}

Result<slurm::WorkerVariables> read_slurm_env(std::string_view text) {
    if (text == "rewrite") return slurm::WorkerVariables::rewrite;
    if (text == "keep") return slurm::WorkerVariables::keep;
    if (text == "drop") return slurm::WorkerVariables::drop;
    return usage_error("not known; give rewrite, keep or drop");
}

Result<agent::RequeueMode> read_requeue(std::string_view text) {
    if (text == "auto") return agent::RequeueMode::automatic;
    if (text == "never") return agent::RequeueMode::never;
    if (text == "always") return agent::RequeueMode::always;
    return usage_error("not known; give auto, never or always");
}

// The names and synonyms of Python's logging module.
std::optional<int> verbosity_of(std::string_view level) {
    if (level == "DEBUG" || level == "NOTSET") return 1;
    if (level == "INFO") return 0;
    if (level == "WARNING" || level == "WARN") return -1;
    if (level == "ERROR" || level == "CRITICAL" || level == "FATAL") return -2;
    return std::nullopt;
}

}  // namespace ddprun::launcher
