// Looks for a job in the folder, on this host, and in Slurm (meant_job.h).
#include "operator/ddpctl/meant_job.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/loop/child_program.h"
#include "base/printable.h"
#include "operator/control/private_socket.h"
#include "operator/ddpctl/whose_job.h"

namespace ddprun::launcher {
namespace {

namespace fs = std::filesystem;
using rendezvous::PrivateJob;

constexpr const char* kLedgers = "/.ddprun";
constexpr Duration kSlurmKnows = std::chrono::seconds{5};

// The word that names the job, if this command takes one and it is given.
std::string name_in(const CtlCall& call) {
    if (!call.command->words.starts_with("[NAME]")) return {};
    const std::size_t others = call.command->words == "[NAME]" ? 0 : 1;
    return call.words.size() > others ? call.words.front() : std::string();
}

std::string own_folder() {
    std::error_code unknown;
    return fs::current_path(unknown).string();
}

void answers_at(FoundJob& found, const PrivateJob& job) {
    found.socket = job.path;
    found.process = job.process;
}

FoundJob only_socket_of(const PrivateJob& job) {
    FoundJob found{job.name, job.path};
    answers_at(found, job);
    found.only_socket = true;
    if (job.user != ::geteuid()) found.owner = user_name(job.user);
    return found;
}

// With its ledger, if there is one in the folder in which it was started.
FoundJob job_of(const PrivateJob& job, const CtlCall& call) {
    FoundJob found = only_socket_of(job);
    if (job.folder.empty() || !found.owner.empty()) return found;
    const auto survey = survey_folder(job.folder + kLedgers, call);
    if (!survey) return found;
    for (const FoundJob& other : survey->jobs)
        if (rendezvous::socket_name(other.name) == job.name && other.newest &&
            !other.newest->end()) {
            found = other;
            answers_at(found, job);
        }
    return found;
}

Error several_run(const std::vector<PrivateJob>& jobs, const CtlCall& call) {
    std::string names;
    for (const PrivateJob& job : jobs)
        names += (names.empty() ? "" : ", ") + std::to_string(job.process) + " (" +
                 printable(job.name) + ")";
    return usage_error(std::to_string(jobs.size()) +
                       " jobs of yours run on this host; choose one, such as ddpctl " +
                       std::string(call.command->name) + " " +
                       std::to_string(jobs.front().process) + ": " + names);
}

bool goes_by(const PrivateJob& job, const std::string& word) {
    return std::to_string(job.process) == word || rendezvous::socket_name(word) == job.name ||
           is_called(FoundJob{job.name, {}}, word);
}

std::vector<PrivateJob> only_called(std::vector<PrivateJob> jobs, const std::string& word) {
    std::erase_if(jobs, [&word](const PrivateJob& job) { return !goes_by(job, word); });
    return jobs;
}

// Slurm's answer about the job with this id, "1001" or "1001_3".
struct KnownToSlurm {
    std::string number, folder, user;
};
KnownToSlurm ask_slurm(const std::string& id) {
    KnownToSlurm known;
    if (id.empty() || id.find_first_not_of("0123456789_+") != std::string::npos) return known;
    const auto shown = run_program_now({"scontrol", "show", "job", id}, kSlurmKnows);
    if (!shown || shown->code != 0) return known;
    const auto value = [&shown](const std::string& key) {
        const std::size_t at = shown->output.find(key);
        if (at == std::string::npos) return std::string();
        const std::size_t begin = at + key.size();
        const char* ends = key == "WorkDir=" ? "\n" : " (\n";  // a folder may have spaces
        return shown->output.substr(begin, shown->output.find_first_of(ends, begin) - begin);
    };
    return {value("JobId="), value("WorkDir="), value("UserId=")};
}

Result<FoundJob> choose_called(Survey survey, const std::string& word, Wanted wanted) {
    std::erase_if(survey.jobs, [&word](const FoundJob& job) { return !is_called(job, word); });
    if (survey.jobs.empty()) return Error(ErrorCode::not_found, word + " is not there");
    return choose_job(survey.jobs, {}, survey.folder, wanted);
}

Result<FoundJob> find_in_slurm(const CtlCall& call, const std::string& name,
                               const std::vector<PrivateJob>& running, Wanted wanted) {
    const KnownToSlurm known = ask_slurm(name);
    if (known.number.empty())
        return Error(ErrorCode::not_found,
                     name +
                         ": no job of this name runs on this host, has a ledger here, or is "
                         "known to Slurm; see ddpctl jobs");
    if (known.user != user_name(::geteuid()))
        return Error(ErrorCode::refused, whose_sentence("job " + name, known.user, call));
    const auto here = only_called(running, known.number);
    if (here.size() == 1) return job_of(here.front(), call);
    const std::string folder = known.folder + kLedgers;
    auto survey = survey_folder(folder, call);
    if (survey)
        if (auto job = choose_called(std::move(*survey), known.number, wanted)) return job;
    return Error(ErrorCode::not_found,
                 "job " + name + " has no ledger in " + folder +
                     ": it has not begun, or has another --ledger, which ddpctl needs, too");
}

Result<FoundJob> find_named(const CtlCall& call, const std::string& name, Wanted wanted) {
    const bool is_root = ::geteuid() == 0;
    const std::vector<PrivateJob> all = rendezvous::private_jobs(is_root);
    std::vector<PrivateJob> running = only_called(all, name);
    const auto is_ours = [](const PrivateJob& job) { return job.user == ::geteuid(); };
    if (std::ranges::any_of(running, is_ours))
        std::erase_if(running, [&](const PrivateJob& job) { return !is_ours(job); });
    if (running.size() == 1) return job_of(running.front(), call);
    if (running.size() > 1) return several_run(running, call);
    auto survey = survey_folder("", call);
    if (!survey) return survey.error();
    auto job = choose_called(std::move(*survey), name, wanted);
    if (job || job.error().code() != ErrorCode::not_found) return job;
    return find_in_slurm(call, name, all, wanted);
}

// Without a name: the one of this folder, else the only one that runs on this host.
Result<FoundJob> find_unnamed(const CtlCall& call, Wanted wanted) {
    const auto survey = survey_folder("", call);
    if (!survey) return survey.error();
    auto job = choose_job(survey->jobs, own_slurm_names(), survey->folder, wanted);
    if (!job && job.error().code() != ErrorCode::not_found) return job;
    const std::vector<PrivateJob> running = rendezvous::private_jobs();
    std::vector<PrivateJob> here = running;
    std::erase_if(here,
                  [folder = own_folder()](const PrivateJob& one) { return one.folder != folder; });
    for (const PrivateJob& one : here)
        if (job && rendezvous::socket_name(job->name) == one.name) answers_at(*job, one);
    const bool has_ended = !job || (job->newest && job->newest->end());
    if (!has_ended || wanted == Wanted::any) return job;
    if (here.size() == 1) return job_of(here.front(), call);
    if (here.size() > 1) return several_run(here, call);
    if (job) return job;
    if (running.size() == 1) return job_of(running.front(), call);
    if (running.empty()) return job;
    return several_run(running, call);
}

// ---- all of them

struct InQueue {
    std::string pending;            // ids, one in each line
    std::set<std::string> folders;  // in which they were submitted
};
InQueue ask_own_queue() {
    InQueue queue;
    const auto listed = run_program_now({"squeue", "-h", "--me", "-o", "%A|%T|%Z"}, kSlurmKnows);
    std::string_view rest = listed && listed->code == 0 ? std::string_view(listed->output) : "";
    while (!rest.empty()) {
        const std::string line(rest.substr(0, rest.find('\n')));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        const std::size_t id = line.find('|'), state = line.find('|', id + 1);
        if (id == std::string::npos || state == std::string::npos) continue;
        const std::string name = line.substr(id + 1, state - id - 1);
        if (name == "PENDING") queue.pending += line.substr(0, id) + "\n";
        queue.folders.insert(line.substr(state + 1));
    }
    return queue;
}

void add_folder(Survey& to, const std::string& folder, const CtlCall& call) {
    const auto survey = survey_folder(folder + kLedgers, call);
    if (!survey) return;
    for (const FoundJob& job : survey->jobs) to.jobs.push_back(job);
}

}  // namespace

SlurmNames own_slurm_names() {
    const auto value = [](const char* name) {
        const char* text = std::getenv(name);
        return std::string(text ? text : "");
    };
    return {value("SLURM_JOB_ID"), value("SLURM_STEP_ID")};
}

Result<FoundJob> find_meant(const CtlCall& call, Wanted wanted) {
    const std::string name = name_in(call);
    if (call.command->words == "[NAME]" && call.words.size() > 1)
        return usage_error(call.words.back() + ": ddpctl " + std::string(call.command->name) +
                           " takes one job");
    if (!call.has("ledger"))
        return name.empty() ? find_unnamed(call, wanted) : find_named(call, name, wanted);
    auto survey = survey_ledgers(call);
    if (!survey) return survey.error();
    if (!name.empty()) return choose_called(std::move(*survey), name, wanted);
    return choose_job(survey->jobs, own_slurm_names(), survey->folder, wanted);
}

Result<Survey> survey_all(const CtlCall& call) {
    auto survey = survey_ledgers(call);
    if (!survey || call.has("ledger")) return survey;
    const std::vector<PrivateJob> running = rendezvous::private_jobs(call.has("all"));
    const InQueue queue = ask_own_queue();
    std::set<std::string> folders = queue.folders;
    for (const PrivateJob& job : running)
        if (job.user == ::geteuid() && !job.folder.empty()) folders.insert(job.folder);
    const std::string here = own_folder();
    folders.erase(here);
    for (const std::string& folder : folders) add_folder(*survey, folder, call);
    for (const PrivateJob& job : running) {
        const std::string ledgers = job.folder == here ? survey->folder : job.folder + kLedgers;
        const auto found = std::ranges::find_if(survey->jobs, [&](const FoundJob& other) {
            const bool over = other.newest && other.newest->end();
            return !over && job.user == ::geteuid() &&
                   rendezvous::socket_name(other.name) == job.name &&
                   fs::path(other.path).parent_path() == ledgers;
        });
        if (found == survey->jobs.end())
            survey->jobs.push_back(only_socket_of(job));
        else
            answers_at(*found, job);
    }
    for (FoundJob& job : survey->jobs) job.queued = is_among(job, queue.pending);
    const auto order = [](const FoundJob& job) {
        const JobState state = state_of(job);
        return state == JobState::running ? 0 : state == JobState::queued ? 1 : 2;
    };
    std::ranges::stable_sort(survey->jobs, {}, order);
    return survey;
}

}  // namespace ddprun::launcher
