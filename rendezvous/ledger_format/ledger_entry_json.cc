// Ledger entry ↔ JSON (ledger_entry_json.h).
#include "rendezvous/ledger_format/ledger_entry_json.h"

#include <charconv>

#include "rendezvous/ledger_format/json_fields.h"
#include "rendezvous/wire/model_fields.h"

namespace ddprun::rendezvous {

using Json = nlohmann::json;

// nlohmann::json throws when it dumps text that is not UTF-8, which is used here as the check. The
// bytes are kept, not replaced: two names that differ in one such byte must stay different.
Json text_json(const std::string& text) {
    try {
        Json(text).dump();
        return text;
    } catch (const Json::exception&) {
        std::string digits;
        for (const unsigned char byte : text) digits += hexadecimal(byte, 2);
        return {{"hex", digits}};
    }
}

std::string plain_text(const Place& place, const char* field, const Json& json) {
    if (json.is_string()) return json.get<std::string>();
    const std::string digits = json.at("hex").get<std::string>();
    std::string text;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        unsigned byte = 0;
        const auto [end, error] = std::from_chars(&digits[i], &digits[i] + 2, byte, 16);
        if (error != std::errc() || end != &digits[i] + 2) place.complain(field, "not hexadecimal");
        text.push_back(static_cast<char>(byte));
    }
    return text;
}

// The whole text must be the number: one that was cut short would be another valid number.
std::uint64_t from_hexadecimal(const Place& place, const char* field, const Json& json) {
    const std::string text = json.get<std::string>();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        place.complain(field, "\"" + text + "\" is not hexadecimal");
    return value;
}

// The tables of what only ledgers record. What messages carry as well is in wire/model_fields.h. A
// field that entries of an older ddprun lack must be optional or AbsentIf; otherwise those ledgers
// cannot be read.

void each_field(auto& v, Is<Member> auto& member) {
    v(DDPRUN_FIELD(node), member.node, Any{});
    v(DDPRUN_FIELD(offer), member.offer, Any{});
    v(DDPRUN_FIELD(rank_offset), member.rank_offset, kCount);
}

void each_field(auto& v, Is<Assignment> auto& assignment) {
    v(DDPRUN_FIELD(generation), assignment.generation, kNumberOrNone);
    v(DDPRUN_FIELD(members), assignment.members, Items{kMaxNodes});
    v(DDPRUN_FIELD(world_size), assignment.world_size, kCount);
    v(DDPRUN_FIELD(restarts), assignment.restarts, kCount);
    // kAutoRestarts is negative, so the range begins below 0.
    v(DDPRUN_FIELD(max_restarts), assignment.max_restarts, Whole{kAutoRestarts, kMaxWorld});
    v(DDPRUN_FIELD(cause), assignment.cause, kSentence);
    v(DDPRUN_FIELD(cold), assignment.cold, AbsentIf{false, Any{}});
}

void each_field(auto& v, Is<FirstCause> auto& cause) {
    v(DDPRUN_FIELD(generation), cause.generation, kNumber);
    v(DDPRUN_FIELD(node), cause.node, kName);
}

void each_field(auto& v, Is<Blame> auto& blame) {
    v(DDPRUN_FIELD(causes), blame.causes, Items{kMaxTail});
    v(DDPRUN_FIELD(nodes), blame.nodes, List{kMaxNodes, kName});
    // Left out in nearly all jobs: operators take nobody out.
    v(DDPRUN_FIELD(drained), blame.drained,
      AbsentIf{std::vector<std::string>{}, List{kMaxNodes, kName}});
}

