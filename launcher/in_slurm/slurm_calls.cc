// Starts Slurm's commands as child programs and reads what they print.
#include "launcher/in_slurm/slurm_calls.h"

#include <boost/asio/co_spawn.hpp>

#include "base/loop/child_program.h"
#include "slurm/hostlist.h"
#include "slurm/node_states.h"
#include "slurm/requeue_begin.h"
#include "slurm/time_left.h"

namespace ddprun::launcher {

namespace asio = boost::asio;

namespace {

// Slurm's controller may be slow to answer, or down. Nothing that a job needs depends on it.
constexpr auto kAnswerLimit = std::chrono::seconds{10};

// When Slurm requeues the job, it signals all processes of the step, perhaps before the shell of a
// new command ignores that. A command that may be repeated is called again.
constexpr int kKilled = -1;
constexpr int kTries = 5;

// The variables that Slurm's commands need, as far as they are set.
constexpr const char* kKept[] = {"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF"};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The commands write their errors to stderr, which ask() has sent to stdout. The first line is the
// reason.
asio::awaitable<Result<std::string>> answer_of(std::vector<std::string> words, std::string name,
                                               int tries) {
    Result<ProgramResult> result =
        co_await run_program(words, {}, kAnswerLimit, StandardError::dropped, name);
    while (result && result->code == kKilled && --tries > 0)
        result = co_await run_program(words, {}, kAnswerLimit, StandardError::dropped, name);
    if (!result) co_return Error(ErrorCode::unavailable, result.error().sentence());
    if (result->code == 0) co_return result->output;
    const std::string said = first_line(result->output);
    co_return Error(ErrorCode::unavailable,
                    said.empty() ? "exit code " + std::to_string(result->code) : said);
}

asio::awaitable<Result<>> done_by(asio::awaitable<Result<std::string>> asked) {
    const auto answer = co_await std::move(asked);
    co_return answer ? Result<>() : answer.error();
}

asio::awaitable<Result<slurm::ShownJob>> shown_by(asio::awaitable<Result<std::string>> asked,
                                                  slurm::JobId job) {
    const auto answer = co_await std::move(asked);
    if (!answer) co_return Error(ErrorCode::unavailable, "scontrol: " + answer.error().sentence());
    if (auto found = slurm::find_job(*answer, job)) co_return std::move(*found);
    co_return Error(ErrorCode::unavailable,
                    "scontrol does not show job " + job.spelled() + " by itself");
}

}  // namespace

// LC_ALL=C: the output is parsed, so it must not be translated. SLURM_TIME_FORMAT=%s: times in
// seconds since 1970, without a time zone.
SlurmCalls::SlurmCalls(boost::asio::io_context& loop, slurm::JobId job,
                       const std::map<std::string, std::string>& environment)
    : loop_(loop),
      job_(std::move(job)),
      environment_{"env", "-i", "LC_ALL=C", "SLURM_TIME_FORMAT=%s"} {
    for (const char* name : kKept)
        if (const auto found = environment.find(name); found != environment.end())
            environment_.push_back(found->first + "=" + found->second);
}

// `scontrol requeue` makes Slurm signal all processes of the step, scontrol itself among them. The
// shell ignores these signals first, and exec keeps that, so that scontrol lives to report its
// result. The argument is passed as $1 and never parsed by the shell.
asio::awaitable<Result<std::string>> SlurmCalls::ask(const std::string& command,
                                                     const std::string& argument, int tries) const {
    const std::string script =
        "trap '' TERM INT HUP QUIT USR1 USR2; exec " + command + " \"$1\" 2>&1";
    std::vector<std::string> words = environment_;
    words.insert(words.end(), {"sh", "-c", script, "sh", argument});
    return answer_of(std::move(words), command.substr(0, command.find(' ')), tries);
}

asio::awaitable<Result<slurm::ShownJob>> SlurmCalls::show_job() const {
    return shown_by(ask("scontrol show job", job_.spelled(), kTries), job_);
}

asio::awaitable<Result<>> SlurmCalls::requeue(const slurm::ShownJob& job) const {
    return done_by(ask("scontrol requeue", job.id.spelled()));
}

asio::awaitable<Result<>> SlurmCalls::begin_in(const slurm::ShownJob& job,
                                               std::chrono::seconds delay) const {
    return done_by(ask("scontrol update jobid=" + job.id.spelled(),
                       "starttime=now+" + std::to_string(delay.count()), kTries));
}

asio::awaitable<Result<std::chrono::seconds>> SlurmCalls::requeue_delay() const {
    const auto config = co_await ask("scontrol show", "config", kTries);
    if (!config) co_return Error(ErrorCode::unavailable, "scontrol: " + config.error().sentence());
    co_return slurm::requeue_delay(*config);
}

asio::awaitable<Result<>> SlurmCalls::cancel(const slurm::ShownJob& job) const {
    return done_by(ask("scancel", job.id.spelled()));
}

asio::awaitable<Result<std::string>> SlurmCalls::steps(const slurm::ShownJob& job) const {
    return ask("squeue -s -h -o %i -j", job.with_parts());
}

// The first answer says how Slurm spells the job, which the second one needs. A copy of the calls,
// because they may be gone after an answer.
asio::awaitable<std::optional<SlurmCalls::TimeLeft>> SlurmCalls::ask_time_left(SlurmCalls calls,
                                                                               std::string step) {
    const auto listed = co_await calls.ask("squeue -h -o '%A %i %L' -j", calls.job_.spelled());
    if (!listed) co_return std::nullopt;
    const auto job = slurm::find_listed(*listed, calls.job_);
    if (!job) co_return std::nullopt;
    const auto steps = co_await calls.ask("squeue -s -h -o '%i %l %M' -j", job->id.spelled());
    if (!steps) co_return std::nullopt;
    co_return TimeLeft{job->left, slurm::step_time_left(*steps, job->id, step)};
}

void SlurmCalls::time_left(const std::string& step, std::function<void(TimeLeft)> done) const {
    asio::co_spawn(loop_, ask_time_left(*this, step),
                   [done = std::move(done)](std::exception_ptr, std::optional<TimeLeft> left) {
                       if (left) done(*left);
                   });
}

void SlurmCalls::out_of_service(
    const std::vector<std::string>& hosts,
    std::function<void(std::map<std::string, std::string>)> said) const {
    // One call for all hosts: a folded list keeps the command line short for thousands of nodes.
    asio::co_spawn(loop_, ask("sinfo -h -N -o '%N %T' -n", slurm::fold_hostlist(hosts)),
                   [said = std::move(said)](std::exception_ptr, const Result<std::string>& answer) {
                       if (answer) said(slurm::nodes_out_of_service(*answer));
                   });
}

}  // namespace ddprun::launcher
