// Lays out what a ledger tells of a job's past (history_text.h).
#include "operator/ddpctl/history_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "base/printable.h"
#include "base/utc_text.h"
#include "operator/ddpctl/jobs_text.h"
#include "operator/ddpctl/print_parts.h"
#include "rendezvous/rules/restart_times.h"
#include "rendezvous/rules/time_spent.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;
using rendezvous::DatedEntry;
using rendezvous::LedgerEntry;
using rendezvous::RestartPhase;

std::string generation_of(const LedgerEntry& entry) {
    return "generation " + std::to_string(entry.assignment.generation.value);
}

std::string generation_text(const LedgerEntry& entry) {
    const rendezvous::Assignment& made = entry.assignment;
    std::string text = generation_of(entry) + ": " + count_text(made.members.size(), "node") +
                       ", " + count_text(made.world_size, "worker") + ", led by " +
                       entry.leader.name;
    if (made.generation > Generation{0})
        text += "; " + std::to_string(made.restarts) + " of " + std::to_string(made.max_restarts) +
                " restarts used up";
    return text + "; cause: " + made.cause;
}

// "; limits set by alice@login1: 2 to 4 nodes, 5 restarts", in the first entry that has them.
std::string new_limits(const LedgerEntry& entry, const LedgerEntry* before) {
    const rendezvous::OperatorLimits& now = entry.limits;
    if (now == (before ? before->limits : rendezvous::OperatorLimits{})) return {};
    std::string what;
    if (now.min_nodes && now.max_nodes)
        what = (*now.min_nodes < *now.max_nodes ? std::to_string(*now.min_nodes) + " to " : "") +
               count_text(*now.max_nodes, "node");
    if (now.max_restarts)
        what += (what.empty() ? "" : ", ") + count_text(*now.max_restarts, "restart");
    return "; limits set" + (now.by.empty() ? "" : " by " + now.by) + ": " + what;
}

std::string what_happened(const LedgerEntry& entry) {
    if (const rendezvous::Ending* end = entry.end())
        return std::string("end: ") + rendezvous::to_string(end->verdict) + ", exit code " +
               std::to_string(end->code) + (end->sentence.empty() ? "" : "; " + end->sentence);
    if (entry.makes_generation()) return generation_text(entry);
    if (entry.takes_over())
        return entry.leader.name + " leads, " + generation_of(entry) + " goes on";
    return "allocation " + std::to_string(entry.requeue) + " begins on " + entry.leader.name;
}

// Only the phases of that part; those that nobody has told are 0.
Json phases_json(const LedgerEntry& entry, RestartPhase from, RestartPhase to) {
    Json json = Json::object();
    for (auto i = static_cast<std::size_t>(from); i <= static_cast<std::size_t>(to); ++i)
        json[rendezvous::to_string(static_cast<RestartPhase>(i))] =
            in_seconds(entry.restart.times[i].took);
    return json;
}

void add_generation(Json& json, const LedgerEntry& entry) {
    const rendezvous::Assignment& made = entry.assignment;
    json["world_size"] = made.world_size;
    json["nodes"] = Json::array();
    for (const rendezvous::Member& member : made.members)
        json["nodes"].push_back(Json{{"name", member.node.name},
                                     {"workers", member.offer.slots},
                                     {"first_rank", member.rank_offset}});
    json["cause"] = made.cause;
    json["restarts"] = made.restarts;
    json["max_restarts"] = made.max_restarts;
}

Json entry_json(const DatedEntry& dated) {
    const LedgerEntry& entry = dated.entry;
    const rendezvous::Ending* end = entry.end();
    Json json{{"number", entry.number.value},
              {"at", utc_text(dated.written)},
              {"kind", end                        ? "end"
                       : entry.makes_generation() ? "generation"
                       : entry.takes_over()       ? "takeover"
                                                  : "allocation"},
              {"leader", entry.leader.name},
              {"restart_count", entry.requeue},
              {"generation", entry.assignment.generation.value}};
    if (end) {
        json["verdict"] = rendezvous::to_string(end->verdict);
        json["exit_code"] = end->code;
        json["reason"] = end->sentence;
    }
    const rendezvous::OperatorLimits& limits = entry.limits;
    const auto or_null = [](const std::optional<int>& number) {
        return number ? Json(*number) : Json();
    };
    json["limits"] = limits == rendezvous::OperatorLimits{}
                         ? Json()
                         : Json{{"min_nodes", or_null(limits.min_nodes)},
                                {"max_nodes", or_null(limits.max_nodes)},
                                {"max_restarts", or_null(limits.max_restarts)},
                                {"by", limits.by.empty() ? Json() : Json(limits.by)}};
    if (entry.makes_generation()) add_generation(json, entry);
    if (end || entry.makes_generation()) {
        json["restart_seconds"] = phases_json(entry, RestartPhase::detected, RestartPhase::met);
        json["start_before_seconds"] =
            phases_json(entry, RestartPhase::started, RestartPhase::progress);
    }
    return json;
}

}  // namespace

std::string history_text(const FoundJob& job, const rendezvous::LedgerHistory& history,
                         Duration now) {
    std::string text = printable(job.name) + ": " + state_text(job, now) + "\n";
    const LedgerEntry* before = nullptr;
    for (const auto& [entry, written] : history.entries) {
        text += utc_text(written) + "  " +
                printable(what_happened(entry) + new_limits(entry, before)) + "\n";
        before = &entry;
    }
    if (history.fault) text += printable(history.fault->sentence()) + "\n";
    if (history.entries.empty()) return text;
    for (const std::string& line : rendezvous::time_lines(history.entries.back().entry))
        text += line + "\n";
    // The newest that has them: an entry that begins an allocation has none.
    rendezvous::RestartTotals totals;
    for (const DatedEntry& dated : history.entries)
        if (dated.entry.restart.totals.restarts >= totals.restarts)
            totals = dated.entry.restart.totals;
    if (totals.restarts == 0) return text;
    text += rendezvous::summary_of(totals) + "\n";
    for (const std::string& line : rendezvous::phases_of(totals)) text += printable(line) + "\n";
    return text;
}

std::string history_json(const FoundJob& job, const rendezvous::LedgerHistory& history) {
    Json json{{"format", "ddpctl history"},
              {"version", 1},
              {"name", job.name},
              {"ledger", job.path},
              {"state", to_string(state_of(job))},
              {"begun", utc_text(job.begun)},
              {"entries", Json::array()},
              {"seconds", Json::object()},
              {"fault", history.fault ? Json(history.fault->sentence()) : Json()}};
    for (const DatedEntry& entry : history.entries) json["entries"].push_back(entry_json(entry));
    if (history.entries.empty()) return json_text(json);
    const LedgerEntry& newest = history.entries.back().entry;
    json["time_from"] = utc_text(newest.time.begun);
    json["time_until"] = utc_text(newest.time.at);
    for (const rendezvous::TimePart& part : rendezvous::parts_of(newest.time.spent))
        json["seconds"][part.name] = in_seconds(part.took);
    for (std::size_t i = 0; i < rendezvous::kRestartCauses; ++i)
        json["restarts_by_cause"][rendezvous::kRestartCauseNames[i]] =
            newest.restart.totals.causes[i];
    return json_text(json);
}

}  // namespace ddprun::launcher
