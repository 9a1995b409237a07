// Makes the page's JSON, within its limit (page_json.h).
#include "operator/page/page_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "operator/ddpctl/jobs_text.h"
#include "operator/ddpctl/status_text.h"
#include "rendezvous/rules/time_spent.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;
using rendezvous::DatedEntry;
using rendezvous::LedgerEntry;

constexpr std::size_t kLongestText = 2000;  // bytes; a sentence of a failure may quote a worker
constexpr std::size_t kLongestWhy = 300;    // of one node of many
// For all that is not a node or an entry.
constexpr std::size_t kHeadRoom = std::size_t{64} << 10;

std::string short_text(const std::string& text, std::size_t most = kLongestText) {
    std::string line = printable(text);
    if (line.size() <= most) return line;
    // Not amid a character.
    while (most > 0 && (line[most] & 0xc0) == 0x80) --most;
    return line.substr(0, most) + "…";
}
Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(short_text(text));
}
Json number_or_null(std::int64_t number) { return number >= 0 ? Json(number) : Json(); }
Json time_or_null(std::int64_t since_1970) {
    return since_1970 > 0 ? Json(since_1970 / 1'000'000) : Json();
}
std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A node's state and its list, with the size that it takes.
struct NodeLine {
    std::string state;
    Json json;
    std::size_t size = 0;
};

NodeLine node_line(const std::string& name, const std::string& state, const std::string& why,
                   int first_rank, int workers, std::int64_t heard, std::int64_t step) {
    NodeLine line{state, Json::array({short_text(name, kLongestWhy), short_text(state, 40),
                                      why.empty() ? Json() : Json(short_text(why, kLongestWhy)),
                                      number_or_null(first_rank), workers, time_or_null(heard),
                                      number_or_null(step)})};
    line.size = line_of(line.json).size() + 1;
    return line;
}

Json end_json(const PageView& view) {
    if (view.newest())
        if (const rendezvous::Ending* end = view.newest()->end())
            return {{"code", end->code}, {"sentence", text_or_null(end->sentence)}};
    if (!view.status || !view.status->has_ended()) return {};
    return {{"code", view.status->ended().code()},
            {"sentence", text_or_null(view.status->ended().sentence())}};
}

// After the end nothing runs, whatever was told last; a node that was lost stays so.
std::vector<NodeLine> lines_of(const PageView& view) {
    std::vector<NodeLine> lines;
    if (view.status) {
        const bool over = !end_json(view).is_null();
        for (const control::Node& node : view.status->nodes()) {
            const bool ran = node.state() == "running" || node.state() == "starting" ||
                             node.state() == "stopping";
            lines.push_back(node_line(node.name(), over && ran ? "recorded" : node.state(),
                                      over && ran ? "" : node.why(), node.first_rank(),
                                      node.workers(), node.heard(), node.step()));
        }
        return lines;
    }
    if (const rendezvous::Assignment* made = view.generation())
        for (const rendezvous::Member& member : made->members)
            lines.push_back(node_line(member.node.name, "recorded", "", member.rank_offset,
                                      member.offer.slots, 0, -1));
    return lines;
}

void add_nodes(Json& json, std::vector<NodeLine> lines) {
    std::map<std::string, int> counts;
    for (const NodeLine& line : lines) ++counts[short_text(line.state, 40)];
    json["counts"] = counts;
    // Those that do not run come first where there is too little room, and then in their order.
    std::size_t room = kEventLimit - kHeadRoom;
    std::vector<bool> fits(lines.size());
    for (const bool runs : {false, true})
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if ((lines[i].state == "running") != runs || lines[i].size > room) continue;
            room -= lines[i].size;
            fits[i] = true;
        }
    json["nodes"] = Json::array();
    for (std::size_t i = 0; i < lines.size(); ++i)
        if (fits[i]) json["nodes"].push_back(std::move(lines[i].json));
    json["nodes_left_out"] = lines.size() - json["nodes"].size();
}

