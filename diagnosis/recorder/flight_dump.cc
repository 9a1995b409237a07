// Reads the JSON of a flight recorder.
#include "diagnosis/recorder/flight_dump.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace ddprun::agent {
namespace {

using nlohmann::json;
using rendezvous::RecordedCalls;

// Deeper than a dump is: entries, their fields, sizes of tensors, sizes.
constexpr int kDeepest = 8;
// So many calls before the one in which a worker waits are told, too: on another rank the newest of
// them may be the one in which it waits.
constexpr std::int64_t kCallsBefore = rendezvous::kCallsTold / 2;

// Operations for which all ranks must give tensors of the same sizes and types. In a gather, for
// example, only one rank has an output. Source: the checks of PyTorch's own comparison.
constexpr std::string_view kAlike[] = {
    "all_reduce",       "allreduce_coalesced",  "broadcast",         "reduce",
    "_all_gather_base", "_reduce_scatter_base", "all_gather_single", "reduce_scatter_single"};

// A text of the worker in a line for people.
std::string plain(std::string text) {
    text.resize(std::min(text.size(), rendezvous::kCallText));
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    return text;
}

std::string text_of(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Nothing where it is no number that counts something.
std::int64_t number_of(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number_integer()) return -1;
    const auto number = found->get<std::int64_t>();
    return number > 0 && number < std::int64_t{1} << 53 ? number : -1;
}

bool is_true(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

// "[4160] Float", or "[4] Float and 2 more".
std::string tensors_of(const json& entry) {
    const auto sizes = entry.find("input_sizes"), types = entry.find("input_dtypes");
    if (sizes == entry.end() || !sizes->is_array() || sizes->empty()) return {};
    std::string text = sizes->front().dump(-1, ' ', false, json::error_handler_t::replace);
    if (types != entry.end() && types->is_array() && !types->empty() && types->front().is_string())
        text += " " + types->front().get<std::string>();
    if (sizes->size() > 1) text += " and " + std::to_string(sizes->size() - 1) + " more";
    return text;
}

// A call in words, in which all ranks must agree.
std::string call_of(const json& entry) {
    const std::string name = text_of(entry, "profiling_name");
    const std::string operation = name.substr(name.rfind(':') + 1);
    const std::string tensors =
        std::ranges::find(kAlike, operation) == std::end(kAlike) ? "" : tensors_of(entry);
    return plain(tensors.empty() ? operation : operation + " of " + tensors);
}

// The description of a group that the program has not described is "undefined".
std::string group_of(const json& entry) {
    const auto names = entry.find("process_group");
    if (names == entry.end() || !names->is_array() || names->size() != 2) return {};
    const json &name = names->at(0), &description = names->at(1);
    if (!name.is_string() || !description.is_string()) return {};
    const std::string described = description.get<std::string>();
    const std::string profiling = text_of(entry, "profiling_name");
    const std::string backend = profiling.substr(0, profiling.rfind(':'));
    return plain("group " + name.get<std::string>() + " (" +
                 (described.empty() || described == "undefined" ? "" : described + ", ") + backend +
                 ")");
}

struct Call {
    std::string text;
    bool ended = true;
};
using Calls = std::map<std::int64_t, Call>;  // by number

// Several operations may be one call: they have its number.
void add(Calls& calls, std::int64_t number, const std::string& text, bool ended) {
    const auto [at, is_new] = calls.try_emplace(number, Call{text, ended});
    if (is_new) return;
    at->second.ended &= ended;
    if (at->second.text.size() < rendezvous::kCallText) at->second.text += " + " + text;
}

RecordedCalls told(const std::string& group, const Calls& calls, int rank) {
    RecordedCalls record{{rank}, group, calls.rbegin()->first, 0, {}, 0};
    const auto waits =
        std::ranges::find_if(calls, [](const auto& call) { return !call.second.ended; });
    constexpr auto kTold = static_cast<std::int64_t>(rendezvous::kCallsTold);
    if (waits != calls.end()) record.waits_in = waits->first;
    const std::int64_t from =
        waits != calls.end() ? waits->first - kCallsBefore : record.last + 1 - kTold;
    record.first = std::max({from, calls.begin()->first, std::int64_t{1}});
    for (auto number = record.first; number <= record.last && number < record.first + kTold;
         ++number) {
        const auto call = calls.find(number);
        record.calls.push_back(call == calls.end() ? "" : plain(call->second.text));
    }
    return record;
}

// Those in which somebody waits are told first, if not all can be.
void waiting_first(std::vector<RecordedCalls>& recorded) {
    std::stable_partition(recorded.begin(), recorded.end(),
                          [](const RecordedCalls& record) { return record.waits_in != 0; });
}

}  // namespace

std::vector<RecordedCalls> read_flight_dump(std::string_view text, int rank) {
    if (text.size() > kLongestDump) return {};
    // What is nested deeper is no dump, and is not kept. The third argument of parse() switches
    // exceptions off.
    const auto keep = [](int depth, json::parse_event_t, const json&) { return depth < kDeepest; };
    const json dump = json::parse(text, keep, false);
    if (!dump.is_object()) return {};
    const auto entries = dump.find("entries");
    if (entries == dump.end() || !entries->is_array()) return {};
    std::map<std::string, Calls> groups;
    for (const json& entry : *entries) {
        // Only two ranks take part in sending and receiving, which is numbered by itself.
        if (!entry.is_object() || is_true(entry, "is_p2p")) continue;
        const std::int64_t number = number_of(entry, "collective_seq_id");
        const std::string group = group_of(entry), call = call_of(entry);
        if (number < 0 || group.empty() || call.empty()) continue;
        const bool ended = is_true(entry, "retired") || text_of(entry, "state") == "completed";
        add(groups[group], number, call, ended);
    }
    std::vector<RecordedCalls> recorded;
    for (const auto& [group, calls] : groups) recorded.push_back(told(group, calls, rank));
    waiting_first(recorded);
    return recorded;
}

std::vector<RecordedCalls> put_together(std::vector<RecordedCalls> recorded) {
    std::vector<RecordedCalls> all;
    waiting_first(recorded);
    for (RecordedCalls& record : recorded) {
        const auto same = std::ranges::find_if(all, [&](const RecordedCalls& other) {
            RecordedCalls alike = other;
            alike.ranks = record.ranks;
            return alike == record;
        });
        if (same != all.end())
            same->ranks.insert(same->ranks.end(), record.ranks.begin(), record.ranks.end());
        else if (all.size() < rendezvous::kRecordsTold)
            all.push_back(std::move(record));
    }
    for (RecordedCalls& record : all) std::ranges::sort(record.ranks);
    return all;
}

}  // namespace ddprun::agent
