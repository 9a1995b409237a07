// Lays out how a job stands (status_text.h).
#include "operator/ddpctl/status_text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "base/printable.h"
#include "base/utc_text.h"
#include "operator/ddpctl/jobs_text.h"
#include "operator/ddpctl/print_parts.h"
#include "operator/ddpctl/recorded_status.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration kRateOver = std::chrono::seconds{30};

std::string line(const char* head, const std::string& text) {
    std::string column = head;
    column.resize(12, ' ');
    return column + printable(text) + "\n";
}

std::string ago(std::int64_t since, const control::StatusReply& job) {
    return age_text(Duration{job.now() - since});
}

std::string status_generation(const control::StatusReply& job) {
    if (job.generation() < 0) return "none yet";
    std::string text = std::to_string(job.generation());
    if (is_recorded(job))
        return text + " of " + count_text(job.world_size(), "worker") +
               ", the newest that is recorded";
    if (!job.runs()) return text + " has ended";
    return text + " runs since " + ago(job.since(), job) + " with " +
           count_text(job.world_size(), "worker");
}

// Those that hold: an operator may have set others than the command line.
std::string limits_text(const control::StatusReply& job) {
    const std::string max = count_text(job.max_nodes(), "node");
    return job.min_nodes() < job.max_nodes() ? std::to_string(job.min_nodes()) + " to " + max : max;
}

std::string ranks_of(const control::Node& node) {
    if (node.first_rank() < 0) return "-";
    const int last = node.first_rank() + node.workers() - 1;
    return std::to_string(node.first_rank()) +
           (last > node.first_rank() ? "-" + std::to_string(last) : "");
}

std::string why_of(const control::Node& node, const control::StatusReply& job) {
    return printable(node.why()) +
           (node.heard() > 0 ? ", last heard " + ago(node.heard(), job) + " ago" : "");
}

std::string nodes_text(const control::StatusReply& job, std::size_t most_nodes = 40) {
    if (job.nodes().empty()) return {};
    std::vector<std::vector<Cell>> rows{{{"NODE"}, {"STATE"}, {"RANKS"}, {"WHY"}}};
    const bool all = static_cast<std::size_t>(job.nodes_size()) <= most_nodes;
    std::int64_t left_out = 0;
    for (const control::Node& node : job.nodes()) {
        if ((!all && node.state() == "running") || rows.size() > most_nodes)
            ++left_out;
        else
            rows.push_back({{printable(node.name())},
                            {printable(node.state())},
                            {ranks_of(node)},
                            {why_of(node, job)}});
    }
    return table_text(rows) +
           (left_out > 0 ? "and " + count_text(left_out, "node") + " more\n" : "");
}

std::string rate_text(double steps) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3g steps a second", steps);
    return text;
}

// What does not fit would scroll the beginning away. The cursor stands below the last line.
std::string cut_text(const std::string& text, std::size_t rows) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
    if (lines < rows) return text;
    const std::size_t kept = rows > 2 ? rows - 2 : 0;
    std::size_t end = 0;
    for (std::size_t line = 0; line < kept; ++line) end = text.find('\n', end) + 1;
    return text.substr(0, end) + "… " + count_text(lines - kept, "more line") +
           ": this window is too low" + (rows > 1 ? "\n" : "");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json time_or_null(std::int64_t since_1970) {
    return since_1970 > 0 ? Json(utc_text(Duration{since_1970})) : Json();
}

// What stands above the nodes.
std::string head_text(const control::StatusReply& job, std::optional<double> steps) {
    std::string text =
        line("job", job.run_id() + (job.leader().empty() ? ", led by no node now"
                                                         : ", led by " + job.leader()));
    if (job.has_ended())
        text += line("ended", "with code " + std::to_string(job.ended().code()) + ": " +
                                  job.ended().sentence());
    text += line("generation", status_generation(job));
    if (!job.waiting_for().empty()) text += line("waits", job.waiting_for());
    if (!job.snapshot_asked().empty()) text += line("snapshot", job.snapshot_asked());
    if (!job.stopping().empty())
        text +=
            line("stopping",
                 job.stopping() + (job.has_kills() ? "; what still runs is killed in " +
                                                         age_text(Duration{job.kills() - job.now()})
                                                   : ""));
    if (!job.standstill().empty()) text += line("standstill", job.standstill());
    if (job.max_nodes() > 0) text += line("limits", limits_text(job));
    text += line("restarts", std::to_string(job.restarts()) + " of " +
                                 std::to_string(job.max_restarts()) + " used");
    if (const std::string& last = last_end(job); !last.empty()) text += line("last end", last);
    if (job.step() >= 0)
        text += line("progress", "step " + std::to_string(job.step()) +
                                     (job.snapshot() >= 0
                                          ? ", snapshot of step " + std::to_string(job.snapshot())
                                          : "") +
                                     (steps ? ", " + rate_text(*steps) : ""));
    if (job.has_ends()) text += line("time left", age_text(Duration{job.ends() - job.now()}));
    return text;
}

}  // namespace