void add_told_json(Json& json, const control::StatusReply& job) {
    json["told"] = time_or_null(job.now());
    json["run_id"] = text_or_null(job.run_id());
    json["leader"] = text_or_null(job.leader());
    json["generation"] = number_or_null(job.generation());
    json["runs"] = job.runs();
    json["since"] = time_or_null(job.since());
    json["world_size"] = job.world_size();
    json["restarts"] = job.restarts();
    json["max_restarts"] = job.max_restarts();
    json["min_nodes"] = job.min_nodes();
    json["max_nodes"] = job.max_nodes();
    json["step"] = number_or_null(job.step());
    json["snapshot"] = number_or_null(job.snapshot());
    json["waiting_for"] = text_or_null(job.waiting_for());
    json["stopping"] = text_or_null(job.stopping());
    json["snapshot_asked"] = text_or_null(job.snapshot_asked());
    json["standstill"] = text_or_null(job.standstill());
    json["last_end"] = text_or_null(last_end(job));
    json["ends"] = job.has_ends() ? time_or_null(job.ends()) : Json();
}

// Of a job whose leader has told nothing.
void add_recorded_json(Json& json, const PageView& view) {
    const rendezvous::Assignment* made = view.generation();
    json["generation"] = made ? number_or_null(made->generation.value) : Json();
    if (!made) return;
    json["leader"] = text_or_null(view.newest()->leader.name);
    json["world_size"] = made->world_size;
    json["restarts"] = made->restarts;
    json["max_restarts"] = made->max_restarts;
    if (made->generation.value > 0) json["last_end"] = text_or_null(made->cause);
}

Json entry_json(const DatedEntry& dated) {
    const LedgerEntry& entry = dated.entry;
    const rendezvous::Ending* end = entry.end();
    Json json{{"at", time_or_null(dated.written.count())},
              {"kind", end                        ? "end"
                       : entry.makes_generation() ? "generation"
                       : entry.takes_over()       ? "takeover"
                                                  : "allocation"},
              {"generation", number_or_null(entry.assignment.generation.value)},
              {"leader", text_or_null(short_text(entry.leader.name, kLongestWhy))}};
    if (end) {
        json["code"] = end->code;
        json["cause"] = text_or_null(end->sentence);
    } else if (entry.makes_generation()) {
        json["nodes"] = entry.assignment.members.size();
        json["workers"] = entry.assignment.world_size;
        json["cause"] = text_or_null(entry.assignment.cause);
    } else if (!entry.takes_over()) {
        json["requeue"] = entry.requeue;
    }
    return json;
}

}  // namespace

const char* to_string(PageView::Link link) {
    constexpr const char* kNames[] = {"asking", "answers", "lost", "silent", "ended"};
    return kNames[static_cast<std::size_t>(link)];
}

std::string page_status_json(const PageView& view, Duration now) {
    Json json{{"now", time_or_null(now.count())},
              {"name", short_text(view.job.name, kLongestWhy)},
              {"ledger", short_text(view.job.path)},
              {"link", to_string(view.link)},
              {"why", text_or_null(view.why)},
              {"heard", time_or_null(view.answers() ? now.count() : view.heard.count())}};
    json["ended"] = end_json(view);
    if (view.status)
        add_told_json(json, *view.status);
    else
        add_recorded_json(json, view);
    json["steps_a_second"] = view.answers() && view.steps ? Json(*view.steps) : Json();
    add_nodes(json, lines_of(view));
    return line_of(json);
}

std::string page_history_json(const PageView& view) {
    const auto& entries = view.history.entries;
    Json json{
        {"begun", time_or_null(view.job.begun.count())},
        {"fault", view.history.fault ? Json(short_text(view.history.fault->sentence())) : Json()}};
    std::size_t room = kEventLimit - kHeadRoom;
    Json shown = Json::array();  // the newest first
    for (auto one = entries.rbegin(); one != entries.rend() && shown.size() < kEntriesShown;
         ++one) {
        Json entry = entry_json(*one);
        const std::size_t size = line_of(entry).size() + 1;
        if (size > room) break;
        room -= size;
        shown.push_back(std::move(entry));
    }
    json["entries_left_out"] = entries.size() - shown.size();
    json["entries"] = std::move(shown);
    json["parts"] = Json::array();
    json["causes"] = Json::object();
    if (const LedgerEntry* newest = view.newest()) {
        json["recorded_from"] = time_or_null(newest->time.begun.count());
        json["recorded_until"] = time_or_null(newest->time.at.count());
        json["saves"] = newest->time.saves;
        for (const rendezvous::TimePart& part : rendezvous::parts_of(newest->time.spent))
            json["parts"].push_back({part.name, part.words, in_seconds(part.took)});
        for (std::size_t i = 0; i < rendezvous::kRestartCauses; ++i)
            json["causes"][rendezvous::kRestartCauseNames[i]] = newest->restart.totals.causes[i];
    }
    return line_of(json);
}

}  // namespace ddprun::launcher
