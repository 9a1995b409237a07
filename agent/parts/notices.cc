// Writes the lines of the notices.
#include "agent/parts/notices.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "agent/death/exit_report.h"
#include "base/overload.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::agent {
namespace {

using nlohmann::ordered_json;
using rendezvous::NewsItem;
using rendezvous::NewsKind;

constexpr std::size_t kLongestText = 256;
// Ranks of a lost node that are listed; `first_rank` and `count` name all.
constexpr int kRanksListed = 64;

const char* name_of(NewsKind kind) {
    switch (kind) {
        case NewsKind::worker_lost:
            return "worker_lost";
        case NewsKind::node_lost:
            return "node_lost";
        case NewsKind::node_joined:
            return "node_joined";
    }
    return "unknown";
}

void describe(ordered_json& line, const NewsItem& item) {
    line["event"] = name_of(item.kind);
    if (item.kind == NewsKind::worker_lost) {
        line["rank"] = item.first_rank;
        if (item.signal != 0)
            line["signal"] = signal_name(item.signal);
        else
            line["exit_code"] = item.exit_code;
    } else if (item.kind == NewsKind::node_lost) {
        std::vector<int> ranks(static_cast<std::size_t>(std::min(item.ranks, kRanksListed)));
        std::iota(ranks.begin(), ranks.end(), item.first_rank);
        line["ranks"] = ranks;
        line["first_rank"] = item.first_rank;
        line["count"] = item.ranks;
    }
    line["node"] = rendezvous::host_of(item.node).substr(0, kLongestText);
}

void describe(ordered_json& line, const Stopping& stop, Duration now) {
    line["event"] = "stop";
    line["reason"] = stop.reason;
    if (!stop.sentence.empty()) line["sentence"] = stop.sentence.substr(0, kLongestText);
    line["signal"] = signal_name(stop.signal);
    line["seconds_left"] = in_seconds(stop.grace);
    line["killed_at"] = in_seconds(now + stop.grace);
    line["requeue"] = stop.requeue;
}

}  // namespace

Stopping stopping_by(const StopHint& hint) {
    return {to_string(hint.cause), hint.sentence, hint.signal, hint.grace, hint.requeue};
}

std::string to_line(const Notice& notice, Generation generation, Duration now) {
    ordered_json line;
    std::visit(Overload{[&](const NewsItem& item) { describe(line, item); },
                        [&](const Stopping& stop) { describe(line, stop, now); },
                        [&](const SnapshotHint& hint) {
                            line["event"] = "snapshot_requested";
                            line["by"] = hint.asked.by.substr(0, kLongestText);
                            line["number"] = hint.asked.number;
                        }},
               notice);
    line["generation"] = generation.value;
    line["time"] = in_seconds(now);
    // `replace`: a name need not be UTF-8, and dump() would throw.
    return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool PassedOn::is_first(const NewsItem& item) {
    const bool first = std::ranges::none_of(items_, [&](const NewsItem& each) {
        if (each.kind != item.kind) return false;
        return item.kind == NewsKind::worker_lost ? each.first_rank == item.first_rank
                                                  : each.node == item.node;
    });
    if (first) items_.push_back(item);
    return first;
}

}  // namespace ddprun::agent
