// Gathers the ranks of each communicator by what they have launched.
#include "diagnosis/nccl/ras_json.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "diagnosis/nccl/ras_text.h"

namespace ddprun::agent {
namespace {

using nlohmann::json;

// Communicators, their ranks, status of each.
constexpr int kDeepest = 8;
constexpr std::int64_t kHighestRank = std::int64_t{1} << 24;
// Of ncclResult_t: all is well, and not finished yet.
constexpr std::int64_t kSuccess = 0, kInProgress = 7;
constexpr const char* kErrors[] = {"",
                                   "Unhandled CUDA error",
                                   "System error",
                                   "Internal error",
                                   "Invalid argument",
                                   "Invalid usage",
                                   "Remote process error"};

const json& member(const json& object, const char* name) {
    static const json nothing;
    const auto found = object.find(name);
    return found == object.end() ? nothing : *found;
}

std::int64_t number(const json& object, const char* name, std::int64_t otherwise) {
    const json& value = member(object, name);
    return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

std::string word(const json& object, const char* name) {
    const json& value = member(object, name);
    return value.is_string() ? plain_ras_word(value.get_ref<const std::string&>()) : std::string();
}

bool flag(const json& object, const char* name) {
    const json& value = member(object, name);
    return value.is_boolean() && value.get<bool>();
}

RasRank rank_of(const json& entry) {
    RasRank rank;
    const std::int64_t own = number(entry, "rank", -1);
    if (own >= 0 && own < kHighestRank) rank.rank = static_cast<int>(own);
    rank.host = word(entry, "host");
    if (rank.host == "unknown") rank.host.clear();
    rank.pid = std::max<std::int64_t>(number(entry, "pid", 0), 0);
    return rank;
}

std::string error_of(std::int64_t result) {
    if (result == kSuccess || result == kInProgress) return {};
    const bool known = result > 0 && result < std::ssize(kErrors);
    return known ? kErrors[result] : "error " + std::to_string(result);
}

class Communicator {
  public:
    explicit Communicator(const json& entry) {
        std::string hash = word(entry, "hash");
        if (hash.starts_with("0x")) hash.erase(0, 2);
        told_.hash = std::move(hash);
        told_.size =
            static_cast<int>(std::clamp<std::int64_t>(number(entry, "size", 0), 0, kHighestRank));
        for (const json& rank : member(entry, "ranks"))
            if (rank.is_object()) add(rank);
        for (const json& rank : member(entry, "missing_ranks"))
            if (rank.is_object()) add_missing(rank);
    }

    RasCommunicator take() {
        for (auto& [operation, sides] : sides_) {
            RasCounts counts{operation, {}};
            for (auto& [count, side] : sides) counts.sides.push_back(std::move(side));
            std::ranges::stable_sort(counts.sides, std::greater(), &RasSide::size);
            told_.counts.push_back(std::move(counts));
        }
        return std::move(told_);
    }

  private:
    void add(const json& entry) {
        const RasRank rank = rank_of(entry);
        const json& status = member(entry, "status");
        const json& launched = member(entry, "collective_counts");
        if (status.is_object()) {
            told_.ends |= flag(status, "finalize_called") || flag(status, "destroy_flag") ||
                          flag(status, "abort_flag");
            for (const char* name : {"init_state", "async_error"})
                if (std::string error = error_of(number(status, name, 0)); !error.empty()) {
                    told_.faults.push_back({RasFault::Kind::failed, rank, std::move(error)});
                    break;
                }
        }
        if (!launched.is_object()) return;
        for (const auto& [name, value] : launched.items()) {
            if (!value.is_number_unsigned()) continue;
            const auto count = value.get<std::uint64_t>();
            RasSide& side = sides_[plain_ras_word(name)][count];
            side.count = count;
            ++side.size;
            side.ranks.push_back(rank);
        }
    }

    void add_missing(const json& entry) {
        const json& status = member(entry, "status");
        const bool known = status.is_object();
        RasFault fault{RasFault::Kind::absent, rank_of(entry)};
        if (known && flag(status, "considered_dead"))
            fault.kind = RasFault::Kind::dead;
        else if (known && flag(status, "unresponsive"))
            fault.kind = RasFault::Kind::silent;
        told_.faults.push_back(std::move(fault));
    }

    RasCommunicator told_;
    std::map<std::string, std::map<std::uint64_t, RasSide>> sides_;  // by operation and count
};

void count_processes(const RasCommunicator& communicator,
                     std::set<std::pair<std::string, std::int64_t>>& seen) {
    const auto see = [&](const RasRank& rank) { seen.emplace(rank.host, rank.pid); };
    if (!communicator.counts.empty())
        for (const RasSide& side : communicator.counts.front().sides)
            for (const RasRank& rank : side.ranks) see(rank);
    for (const RasFault& fault : communicator.faults) see(fault.who);
}

}  // namespace

std::optional<RasAnswer> read_ras_json(std::string_view text) {
    bool too_deep = false;
    const json::parser_callback_t look = [&](int depth, json::parse_event_t, json&) {
        too_deep |= depth > kDeepest;
        return !too_deep;
    };
    const json all = json::parse(text, look, false);
    if (too_deep || !all.is_object()) return std::nullopt;
    const json& communicators = member(all, "communicators");
    if (!communicators.is_array()) return std::nullopt;
    RasAnswer answer;
    answer.version = word(all, "nccl_version");
    answer.names_all = true;
    std::set<std::pair<std::string, std::int64_t>> processes;
    for (const json& entry : communicators) {
        if (!entry.is_object()) continue;
        answer.communicators.push_back(Communicator(entry).take());
        count_processes(answer.communicators.back(), processes);
    }
    answer.processes = static_cast<int>(processes.size());
    return answer;
}

}  // namespace ddprun::agent
