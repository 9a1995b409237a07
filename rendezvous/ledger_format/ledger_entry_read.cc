// JSON to ledger entry (ledger_entry_json.h). Every value is checked against its range, since a
// person or a broken file system may have changed the file.
#include <charconv>

#include "rendezvous/ledger_format/ledger_entry_json.h"

namespace ddprun::rendezvous {
namespace {

using Json = nlohmann::json;

// Reads a number and checks its range. A value out of range becomes a fault of the place, so the
// message can name the field.
int number(const Place& place, const Json& json, const char* field, std::int64_t low,
           std::int64_t high) {
    return static_cast<int>(place.integer(field, json.at(field).get<std::int64_t>(), low, high));
}

std::int64_t long_number(const Place& place, const Json& json, const char* field,
                         std::int64_t low) {
    return place.integer(field, json.at(field).get<std::int64_t>(), low, kMaxNumber);
}

// Random 64-bit numbers are hexadecimal text, since JSON numbers lose bits beyond 2^53 in many
// readers.
std::uint64_t from_hex(const Place& place, const Json& json, const char* field) {
    const std::string text = json.at(field).get<std::string>();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        place.complain(field, "\"" + text + "\" is not hexadecimal");
    return value;
}

// The counterpart of text_json(): {"hex": "…"} stands for text that is not UTF-8.
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

std::string text(const Place& place, const Json& json, const char* field,
                 std::size_t high = kMaxText) {
    return place.text(field, plain_text(place, field, json.at(field)), 0, high);
}

std::vector<std::string> texts(const Place& place, const Json& json, const char* field,
                               std::size_t high) {
    std::vector<std::string> list;
    if (place.count(field, json.at(field).size(), high))
        for (const Json& one : json.at(field)) list.push_back(plain_text(place, field, one));
    return list;
}

NodeId read_node(const Place& place, const Json& json) {
    return {text(place, json, "name", kMaxName), Incarnation{from_hex(place, json, "incarnation")}};
}

Offer read_offer(const Place& place, const Json& json) {
    Offer offer;
    offer.slots = number(place, json, "slots", 1, kMaxSlots);
    if (json.contains("node_rank"))
        offer.node_rank = number(place, json, "node_rank", 0, kMaxNodes);
    offer.address = text(place, json, "address", kMaxName);
    offer.addresses = texts(place, json, "addresses", kMaxAddresses);
    offer.service_port =
        static_cast<std::uint16_t>(number(place, json, "service_port", 0, UINT16_MAX));
    offer.store_port = static_cast<std::uint16_t>(number(place, json, "store_port", 0, UINT16_MAX));
    offer.role = text(place, json, "role", kMaxName);
    return offer;
}

Assignment read_assignment(const Place& place, const Json& json) {
    Assignment assignment;
    assignment.generation = Generation{long_number(place, json, "generation", kNoGeneration.value)};
    int index = 0;
    for (const Json& member : json.at("members")) {
        const Place here = place.at("members", index++);
        assignment.members.push_back({read_node(here.at("node"), member.at("node")),
                                      read_offer(here.at("offer"), member.at("offer")),
                                      number(here, member, "rank_offset", 0, kMaxWorld)});
    }
    assignment.world_size = number(place, json, "world_size", 0, kMaxWorld);
    assignment.restarts = number(place, json, "restarts", 0, kMaxWorld);
    assignment.max_restarts = number(place, json, "max_restarts", kAutoRestarts, kMaxWorld);
    assignment.cause = text(place, json, "cause");
    return assignment;
}

WorkerOutcome read_outcome(const Place& place, const Json& json) {
    WorkerOutcome outcome;
    outcome.rank = number(place, json, "rank", 0, kMaxWorld);
    outcome.local_rank = number(place, json, "local_rank", 0, kMaxSlots);
    outcome.pid = long_number(place, json, "pid", 0);
    outcome.exit_code = number(place, json, "exit_code", 0, 255);
    outcome.signal = number(place, json, "signal", 0, 64);
    outcome.age = Duration{long_number(place, json, "age_ns", 0)};
    outcome.sentence = text(place, json, "sentence");
    outcome.error = text(place, json, "error");
    outcome.tail = texts(place, json, "tail", kMaxTail);
    // Only a hung worker has a stack, so the field itself says that it hung.
    outcome.hung = json.contains("stack");
    if (outcome.hung) outcome.stack = texts(place, json, "stack", kMaxTail);
    outcome.error_file = text(place, json, "error_file");
    outcome.core_dumped = json.at("core_dumped").get<bool>();
    outcome.out_of_memory = json.at("out_of_memory").get<bool>();
    outcome.remarks = texts(place, json, "remarks", kMaxRemarks);
    return outcome;
}

std::vector<Consequence> read_consequences(const Place& place, const Json& json) {
    std::vector<Consequence> list;
    if (!place.count("told_consequences", json.size(), kConsequencesTold)) return list;
    for (const Json& one : json)
        list.push_back({text(place, one, "node", kMaxName),
                        read_outcome(place.at("told_consequences"), one.at("outcome")),
                        Duration{long_number(place, one, "after_ns", 0)}});
    return list;
}

Ending read_ending(const Place& place, const Json& json) {
    Ending ending;
    ending.verdict = static_cast<Verdict>(
        number(place, json, "verdict", 0, static_cast<int>(Verdict::user_signal)));
    ending.code = number(place, json, "code", 0, 255);
    ending.sentence = text(place, json, "sentence");
    if (json.contains("first_failure"))
        ending.first_failure = read_outcome(place.at("first_failure"), json.at("first_failure"));
    ending.first_failure_node = text(place, json, "first_failure_node", kMaxName);
    ending.consequences = number(place, json, "consequences", 0, kMaxWorld);
    ending.told_consequences = read_consequences(place, json.at("told_consequences"));
    ending.generation = Generation{long_number(place, json, "generation", kNoGeneration.value)};
    ending.at = Duration{long_number(place, json, "at_ns", 0)};
    ending.requeue = json.value("requeue", false);
    if (json.contains("loss"))
        ending.loss = {text(place, json.at("loss"), "node", kMaxName),
                       text(place, json.at("loss"), "sentence")};
    return ending;
}

PhaseTime read_time(const Place& place, const Json& json) {
    return {Duration{long_number(place, json, "ns", 0)}, text(place, json, "node", kMaxName)};
}

RestartRecord read_restart(const Place& place, const Json& json) {
    RestartRecord record;
    RestartTotals& totals = record.totals;
    for (std::size_t i = 0; i < kRestartPhases; ++i) {
        const char* name = kRestartPhaseNames[i];
        record.times[i] = read_time(place.at(name), json.at("times").at(name));
        totals.took[i] = Duration{long_number(place.at("sums_ns"), json.at("sums_ns"), name, 0)};
    }
    totals.restarts = number(place, json, "restarts", 0, kMaxWorld);
    totals.longest = read_time(place.at("longest"), json.at("longest"));
    totals.longest_phase = static_cast<RestartPhase>(
        number(place, json, "longest_phase", 0, static_cast<int>(kRestartPhases) - 1));
    totals.longest_of = Generation{long_number(place, json, "longest_of", kNoGeneration.value)};
    return record;
}

Blame read_blame(const Place& place, const Json& json) {
    Blame blame;
    int index = 0;
    if (place.count("causes", json.at("causes").size(), kMaxTail))
        for (const Json& cause : json.at("causes")) {
            const Place here = place.at("causes", index++);
            blame.causes.push_back({Generation{long_number(here, cause, "generation", 0)},
                                    text(here, cause, "node", kMaxName)});
        }
    blame.nodes = texts(place, json, "nodes", kMaxNodes);
    return blame;
}

// An unknown kind may come from a newer version. It is a fault, so that no entry is read as
// something else.
EntryAct read_act(const Place& place, const Json& json) {
    const std::string kind = json.at("kind").get<std::string>();
    if (kind == kEntryKinds[0]) return MakesGeneration{};
    if (kind == kEntryKinds[1]) return TakesOver{};
    if (kind == kEntryKinds[2]) return EndsJob{read_ending(place.at("ending"), json.at("ending"))};
    place.complain("kind", "\"" + kind + "\" is not one that I know");
    return MakesGeneration{};
}

}  // namespace

LedgerEntry read_entry(const Place& place, const nlohmann::json& json) {
    LedgerEntry entry;
    entry.number = EntryNumber{long_number(place, json, "number", 0)};
    entry.act = read_act(place, json);
    entry.leader = read_node(place.at("leader"), json.at("leader"));
    entry.at = {
        read_node(place.at("at"), json.at("at").at("node")),
        text(place.at("at"), json.at("at"), "address", kMaxName),
        static_cast<std::uint16_t>(number(place.at("at"), json.at("at"), "port", 0, UINT16_MAX))};
    entry.random = from_hex(place, json, "random");
    entry.requeue = number(place, json, "requeue", 0, kMaxWorld);
    entry.command_digest = text(place, json, "command_digest");
    entry.progressed = json.at("progressed").get<bool>();
    entry.in_a_row = number(place, json, "in_a_row", 0, kMaxWorld);
    entry.last_cause = text(place, json, "last_cause", 2 * kMaxText);
    if (json.contains("assignment"))
        entry.assignment = read_assignment(place.at("assignment"), json.at("assignment"));
    if (json.contains("blame")) entry.blame = read_blame(place.at("blame"), json.at("blame"));
    if (json.contains("restart"))
        entry.restart = read_restart(place.at("restart"), json.at("restart"));
    // The end of a job that never had a generation has no members. Every other entry needs at least
    // one, since callers use the first member.
    if (!entry.end() && entry.assignment.members.empty())
        place.complain("assignment", "has no members");
    return entry;
}

}  // namespace ddprun::rendezvous
