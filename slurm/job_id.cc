// Spells jobs, and reads the output of `scontrol show job` and `squeue -s`.
#include "slurm/job_id.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "slurm/hostlist.h"

namespace ddprun::slurm {
namespace {

// Returns the first line, without its end, and removes it from `text`.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

// Returns the value of the first word "KEY=value" in these lines.
std::string_view value_in(std::string_view lines, std::string_view key) {
    while (!lines.empty()) {
        std::string_view line = take_line(lines);
        while (!line.empty()) {
            const std::size_t end = std::min(line.find(' '), line.size());
            const std::string_view word = line.substr(0, end);
            if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
                return word.substr(key.size() + 1);
            line.remove_prefix(std::min(end + 1, line.size()));
        }
    }
    return {};
}

// The text of one job. Its first line holds the ids, and at its end the name, which the user
// chooses and which may look like any word. Other text of the user comes after the fields that are
// read here.
struct Part {
    std::string_view head, fields;
    std::string_view id(std::string_view key) const {
        return value_in(head.substr(0, head.find(" JobName=")), key);
    }
    std::string_view field(std::string_view key) const { return value_in(fields, key); }
};

std::vector<Part> parts_of(std::string_view shown) {
    std::vector<Part> parts;
    constexpr std::string_view kBegin = "JobId=";
    while (!shown.empty()) {
        const std::size_t next = shown.find("\nJobId=", 1);
        std::string_view text = shown.substr(0, next);
        shown.remove_prefix(next == std::string_view::npos ? shown.size() : next + 1);
        if (!text.starts_with(kBegin)) continue;
        Part part{.head = take_line(text), .fields = {}};
        part.fields = text;
        parts.push_back(part);
    }
    return parts;
}

bool is_number(std::string_view text) {
    return !text.empty() &&
           std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

BatchScript script_of(const Part& part) {
    const std::string_view host = part.field("BatchHost");
    // A job that is pending, completing or requeued must not be ended by us. If a field is missing,
    // the answer is `none` too: a wrong `lost` would cancel a healthy job.
    if (part.field("JobState") != "RUNNING" || part.field("BatchFlag") != "1" || host.empty())
        return BatchScript::none;
    const auto nodes = expand_hostlist(part.field("NodeList"));
    if (!nodes || nodes->empty()) return BatchScript::none;
    // When Slurm gives up on a node of a running job, it removes the node from NodeList but leaves
    // BatchHost as it was.
    return std::ranges::find(*nodes, host) == nodes->end() ? BatchScript::lost : BatchScript::there;
}

template <class Number>
std::optional<Number> number_of(const Part& part, std::string_view key) {
    const std::string_view text = part.field(key);
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

bool depends(const Part& part) {
    const std::string_view on = part.field("Dependency");
    return !on.empty() && on != "(null)";
}

std::string element(std::string_view array, std::string_view task) {
    return std::string(array) + "_" + std::string(task);
}

}  // namespace

JobId::JobId(const std::map<std::string, std::string>& environment) {
    const auto value = [&environment](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string() : found->second;
    };
    number_ = value("SLURM_JOB_ID");
    if (number_.empty()) number_ = value("SLURM_JOBID");
    // Other elements have an id that means nobody else. If the ids are the same, the variables
    // cannot be those of another array: it would have another id.
    const std::string task = value("SLURM_ARRAY_TASK_ID");
    const bool needs_task =
        !number_.empty() && value("SLURM_ARRAY_JOB_ID") == number_ && is_number(task);
    spelled_ = needs_task ? element(number_, task) : number_;
}

bool JobId::is(std::string_view id) const {
    return !number_.empty() && (id == spelled_ || id.substr(0, id.find('+')) == number_);
}

std::string ShownJob::with_parts() const {
    if (parts.empty()) return id.spelled();
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : ",") + part;
    return all;
}

// squeue also lists the batch script and the "extern" step. They are Slurm's own and do not count.
// A line that cannot be understood counts as another step.
bool ShownJob::has_only_step(std::string_view steps, std::string_view own) const {
    while (!steps.empty()) {
        const std::string_view step = take_line(steps);
        const std::size_t dot = step.rfind('.');
        if (step.empty()) continue;
        if (dot == std::string_view::npos) return false;
        const std::string_view job = step.substr(0, dot), number = step.substr(dot + 1);
        const bool ours = id.is(job) || std::ranges::find(parts, job) != parts.end();
        if (ours && number != own && number != "batch" && number != "extern") return false;
    }
    return true;
}

std::optional<ShownJob> find_job(std::string_view shown, const JobId& job) {
    std::optional<ShownJob> found;
    const std::vector<Part> all = parts_of(shown);
    for (const Part& part : all) {
        if (part.id("JobId") != job.number()) continue;
        if (found) return std::nullopt;
        const std::string_view array = part.id("ArrayJobId"), task = part.id("ArrayTaskId"),
                               leader = part.id("HetJobId");
        // An element that waits with its brothers in one part has a list here.
        if (!array.empty() && !is_number(task)) return std::nullopt;
        // Only the first part of a heterogeneous job can be named: the others follow it.
        std::string spelled = !array.empty() ? element(array, task) : job.number();
        if (!leader.empty()) spelled = leader;
        found = ShownJob{.id = JobId(job.number(), std::move(spelled)),
                         .parts = {},
                         .script = script_of(part),
                         .restarts = number_of<int>(part, "Restarts"),
                         .held = part.field("Priority") == "0",
                         .depends = depends(part),
                         .eligible = std::chrono::seconds(
                             number_of<std::int64_t>(part, "EligibleTime").value_or(0))};
        if (leader.empty()) continue;
        for (const Part& other : all)
            if (other.id("HetJobId") == leader) found->parts.emplace_back(other.id("JobId"));
    }
    return found;
}

}  // namespace ddprun::slurm