const std::string& last_end(const control::StatusReply& job) {
    static const std::string kNone;
    if (!job.ended_by().empty()) return job.ended_by();
    return job.generation() > 0 ? job.cause() : kNone;
}

std::string status_text(const control::StatusReply& job, std::size_t most_nodes) {
    return head_text(job, std::nullopt) + nodes_text(job, most_nodes);
}

std::string top_text(const control::StatusReply& job, std::optional<double> steps,
                     std::size_t rows) {
    const std::string head = head_text(job, steps);
    // The heading of the table, the count of those left out, and the line of the cursor.
    const auto used = static_cast<std::size_t>(std::ranges::count(head, '\n')) + 3;
    if (rows == 0) return head + nodes_text(job);
    return cut_text(head + nodes_text(job, rows > used ? rows - used : 1), rows);
}

std::optional<double> StepRate::at(const control::StatusReply& job) {
    if (job.generation() != generation_ || job.step() < 0) looks_.clear();
    generation_ = job.generation();
    if (job.step() < 0) return std::nullopt;
    looks_.push_back({job.now(), job.step()});
    while (looks_.size() > 2 && looks_[1].at <= job.now() - kRateOver.count()) looks_.pop_front();
    const Look& first = looks_.front();
    if (job.now() <= first.at) return std::nullopt;
    return static_cast<double>(job.step() - first.step) /
           std::chrono::duration<double>(Duration{job.now() - first.at}).count();
}

std::string status_json(const control::StatusReply& job, int indent) {
    Json nodes = Json::array();
    for (const control::Node& node : job.nodes())
        nodes.push_back({{"name", node.name()},
                         {"state", node.state()},
                         {"why", text_or_null(node.why())},
                         {"first_rank", node.first_rank() >= 0 ? Json(node.first_rank()) : Json()},
                         {"workers", node.workers()},
                         {"heard", time_or_null(node.heard())},
                         {"step", node.step() >= 0 ? Json(node.step()) : Json()}});
    Json json{{"format", "ddpctl status"}, {"version", 1}, {"run_id", job.run_id()}};
    json["leader"] = text_or_null(job.leader());
    json["phase"] = job.phase();
    json["generation"] = job.generation() >= 0 ? Json(job.generation()) : Json();
    json["runs"] = job.runs();
    json["since"] = time_or_null(job.since());
    json["cause"] = text_or_null(job.cause());
    json["world_size"] = job.world_size();
    json["restarts"] = job.restarts();
    json["max_restarts"] = job.max_restarts();
    json["min_nodes"] = job.min_nodes();
    json["max_nodes"] = job.max_nodes();
    json["requeue"] = job.requeue();
    json["step"] = job.step() >= 0 ? Json(job.step()) : Json();
    json["snapshot"] = job.snapshot() >= 0 ? Json(job.snapshot()) : Json();
    json["waiting_for"] = text_or_null(job.waiting_for());
    json["stopping"] = text_or_null(job.stopping());
    json["snapshot_asked"] = text_or_null(job.snapshot_asked());
    json["standstill"] = text_or_null(job.standstill());
    json["last_end"] = text_or_null(last_end(job));
    json["ends"] = job.has_ends() ? time_or_null(job.ends()) : Json();
    json["kills"] = job.has_kills() ? time_or_null(job.kills()) : Json();
    const control::Usage& usage = job.usage();
    json["usage"] = Json{{"leader_memory_bytes", usage.leader_memory()},
                         {"largest_memory_bytes", usage.largest_memory()},
                         {"log_bytes", usage.log_bytes()},
                         {"store_operations", usage.store_operations()},
                         {"store_waiters", usage.store_waiters()}};
    json["ended"] = job.has_ended()
                        ? Json{{"code", job.ended().code()}, {"sentence", job.ended().sentence()}}
                        : Json();
    json["now"] = time_or_null(job.now());
    json["nodes"] = std::move(nodes);
    return json_text(json, indent);
}

}  // namespace ddprun::launcher