void each_field(auto& v, Is<TimeSpent> auto& spent) {
    v(DDPRUN_FIELD(waiting), spent.waiting, kAnyPast);
    v(DDPRUN_FIELD(importing), spent.importing, kAnyPast);
    v(DDPRUN_FIELD(setting_up), spent.setting_up, kAnyPast);
    v(DDPRUN_FIELD(training), spent.training, kAnyPast);
    v(DDPRUN_FIELD(lost), spent.lost, kAnyPast);
    v(DDPRUN_FIELD(saving), spent.saving, AbsentIf{Duration{}, kAnyPast});
    v(DDPRUN_FIELD(restarting), spent.restarting, kAnyPast);
    v(DDPRUN_FIELD(unknown), spent.unknown, kAnyPast);
}

void each_field(auto& v, Is<TimeRecord> auto& record) {
    v(DDPRUN_FIELD(begun), record.begun, kAnyPast);
    v(DDPRUN_FIELD(at), record.at, kAnyPast);
    v(DDPRUN_FIELD(progresses), record.progresses, AbsentIf{false, Any{}});
    v(DDPRUN_FIELD(saves), record.saves, Any{});
    v(DDPRUN_FIELD(spent), record.spent, Any{});
}

static_assert(kMostNodes <= static_cast<int>(kMaxNodes) && kMostRestarts <= kMaxWorld,
              "every limit that an operator may set can be recorded");

void each_field(auto& v, Is<LedgerEntry> auto& entry) {
    v(DDPRUN_FIELD(number), entry.number, kNumber);
    v(DDPRUN_FIELD(leader), entry.leader, Any{});
    v(DDPRUN_FIELD(at), entry.at, Any{});
    v(DDPRUN_FIELD(random), entry.random, Any{});
    v(DDPRUN_FIELD(requeue), entry.requeue, kCount);
    v(DDPRUN_FIELD(command_digest), entry.command_digest, kSentence);
    v(DDPRUN_FIELD(met), entry.met, Any{});
    v(DDPRUN_FIELD(in_a_row), entry.in_a_row, kCount);
    // A cause is put together from several texts (PROTOCOL.md, rule 17), so it may be longer than
    // one.
    v(DDPRUN_FIELD(last_cause), entry.last_cause, Text{0, 2 * kMaxText, TooLong::cut});
    // An end or an allocation without a generation before it has no assignment.
    v(DDPRUN_FIELD(assignment), entry.assignment, AbsentIf{Assignment{}, Any{}});
    // Left out in nearly all jobs: nobody is blamed.
    v(DDPRUN_FIELD(blame), entry.blame, AbsentIf{Blame{}, Any{}});
    v(DDPRUN_FIELD(time), entry.time, AbsentIf{TimeRecord{}, Any{}});
    v(DDPRUN_FIELD(limits), entry.limits, AbsentIf{OperatorLimits{}, Any{}});
}

