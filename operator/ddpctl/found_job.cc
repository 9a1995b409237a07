// States of jobs, and the choice among them (found_job.h).
#include "operator/ddpctl/found_job.h"

#include <algorithm>

#include "base/hexadecimal.h"
#include "base/printable.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Verdict;

constexpr std::size_t kNamed = 8;  // in a sentence

// A ledger's name has cluster, job and step, or job and step: "lab.8812.0" (make_plan.cc). Whether
// these words stand in it, as whole parts.
bool has_parts(const std::string& name, const std::string& parts) {
    for (std::size_t at = name.find(parts); at != std::string::npos;
         at = name.find(parts, at + 1)) {
        const std::size_t end = at + parts.size();
        const bool begins = at == 0 || name[at - 1] == '.';
        if (begins && (end == name.size() || name[end] == '.' || name[end] == '-')) return true;
    }
    return false;
}

std::vector<const FoundJob*> those_of(const std::vector<const FoundJob*>& jobs,
                                      const std::string& parts) {
    std::vector<const FoundJob*> fitting;
    for (const FoundJob* job : jobs)
        if (has_parts(job->name, parts)) fitting.push_back(job);
    return fitting;
}

bool job_has_ended(const FoundJob* job) { return job->newest && job->newest->end(); }

Error several(const std::vector<const FoundJob*>& jobs) {
    std::string names;
    for (std::size_t i = 0; i < jobs.size() && i < kNamed; ++i)
        names += (i == 0 ? "" : ", ") + printable(jobs[i]->path);
    if (jobs.size() > kNamed) names += " and " + std::to_string(jobs.size() - kNamed) + " more";
    return usage_error(std::to_string(jobs.size()) +
                       " jobs have ledgers here; choose one with --ledger=PATH: " + names);
}

}  // namespace

bool is_called(const FoundJob& job, const std::string& word) {
    return !word.empty() && (job.name == word || has_parts(job.name, word));
}

JobState state_of(const FoundJob& job) {
    if (!job.socket.empty()) return JobState::running;
    if (job.queued) return JobState::queued;
    if (!job.fault.empty()) return JobState::unreadable;
    if (!job.has_ledger()) return JobState::no_ledger;
    if (!job.newest) return JobState::no_entry;
    const rendezvous::Ending* end = job.newest->end();
    if (!end) return JobState::no_end;
    switch (end->verdict) {
        case Verdict::succeeded:
            return JobState::succeeded;
        case Verdict::work_left:
        case Verdict::user_signal:
            return JobState::stopped;
        default:
            return JobState::failed;
    }
}

const char* to_string(JobState state) {
    constexpr const char* kNames[] = {"running", "queued",   "succeeded", "failed",    "stopped",
                                      "no_end",  "no_entry", "no_ledger", "unreadable"};
    return kNames[static_cast<std::size_t>(state)];
}

bool is_among(const FoundJob& job, std::string_view ids) {
    const std::string name = "." + job.name;  // "lab.8812.0" or "8812.0"
    while (!ids.empty()) {
        const std::string id(ids.substr(0, ids.find('\n')));
        if (!id.empty() && name.find("." + id + ".") != std::string::npos) return true;
        ids.remove_prefix(std::min(ids.size(), id.size() + 1));
    }
    return false;
}

bool is_set_aside(const FoundJob& job) {
    return job.mark != 0 && job.name.ends_with("-" + hexadecimal(job.mark));
}

Result<FoundJob> choose_job(const std::vector<FoundJob>& jobs, const SlurmNames& slurm,
                            const std::string& folder, Wanted wanted) {
    std::vector<const FoundJob*> fitting;
    for (const FoundJob& job : jobs)
        if (!is_set_aside(job)) fitting.push_back(&job);
    // A ledger of an earlier job is better than none.
    if (fitting.empty())
        for (const FoundJob& job : jobs) fitting.push_back(&job);
    if (fitting.empty())
        return Error(ErrorCode::not_found,
                     "no job has a ledger in " + printable(folder) +
                         "; name the job by its id in Slurm, or give its --ledger=PATH, "
                         "--ledger=etcd:HOST:PORT or --rdzv-endpoint=HOST:PORT");
    if (!slurm.job.empty()) {
        const auto of_job = those_of(fitting, slurm.job);
        const auto of_step = those_of(of_job, slurm.job + "." + slurm.step);
        if (!of_job.empty()) fitting = !slurm.step.empty() && !of_step.empty() ? of_step : of_job;
    }
    if (wanted == Wanted::may_run && !std::ranges::all_of(fitting, job_has_ended))
        std::erase_if(fitting, job_has_ended);
    if (fitting.size() > 1) return several(fitting);
    return *fitting.front();
}

}  // namespace ddprun::launcher
