// Lays out the list of jobs (jobs_text.h).
#include "operator/ddpctl/jobs_text.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "base/printable.h"
#include "base/utc_text.h"
#include "operator/ddpctl/print_parts.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

// Generation, restarts and size.
const std::set<std::size_t> kNumbers = {2, 3, 4};

// "2027-01-15 08:00Z"; the seconds would say nothing here.
std::string minute_text(Duration since_1970) {
    if (since_1970 <= Duration{}) return "-";
    std::string text = utc_text(since_1970).substr(0, 16);
    text[10] = ' ';
    return text + "Z";
}

std::string job_generation(const FoundJob& job) {
    const bool known = job.newest && job.newest->assignment.generation >= Generation{0};
    return known ? std::to_string(job.newest->assignment.generation.value) : "-";
}

// Colours of a terminal: green, red, yellow.
const char* colour_of(JobState state) {
    switch (state) {
        case JobState::running:
        case JobState::succeeded:
            return "\x1b[32m";
        case JobState::failed:
        case JobState::unreadable:
            return "\x1b[31m";
        default:
            return "\x1b[33m";
    }
}

std::vector<Cell> row_of(const FoundJob& job, Duration now, bool colour) {
    const bool ended = job.newest && job.newest->end();
    return {{printable(job.name)},
            {state_text(job, now), colour ? colour_of(state_of(job)) : ""},
            {job_generation(job)},
            {job.newest ? std::to_string(job.newest->restart.totals.restarts) : "-"},
            {size_text(job.bytes)},
            {minute_text(job.begun)},
            {ended ? minute_text(job.written) : "-"}};
}

Json time_json(Duration since_1970) {
    return since_1970 > Duration{} ? Json(utc_text(since_1970)) : Json();
}

Json json_of(const FoundJob& job) {
    const rendezvous::Ending* end = job.newest ? job.newest->end() : nullptr;
    Json json{{"name", job.name}};
    json["ledger"] = job.only_socket ? Json() : Json(job.path);
    json["state"] = to_string(state_of(job));
    json["verdict"] = end ? Json(rendezvous::to_string(end->verdict)) : Json();
    json["exit_code"] = end ? Json(end->code) : Json();
    json["reason"] = end                  ? Json(end->sentence)
                     : !job.owner.empty() ? Json("is " + job.owner + "'s")
                     : job.fault.empty()  ? Json()
                                          : Json(job.fault);
    const bool known = job.newest && job.newest->assignment.generation >= Generation{0};
    json["generation"] = known ? Json(job.newest->assignment.generation.value) : Json();
    json["restarts"] = job.newest ? Json(job.newest->restart.totals.restarts) : Json();
    json["set_aside"] = is_set_aside(job);
    json["bytes"] = job.bytes;
    json["begun"] = time_json(job.begun);
    json["newest_entry"] = time_json(job.written);
    json["ended"] = end ? time_json(job.written) : Json();
    return json;
}

}  // namespace

std::string size_text(std::int64_t bytes) {
    constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) return std::to_string(bytes) + " B";
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    // 1023.95 would be printed as 1024.0.
    while (size >= 1023.95 && unit + 1 < std::size(kUnits)) size /= 1024, ++unit;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", size, kUnits[unit]);
    return text;
}

std::string age_text(Duration age) {
    const std::int64_t s =
        std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::seconds>(age).count(), 0);
    if (s < 120) return std::to_string(s) + " s";
    if (s < 7200) return std::to_string(s / 60) + " m";
    if (s < 48 * 3600) return std::to_string(s / 3600) + " h";
    return std::to_string(s / 86400) + " d";
}

std::string state_text(const FoundJob& job, Duration now) {
    switch (state_of(job)) {
        case JobState::running:
            return "runs as " + std::to_string(job.process) +
                   (job.owner.empty() ? "" : "; is " + job.owner + "'s");
        case JobState::queued:
            return "PENDING in Slurm's queue";
        case JobState::succeeded:
            return "succeeded";
        case JobState::failed:
            return "failed with " + std::to_string(job.newest->end()->code);
        case JobState::stopped:
            return job.newest->end()->verdict == rendezvous::Verdict::work_left
                       ? "stopped with work left"
                       : "stopped with " + std::to_string(job.newest->end()->code);
        case JobState::no_end:
            return "no end; last entry " + age_text(now - job.written) + " ago";
        case JobState::no_entry:
            return "no generation yet";
        case JobState::no_ledger:
            return "runs or has run; ask it";
        case JobState::unreadable:
            break;
    }
    return job.owner.empty() ? "cannot be read" : "is " + job.owner + "'s";
}

std::string jobs_text(const std::vector<FoundJob>& jobs, const std::string& folder, Duration now,
                      bool colour) {
    if (jobs.empty()) return "no job has a ledger in " + printable(folder) + "\n";
    std::size_t ledgers = 0;
    std::vector<std::vector<Cell>> rows{
        {{"NAME"}, {"STATE"}, {"GENERATION"}, {"RESTARTS"}, {"SIZE"}, {"BEGUN"}, {"ENDED"}}};
    std::int64_t bytes = 0;
    for (const FoundJob& job : jobs) {
        bytes += job.bytes;
        ledgers += job.only_socket ? 0 : 1;
        rows.push_back(row_of(job, now, colour));
    }
    std::string text = table_text(rows, kNumbers);
    if (ledgers > 0)
        text += count_text(ledgers, "ledger") + ", " + size_text(bytes) + " in " +
                printable(folder) + "\n";
    for (const FoundJob& job : jobs)
        if (!job.fault.empty() && job.owner.empty())
            text += printable(job.name) + ": " + printable(job.fault) + "\n";
    return text;
}

std::string jobs_json(const std::vector<FoundJob>& jobs, const std::string& folder) {
    Json list = Json::array();
    for (const FoundJob& job : jobs) list.push_back(json_of(job));
    const Json json{
        {"format", "ddpctl jobs"}, {"version", 1}, {"folder", folder}, {"jobs", std::move(list)}};
    return json_text(json);
}

}  // namespace ddprun::launcher
