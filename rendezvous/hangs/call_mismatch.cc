// Finds where the calls of the ranks differ.
#include "rendezvous/hangs/call_mismatch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {
namespace {

using Side = CallMismatch::Side;

// A loop of groups waits for each other, so more than one may be needed to see it.
constexpr std::size_t kMismatchesTold = 2;
// Named one by one; of more ranks the number is enough.
constexpr std::size_t kRanksNamed = kSlowest;

std::string call_at(const RecordedCalls& record, std::int64_t number) {
    if (number < record.first) return {};
    const auto index = static_cast<std::uint64_t>(number - record.first);
    return index < record.calls.size() ? record.calls[index] : std::string();
}

std::vector<Side> sides_of(const std::map<std::string, std::set<int>>& by_call) {
    std::vector<Side> sides;
    for (const auto& [call, ranks] : by_call) sides.push_back({call, {ranks.begin(), ranks.end()}});
    std::ranges::stable_sort(sides, {}, [](const Side& side) { return side.ranks.size(); });
    return sides;
}

std::map<std::string, std::set<int>> made(const std::vector<const RecordedCalls*>& group,
                                          std::int64_t number) {
    std::map<std::string, std::set<int>> by_call;
    for (const RecordedCalls* record : group)
        if (const std::string call = call_at(*record, number); !call.empty())
            by_call[call].insert(record->ranks.begin(), record->ranks.end());
    return by_call;
}

// What is older than the oldest call in which a rank waits has ended for all.
std::optional<CallMismatch> different_call(const std::vector<const RecordedCalls*>& group) {
    std::set<std::int64_t> waiting, numbers;
    for (const RecordedCalls* record : group) {
        if (record->waits_in != 0) waiting.insert(record->waits_in);
        for (std::size_t i = 0; i < record->calls.size(); ++i)
            numbers.insert(record->first + static_cast<std::int64_t>(i));
    }
    if (waiting.empty()) return std::nullopt;
    for (auto number = numbers.lower_bound(*waiting.begin()); number != numbers.end(); ++number)
        if (const auto by_call = made(group, *number); by_call.size() > 1)
            return CallMismatch{group.front()->group, *number, sides_of(by_call), {}};
    return std::nullopt;
}

// A rank that is ahead without waiting needs nobody: it has sent what the others need.
std::optional<CallMismatch> missing_call(const std::vector<const RecordedCalls*>& group) {
    const std::int64_t least = (*std::ranges::min_element(group, {}, &RecordedCalls::last))->last;
    if (std::ranges::none_of(group,
                             [&](const RecordedCalls* record) { return record->waits_in > least; }))
        return std::nullopt;
    CallMismatch found{group.front()->group, least + 1, {}, {}};
    Side made_it;
    for (const RecordedCalls* record : group) {
        std::vector<int>& ranks = record->last == least ? found.missing : made_it.ranks;
        ranks.insert(ranks.end(), record->ranks.begin(), record->ranks.end());
        if (made_it.call.empty()) made_it.call = call_at(*record, found.number);
    }
    std::ranges::sort(found.missing);
    std::ranges::sort(made_it.ranks);
    found.sides = {made_it};
    return found;
}

std::string listed(const std::vector<int>& ranks, const RankName& name) {
    if (ranks.size() > kRanksNamed) return std::to_string(ranks.size()) + " ranks";
    std::string text;
    for (std::size_t i = 0; i < ranks.size(); ++i)
        text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + name(ranks[i]);
    return text;
}

std::string text_of(const CallMismatch& found, const RankName& name) {
    const std::string which = "call " + std::to_string(found.number) + " of " + found.group;
    if (found.missing.empty()) {
        std::string text = which + " is ";
        for (std::size_t i = 0; i < found.sides.size(); ++i)
            text += (i == 0                        ? ""
                     : i + 1 == found.sides.size() ? ", and "
                                                   : ", ") +
                    found.sides[i].call + " on " + listed(found.sides[i].ranks, name);
        return text;
    }
    const Side& made_it = found.sides.front();
    return listed(found.missing, name) + (found.missing.size() == 1 ? " has" : " have") +
           " not made " + which + (made_it.call.empty() ? "" : ", " + made_it.call) + ", but " +
           listed(made_it.ranks, name) + (made_it.ranks.size() == 1 ? " has" : " have");
}

}  // namespace

std::vector<CallMismatch> call_mismatches(const std::vector<RecordedCalls>& recorded) {
    std::map<std::string, std::vector<const RecordedCalls*>> groups;
    for (const RecordedCalls& record : recorded)
        if (!record.ranks.empty()) groups[record.group].push_back(&record);
    std::vector<CallMismatch> found;
    for (const auto& [name, group] : groups)
        if (auto mismatch = different_call(group)) found.push_back(std::move(*mismatch));
    for (const auto& [name, group] : groups)
        if (auto mismatch = missing_call(group);
            mismatch && std::ranges::find(found, name, &CallMismatch::group) == found.end())
            found.push_back(std::move(*mismatch));
    return found;
}

std::string recorded_sentence(const std::vector<RecordedCalls>& recorded, int world_size,
                              const RankName& name) {
    const std::vector<CallMismatch> found = call_mismatches(recorded);
    std::string text = "; as PyTorch's flight recorders have it, ";
    for (std::size_t i = 0; i < std::min(found.size(), kMismatchesTold); ++i)
        text += (i == 0 ? "" : "; ") + text_of(found[i], name);
    if (!found.empty()) return text;
    std::set<int> ranks;
    for (const RecordedCalls& record : recorded)
        ranks.insert(record.ranks.begin(), record.ranks.end());
    return ranks.size() < static_cast<std::size_t>(world_size)
               ? std::string()
               : text + "all have made the same calls";
}

std::string nccl_sentence(const std::map<int, WorkerOutcome>& seen) {
    constexpr std::string_view kLine = "NCCL: ";
    for (const auto& [rank, outcome] : seen)
        for (const std::string& line : outcome.stack)
            if (line.starts_with(kLine)) return "; as NCCL has it, " + line.substr(kLine.size());
    return {};
}

}  // namespace ddprun::rendezvous
