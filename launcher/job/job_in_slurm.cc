// The job's requests to Slurm: time limit, node states, requeue, cancel.
#include "launcher/job/job_in_slurm.h"

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "base/system/boot_clock.h"
#include "launcher/in_slurm/headless.h"
#include "launcher/in_slurm/srun_here.h"
#include "slurm/requeue_begin.h"
#include "slurm/time_left.h"

namespace ddprun::launcher {
namespace {

constexpr Duration kEndless = Duration::max();

Duration time_until(std::chrono::seconds limit) {
    return limit == slurm::kNoLimit ? kEndless : Duration(limit);
}

}  // namespace

JobInSlurm::JobInSlurm(boost::asio::io_context& loop, const JobInput& input, JobVoice& voice)
    : loop_(loop),
      input_(input),
      voice_(voice),
      calls_(loop, input.slurm_job, input.environment),
      began_(boot_now()),
      first_look_(loop) {}

// Where a variable has told the end of the job, only the step's limit is news. A step without one
// gets none later.
void JobInSlurm::find_job_end(std::function<void(std::optional<Time>)> done) {
    if (job_end_is_known_) return;
    calls_.time_left(input_.plan.slurm_step_id,
                     [this, done = std::move(done)](const SlurmCalls::TimeLeft& left) {
                         job_end_is_known_ = input_.plan.job_end && left.step == slurm::kNoLimit;
                         if (!job_end_is_known_) done(nearer_end(left));
                     });
}

std::optional<Time> JobInSlurm::nearer_end(const SlurmCalls::TimeLeft& left) {
    const auto& told = input_.plan.job_end;
    const Duration job = told ? std::chrono::seconds(*told) - day_now() : time_until(left.job);
    const Duration step = time_until(left.step);
    if (step < job && !std::exchange(step_limit_is_told_, true))
        voice_.say(Note::Level::info, "the step's time limit (srun --time) is " + to_text(step) +
                                          " away and comes before that of the job");
    const Duration first = std::min(job, step);
    return first == kEndless ? std::nullopt : std::optional(boot_now() + first);
}

void JobInSlurm::serve(rendezvous::Service& service) {
    service.on_requeue([this](const rendezvous::Requeue& wanted, std::function<void()> done) {
        boost::asio::co_spawn(loop_, requeue(wanted.progressed),
                              [done = std::move(done)](std::exception_ptr) { done(); });
    });
    // A node that Slurm has drained or lost need not be waited for.
    service.on_ask_node_states(
        [this](const auto& hosts, auto said) { calls_.out_of_service(hosts, std::move(said)); });
}

// Only the leader is asked to requeue, once. Its result is remembered: a job that is in the queue
// again must not be cancelled afterwards. Slurm may have started it again by itself; a requeue
// would end that allocation. Without Slurm's word which job this is, nothing is requeued: to
// scontrol, the id of an array's element may be the whole array. So Slurm is asked twice.
boost::asio::awaitable<void> JobInSlurm::requeue(bool progressed) {
    auto job = co_await calls_.show_job();
    if (!job) job = co_await calls_.show_job();
    if (!job) {
        voice_.say(Note::Level::warn, "job " + input_.slurm_job.spelled() +
                                          " is not requeued: " + job.error().sentence());
        co_return;
    }
    const std::string name = "job " + job->id.spelled();
    requeued_ = job->restarts.value_or(0) > input_.plan.slurm_restart_count;
    if (requeued_) {
        voice_.say(Note::Level::info, name + " has been requeued by Slurm already");
        co_return;
    }
    const auto requeued = co_await calls_.requeue(*job);
    requeued_ = requeued.has_value();
    if (!requeued) {
        voice_.say(Note::Level::warn,
                   name + " is not requeued: scontrol requeue: " + requeued.error().sentence());
        co_return;
    }
    // At once: Slurm ends this process while it is asked for more.
    voice_.say(Note::Level::info, name + " is requeued");
    if (const std::string when = co_await begin_soon(*job, progressed); !when.empty())
        voice_.say(Note::Level::info, name + " " + when);
}

// Lets the requeued job start earlier than after the site's delay (slurm/requeue_begin.h). Returns
// what is to be said of it, after the job's name. Slurm looks at the new time when the job has left
// its nodes, so the answer is waited for before this process leaves.
boost::asio::awaitable<std::string> JobInSlurm::begin_soon(const slurm::ShownJob& job,
                                                           bool progressed) {
    using std::chrono::seconds;
    if (!input_.plan.requeue_begin) co_return "";
    const seconds wanted = *input_.plan.requeue_begin;
    const auto delay = co_await calls_.requeue_delay();
    if (!delay) co_return "starts after Slurm's own delay: " + delay.error().sentence();
    const std::string own = std::to_string(delay->count()) + " s";
    if (wanted >= *delay) co_return "can start again in " + own;
    const slurm::Life life{std::chrono::duration_cast<seconds>(boot_now() - began_), progressed};
    std::string why = slurm::brakes(life, *delay);
    if (why.empty()) {
        const auto shown = co_await calls_.show_job();
        why = shown ? slurm::is_kept(*shown, std::chrono::duration_cast<seconds>(day_now()))
                    : shown.error().sentence();
    }
    if (why.empty()) {
        const auto moved = co_await calls_.begin_in(job, wanted);
        if (!moved) why = "scontrol update: " + moved.error().sentence();
    }
    if (!why.empty())
        co_return "can start again when Slurm's own delay of " + own + " is over: " + why;
    co_return "can start again in " + std::to_string(wanted.count()) +
        " s (--requeue-begin), not in " + own;
}

void JobInSlurm::watch_for_loss(const rendezvous::Service& service) {
    const Plan& plan = input_.plan;
    // The job needs all its nodes anyway, so a lost one ends it in any case.
    if (plan.limits.min_nodes >= static_cast<int>(plan.limits.order.size())) return;
    // One lease later, so that the look through /proc does not delay the start.
    first_look_.expires_after(plan.limits.times.lease);
    first_look_.async_wait([this, &service](const boost::system::error_code& error) {
        // Only the leader's host is searched for srun. Unknown (no value) is not a reason to warn.
        if (error || !service.leads() || srun_survives_loss(input_.slurm_job.number()) != false)
            return;
        voice_.say(Note::Level::warn,
                   "srun was called without --no-kill: Slurm ends the job when it notices a lost "
                   "node, although --nnodes allows fewer nodes; sbatch --no-kill and srun "
                   "--no-kill prevent that");
    });
}

void JobInSlurm::end_if_headless() {
    const Plan& plan = input_.plan;
    if (!plan.end_headless || plan.check || requeued_) return;
    // The loop has ended by now, so it is run here until the answer has come.
    bool done = false;
    boost::asio::co_spawn(
        loop_,
        launcher::end_if_headless(
            {.job = input_.slurm_job,
             .step_id = plan.slurm_step_id,
             .restart_count = plan.slurm_restart_count,
             .srun_address = plan.srun_address,
             .port = static_cast<std::uint16_t>(plan.endpoint.ports.front())},
            calls_,
            [this](Note::Level level, const std::string& said) { voice_.say(level, said); }),
        [&done](std::exception_ptr) { done = true; });
    while (!done) {
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }
}

}  // namespace ddprun::launcher