namespace {

// A new kind of entry is one name here, in the order of EntryAct.
constexpr const char* kKinds[] = {"generation", "takeover", "end", "allocation"};

// An unknown kind may come from a newer version. It is a fault, so that no entry is read as
// something else.
EntryAct read_act(const Place& place, const Json& json) {
    const std::string kind = json.at("kind").get<std::string>();
    if (kind == kKinds[0]) return MakesGeneration{};
    if (kind == kKinds[1]) return TakesOver{};
    if (kind == kKinds[2]) {
        // The table of an ending is in wire/model_fields.h, since messages carry it, too.
        EndsJob end;
        const Place here = place.at("ending");
        JsonReader reader(here, json.at("ending"));
        each_field(reader, end.ending);
        return end;
    }
    if (kind == kKinds[3]) return BeginsAllocation{json.at("awaits").get<bool>()};
    place.complain("kind", "\"" + kind + "\" is unknown");
    return MakesGeneration{};
}

// Restart times have the phases' names as keys, so that people can read them. They are no tables of
// fields.
Json write_time(const PhaseTime& time) {
    return {{"ns", time.took.count()}, {"node", text_json(time.node)}};
}

Json write_restart(const RestartRecord& record) {
    const RestartTotals& totals = record.totals;
    Json times, sums, causes = Json::object();
    for (std::size_t i = 0; i < kRestartPhases; ++i) {
        times[kRestartPhaseNames[i]] = write_time(record.times[i]);
        sums[kRestartPhaseNames[i]] = totals.took[i].count();
    }
    for (std::size_t i = 0; i < kRestartCauses; ++i)
        if (totals.causes[i] > 0) causes[kRestartCauseNames[i]] = totals.causes[i];
    return {{"times", times},
            {"sums_ns", sums},
            {"causes", causes},
            {"restarts", totals.restarts},
            {"longest", write_time(totals.longest)},
            {"longest_phase", static_cast<int>(totals.longest_phase)},
            {"longest_of", totals.longest_of.value}};
}

std::int64_t read_number(const Place& place, const Json& json, const char* field, Whole bounds) {
    return place.integer(field, json.at(field).get<std::int64_t>(), bounds.low, bounds.high);
}

PhaseTime read_time(const Place& place, const Json& json) {
    return {Duration{read_number(place, json, "ns", kNumber)},
            place.text("node", plain_text(place, "node", json.at("node")), 0, kMaxName)};
}

RestartRecord read_restart(const Place& place, const Json& json) {
    RestartRecord record;
    RestartTotals& totals = record.totals;
    for (std::size_t i = 0; i < kRestartPhases; ++i) {
        const char* name = kRestartPhaseNames[i];
        record.times[i] = read_time(place.at(name), json.at("times").at(name));
        totals.took[i] =
            Duration{read_number(place.at("sums_ns"), json.at("sums_ns"), name, kNumber)};
    }
    totals.restarts = static_cast<int>(read_number(place, json, "restarts", kCount));
    // Ledgers of an older ddprun have no causes.
    if (json.contains("causes"))
        for (std::size_t i = 0; i < kRestartCauses; ++i)
            if (const char* name = kRestartCauseNames[i]; json.at("causes").contains(name))
                totals.causes[i] = static_cast<int>(
                    read_number(place.at("causes"), json.at("causes"), name, kCount));
    totals.longest = read_time(place.at("longest"), json.at("longest"));
    totals.longest_phase = from_plain<RestartPhase>(
        read_number(place, json, "longest_phase", up_to(RestartPhase::progress)));
    totals.longest_of = Generation{read_number(place, json, "longest_of", kNumberOrNone)};
    return record;
}

}  // namespace

// The table describes the fields. Beside it stand the parts that no table can describe: the kind of
// the entry, and the restart times.
Json write_entry(const LedgerEntry& entry) {
    Json json{{"kind", kKinds[entry.act.index()]}};
    JsonWriter writer(json);
    each_field(writer, entry);
    // Only the kind `end` has this part, so it is not a field of the table.
    if (const Ending* ending = entry.end()) {
        JsonWriter inner(json["ending"]);
        each_field(inner, *ending);
    }
    if (const BeginsAllocation* begins = entry.allocation()) json["awaits"] = begins->awaits;
    // Left out while nothing has been measured.
    if (entry.restart != RestartRecord{}) json["restart"] = write_restart(entry.restart);
    return json;
}

LedgerEntry read_entry(const Place& place, const Json& json) {
    LedgerEntry entry;
    JsonReader reader(place, json);
    each_field(reader, entry);
    entry.act = read_act(place, json);
    if (json.contains("restart"))
        entry.restart = read_restart(place.at("restart"), json.at("restart"));
    // A job that never had a generation may end, and an allocation begins without one. Every other
    // entry needs at least one member, since callers use the first one.
    if (!entry.end() && !entry.allocation() && entry.assignment.members.empty())
        place.complain("assignment", "has no members");
    if (entry.limits.min_nodes.has_value() != entry.limits.max_nodes.has_value())
        place.complain("limits", "has only one of min_nodes and max_nodes");
    return entry;
}

}  // namespace ddprun::rendezvous
