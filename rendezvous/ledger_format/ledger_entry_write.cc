// Ledger entry to JSON (ledger_entry_json.h).
#include "base/hexadecimal.h"
#include "rendezvous/ledger_format/ledger_entry_json.h"

namespace ddprun::rendezvous {
namespace {

using Json = nlohmann::json;

// nlohmann::json throws when it dumps text that is not UTF-8. Names and output of workers may hold
// any bytes.
bool is_utf8(const std::string& text) {
    try {
        Json(text).dump();
        return true;
    } catch (const Json::exception&) {
        return false;
    }
}

Json text_json(const std::string& text) {
    if (is_utf8(text)) return text;
    std::string digits;
    for (unsigned char byte : text) digits += hexadecimal(byte, 2);
    return {{"hex", digits}};
}

Json texts_json(const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const std::string& text : texts) list.push_back(text_json(text));
    return list;
}

Json write(const NodeId& node) {
    return {{"name", text_json(node.name)}, {"incarnation", hexadecimal(node.incarnation.value)}};
}

Json write(const Offer& offer) {
    Json json{{"slots", offer.slots},
              {"address", text_json(offer.address)},
              {"addresses", texts_json(offer.addresses)},
              {"service_port", offer.service_port},
              {"store_port", offer.store_port},
              {"role", text_json(offer.role)}};
    if (offer.node_rank) json["node_rank"] = *offer.node_rank;
    return json;
}

Json write(const Assignment& assignment) {
    Json members = Json::array();
    for (const Member& member : assignment.members)
        members.push_back({{"node", write(member.node)},
                           {"offer", write(member.offer)},
                           {"rank_offset", member.rank_offset}});
    return {{"generation", assignment.generation.value}, {"members", members},
            {"world_size", assignment.world_size},       {"restarts", assignment.restarts},
            {"max_restarts", assignment.max_restarts},   {"cause", text_json(assignment.cause)}};
}

Json write(const WorkerOutcome& outcome) {
    Json json{{"rank", outcome.rank},
              {"local_rank", outcome.local_rank},
              {"pid", outcome.pid},
              {"exit_code", outcome.exit_code},
              {"signal", outcome.signal},
              {"age_ns", outcome.age.count()},
              {"sentence", text_json(outcome.sentence)},
              {"error", text_json(outcome.error)},
              {"tail", texts_json(outcome.tail)},
              {"error_file", text_json(outcome.error_file)},
              {"core_dumped", outcome.core_dumped},
              {"out_of_memory", outcome.out_of_memory},
              {"remarks", texts_json(outcome.remarks)}};
    if (outcome.hung) json["stack"] = texts_json(outcome.stack);
    return json;
}

Json write(const PhaseTime& time) {
    return {{"ns", time.took.count()}, {"node", text_json(time.node)}};
}

Json write(const RestartRecord& record) {
    const RestartTotals& totals = record.totals;
    Json times, sums;
    for (std::size_t i = 0; i < kRestartPhases; ++i) {
        times[kRestartPhaseNames[i]] = write(record.times[i]);
        sums[kRestartPhaseNames[i]] = totals.took[i].count();
    }
    return {{"times", times},
            {"sums_ns", sums},
            {"restarts", totals.restarts},
            {"longest", write(totals.longest)},
            {"longest_phase", static_cast<int>(totals.longest_phase)},
            {"longest_of", totals.longest_of.value}};
}

Json write(const Blame& blame) {
    Json causes = Json::array();
    for (const FirstCause& cause : blame.causes)
        causes.push_back({{"generation", cause.generation.value}, {"node", text_json(cause.node)}});
    return {{"causes", causes}, {"nodes", texts_json(blame.nodes)}};
}

Json write(const std::vector<Consequence>& consequences) {
    Json list = Json::array();
    for (const Consequence& one : consequences)
        list.push_back({{"node", text_json(one.node)},
                        {"outcome", write(one.outcome)},
                        {"after_ns", one.after.count()}});
    return list;
}

Json write(const Ending& ending) {
    Json json{{"verdict", static_cast<int>(ending.verdict)},
              {"code", ending.code},
              {"sentence", text_json(ending.sentence)},
              {"first_failure_node", text_json(ending.first_failure_node)},
              {"consequences", ending.consequences},
              {"told_consequences", write(ending.told_consequences)},
              {"generation", ending.generation.value},
              {"at_ns", ending.at.count()}};
    if (ending.requeue) json["requeue"] = true;
    if (ending.first_failure) json["first_failure"] = write(*ending.first_failure);
    if (ending.loss)
        json["loss"] = {{"node", text_json(ending.loss->node)},
                        {"sentence", text_json(ending.loss->sentence)}};
    return json;
}

}  // namespace

nlohmann::json write_entry(const LedgerEntry& entry) {
    Json json{{"number", entry.number.value},
              {"kind", kEntryKinds[entry.act.index()]},
              {"leader", write(entry.leader)},
              {"random", hexadecimal(entry.random)},
              {"requeue", entry.requeue},
              {"command_digest", text_json(entry.command_digest)},
              {"progressed", entry.progressed},
              {"in_a_row", entry.in_a_row},
              {"last_cause", text_json(entry.last_cause)},
              {"at",
               {{"node", write(entry.at.node)},
                {"address", text_json(entry.at.address)},
                {"port", entry.at.port}}}};
    if (entry.assignment != Assignment{}) json["assignment"] = write(entry.assignment);
    if (const Ending* ending = entry.end()) json["ending"] = write(*ending);
    if (entry.restart != RestartRecord{}) json["restart"] = write(entry.restart);
    if (entry.blame != Blame{}) json["blame"] = write(entry.blame);
    return json;
}

}  // namespace ddprun::rendezvous
