// The rule of what may be forgotten (forget_rule.h).
#include "operator/ddpctl/forget_rule.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "base/printable.h"
#include "operator/ddpctl/ctl_commands.h"
#include "operator/ddpctl/jobs_text.h"
#include "operator/ddpctl/print_parts.h"
#include "rendezvous/model/stop_sentences.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

bool has_ended(JobState state) { return state == JobState::succeeded || state == JobState::failed; }

// Why force is needed; empty: it is not.
std::string why_force(JobState state) {
    switch (state) {
        case JobState::stopped:
            return "was stopped and may be started again, so --force is needed";
        case JobState::no_end:
            return "has recorded no end and may run, so --force is needed";
        case JobState::running:
        case JobState::queued:
        case JobState::no_ledger:
            return "may run, so --force is needed";
        case JobState::no_entry:
            return "has no generation yet and may wait for its nodes, so --force is needed";
        default:
            return "";
    }
}

// Slurm may start a job again that it has stopped itself, but none that its owner has stopped.
bool was_ended_by_operator(const FoundJob& job) {
    const rendezvous::Ending* end = job.newest ? job.newest->end() : nullptr;
    return end && rendezvous::is_operators_stop(*end);
}

// The time since the newest entry. A ledger without entries is as old as its claim.
Duration age_of(const FoundJob& job, Duration now) {
    return now - std::max(job.written, job.begun);
}

std::string why_left(const FoundJob& job, const ForgetWish& wish, Duration now) {
    const JobState state = state_of(job);
    // Whatever is in such a folder is not ours to delete.
    if (!job.owner.empty()) return "is " + job.owner + "'s, who alone can remove it";
    if (state == JobState::unreadable)
        return "cannot be read (" + job.fault + "); if no job needs it, remove " + job.path;
    if (!job.etcd.empty())
        return "lies in etcd, where etcdctl del --prefix ddprun/" + job.name + "/ removes it";
    const bool over = has_ended(state) || is_set_aside(job) || was_ended_by_operator(job);
    if (!over && !wish.force) return why_force(state);
    if (wish.older_than && age_of(job, now) < *wish.older_than)
        return "is " + age_text(age_of(job, now)) + " old";
    return "";
}

const FoundJob* find(const std::vector<FoundJob>& jobs, const std::string& name) {
    const auto found = std::ranges::find(jobs, name, &FoundJob::name);
    return found == jobs.end() ? nullptr : &*found;
}

}  // namespace

Result<std::vector<ForgetPlan>> plan_forgetting(const std::vector<FoundJob>& jobs,
                                                const ForgetWish& wish, Duration now) {
    std::vector<ForgetPlan> plans;
    if (wish.names.empty() && !wish.older_than)
        return usage_error(
            "forget: say which: names of ddpctl jobs, or --older-than=30d (0s: all that have "
            "ended)");
    if (wish.names.empty() && wish.force)
        return usage_error("--force: name the jobs that are meant");
    for (const std::string& name : wish.names) {
        const FoundJob* job = find(jobs, name);
        if (!job)
            return Error(ErrorCode::not_found,
                         printable(name) +
                             ": no job of this name has a ledger here; see ddpctl "
                             "jobs");
        const bool again = std::ranges::any_of(
            plans, [&](const ForgetPlan& plan) { return plan.job.name == name; });
        if (!again) plans.push_back({*job, why_left(*job, wish, now)});
    }
    if (!wish.names.empty()) return plans;
    for (const FoundJob& job : jobs)
        if (why_left(job, wish, now).empty()) plans.push_back({job, ""});
    return plans;
}

const char* moved_as(const FoundJob& job) {
    return has_ended(state_of(job)) ? "finished" : "forgotten";
}

std::string forget_text(const std::vector<Forgotten>& all, bool dry_run, Duration now) {
    std::string text;
    std::int64_t bytes = 0;
    std::size_t removed = 0;
    for (const auto& [plan, failed] : all) {
        const std::string name = printable(plan.job.name);
        if (!plan.left.empty()) {
            text += name + " is left alone: it " + printable(plan.left) + "\n";
        } else if (!failed.empty()) {
            text += name + " could not be removed: " + printable(failed) + "\n";
        } else {
            ++removed;
            bytes += plan.job.bytes;
            text += (dry_run ? "would remove " : "removed ") + name + ": " +
                    state_text(plan.job, now) + ", " + size_text(plan.job.bytes) + "\n";
        }
    }
    return text + (dry_run ? "would remove " : "removed ") + count_text(removed, "ledger") + ", " +
           size_text(bytes) + "\n";
}

std::string forget_json(const std::vector<Forgotten>& all, bool dry_run) {
    Json list = Json::array();
    for (const auto& [plan, failed] : all) {
        const bool removed = plan.left.empty() && failed.empty();
        list.push_back({{"name", plan.job.name},
                        {"ledger", plan.job.path},
                        {"state", to_string(state_of(plan.job))},
                        {"removed", removed && !dry_run},
                        {"reason", removed             ? Json()
                                   : plan.left.empty() ? Json(failed)
                                                       : Json(plan.left)},
                        {"bytes", plan.job.bytes}});
    }
    const Json json{{"format", "ddpctl forget"},
                    {"version", 1},
                    {"dry_run", dry_run},
                    {"jobs", std::move(list)}};
    return json_text(json);
}

int forget_code(const std::vector<Forgotten>& all) {
    int code = 0;
    for (const auto& [plan, failed] : all) {
        if (!failed.empty()) return kUnavailableCode;
        if (!plan.left.empty()) code = kNoSuchJobCode;
    }
    return code;
}

}  // namespace ddprun::launcher
