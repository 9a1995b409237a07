// Starts, signals and observes the workers of one generation.
#include "agent/workers/worker_set.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "agent/output/attempt_names.h"
#include "agent/output/output.h"
#include "agent/workers/event_socket.h"
#include "agent/workers/last_words.h"
#include "agent/workers/progress_pipe.h"
#include "agent/workers/worker_process.h"
#include "agent/workers/worker_request.h"
#include "base/system/boot_clock.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::agent {
namespace {

// How long a death may wait for the file system that holds the error file. After it, the death is
// reported without the file.
constexpr auto kErrorFileLimit = std::chrono::seconds{2};
constexpr auto kWindowLook = std::chrono::milliseconds{250};

// As a shell reports it: 127 for "not found", 126 for "cannot be executed".
int shell_code(const Error& error) { return error.code() == ErrorCode::not_found ? 127 : 126; }

}  // namespace

// One worker, from its request to its reported end.
struct WorkerSet::Worker : WorkerProcess {
    Worker(boost::asio::io_context& loop, std::shared_ptr<TurnBudget> turns,
           ProgressPipe::OnReport on_progress, ProgressPipe::OnFlood on_flood)
        : progress(loop, std::move(turns), std::move(on_progress), std::move(on_flood)) {}

    int index = 0, local_rank = 0, rank = 0;
    Time started{};
    std::string error_file;
    std::string sent_signal;  // why it got a signal outside a stop
    bool aborted = false;     // it was to write its functions before its end
    std::unique_ptr<WorkerOutput> output;
    ProgressPipe progress;
    EventSocket events;
};

WorkerSet::WorkerSet(boost::asio::io_context& loop, const WorkerPlan& plan,
                     const Products& products, Spawn spawn, const Consoles& consoles,
                     AttemptFolder& folder, OnEvent on_event, Warn warn)
    : loop_(loop),
      plan_(plan),
      products_(products),
      spawn_(std::move(spawn)),
      consoles_(consoles),
      folder_(folder),
      on_event_(std::move(on_event)),
      warn_(std::move(warn)),
      passed_(loop, [this](int index, int number) { return pass_on(index, number); }) {}

WorkerSet::~WorkerSet() = default;

// Folders first, on the file thread: the workers need their files from the first moment on. A stop
// may come in the meantime (forgone_).
void WorkerSet::start(const rendezvous::NodePlace& place, Ready ready) {
    node_place_ = place;
    WantedFiles wanted;
    for (int i = 0; i < node_place_.slots; ++i) {
        const auto on_progress = [this, i](const ProgressReport& report) {
            on_event_(WorkerProgress{node_place_.generation, report.step, report.snapshot, i,
                                     report.snapshot_took, report.not_finite, report.saving,
                                     report.first_step});
        };
        const auto on_flood = [this, rank = node_place_.rank_offset + i](std::size_t bytes) {
            warn_(Error(ErrorCode::malformed,
                        "rank " + std::to_string(rank) + " floods its progress descriptor: " +
                            std::to_string(bytes >> 10) + " KiB in " + to_text(FloodWatch::kLong) +
                            " without a pause; one line a step is enough"));
        };
        auto worker = std::make_unique<Worker>(loop_, turns_, on_progress, on_flood);
        worker->index = i;
        worker->local_rank = node_place_.host().first_local_rank + i;
        worker->rank = node_place_.rank_offset + i;
        workers_.push_back(std::move(worker));
        wanted.streams.push_back(plan_.output.to_files(i));
    }
    wanted.filtered = plan_.output.to_filtered();
    wanted.first_local_rank = node_place_.host().first_local_rank;
    folder_.make(
        node_place_.generation, std::move(wanted),
        [this, ready = std::move(ready), alive = std::weak_ptr(alive_)](AttemptFiles files) {
            if (!alive.lock() || forgone_) return;
            start_all(std::move(files), ready);
        });
    witness_.emplace();  // meanwhile
}

void WorkerSet::read_output() {
    for (const auto& worker : workers_)
        if (worker->output) worker->output->read_now();
}

void WorkerSet::is_typed_for(std::int64_t pid) {
    for (const auto& worker : workers_)
        if (worker->lives() && worker->pid == pid) worker->output->is_typed_for();
}

void WorkerSet::kill() {
    forgone_ = true;
    passed_.forget();
    for (const auto& worker : workers_) worker->kill();
}

// All requests go to the keeper at once. It answers each one when the program runs.
void WorkerSet::start_all(AttemptFiles files, const Ready& ready) {
    if (files.problem)
        warn_(Error(files.problem->code(),
                    files.problem->sentence() + "; output without a file goes to the console"));
    OutputPlan::RankNames names;
    for (const auto& worker : workers_) {
        names.local_ranks.push_back(worker->local_rank);
        names.ranks.push_back(worker->rank);
    }
    output_.emplace(loop_, plan_.output, consoles_, std::move(names), std::move(files), turns_,
                    warn_);
    for (auto& worker : workers_)
        if (const std::string folder = output_->folder(worker->index); !folder.empty())
            worker->error_file = folder + "/" + kErrorFile;
    requests_.emplace(consoles_.files, output_->folder(0));
    if (plan_.pmi && products_.pmi) serve_pmi();
    ready(output_->folder(0));
    for (auto& worker : workers_) start_one(*worker, environment_of(*worker));
    if (early_) ask_snapshot(*early_);
    if (std::ranges::any_of(workers_,
                            [](const auto& w) { return w->output && w->output->resize(); }))
        watch_window();
}

// The kernel sends SIGWINCH to the process group in front, which is not ddprun's while a worker has
// the keyboard. So ddprun looks. Workers get the signal, since the terminals are nobody's.
void WorkerSet::watch_window() {
    const auto size = [this] {
        const auto window =
            consoles_.out.window() ? consoles_.out.window() : consoles_.err.window();
        return window.value_or(WindowSize{});
    };
    if (!window_look_) window_look_.emplace(loop_);
    window_look_->expires_after(kWindowLook);
    window_look_->async_wait([this, size, old = size(), alive = std::weak_ptr(alive_)](auto error) {
        if (error || !alive.lock()) return;
        if (size() != old)
            for (const auto& worker : workers_)
                if (worker->output && worker->output->resize()) worker->resized();
        watch_window();
    });
}

// A worker that breaks the protocol is killed, with the reason in the report of its death.
void WorkerSet::serve_pmi() {
    pmi_ = products_.pmi(
        loop_, node_place_, turns_,
        [this](int index, const std::string& why) {
            Worker& worker = *workers_.at(static_cast<std::size_t>(index));
            worker.sent_signal = why;
            if (worker.lives()) signal_one(worker.pid, SIGKILL, why);
        },
        [this](const std::string& line) { warn_(Error(ErrorCode::unavailable, line)); });
}

std::vector<std::string> WorkerSet::environment_of(const Worker& worker) const {
    WorkerPlace place = place_of(plan_, node_place_, worker.index);
    place.error_file = worker.error_file;
    place.stop_file = requests_->stop_file();
    place.snapshot_file = requests_->snapshot_file();
    return worker_environment(plan_.environment, place);
}

// A worker that lacks descriptors fails alone; the machine then decides what follows.
void WorkerSet::start_one(Worker& worker, const std::vector<std::string>& environment) {
    worker.output = std::make_unique<WorkerOutput>(
        loop_, output_->route(worker.index, worker.local_rank, worker.rank, kStdout),
        output_->route(worker.index, worker.local_rank, worker.rank, kStderr));
    auto ends = worker.output->open();
    const UniqueFd progress_end = ends ? worker.progress.open() : UniqueFd{};
    const UniqueFd events_end = progress_end ? worker.events.open() : UniqueFd{};
    const UniqueFd pmi_end = pmi_ && events_end ? pmi_->open(worker.index) : UniqueFd{};
    if (!events_end || (pmi_ && !pmi_end))
        return fail(worker, "no descriptors left for its pipes (ulimit -n)", 126);

    WorkerStart start = worker_start(plan_, worker.index, worker.local_rank);
    start.environment = environment;
    start.stdout_fd = ends->out.get();
    start.stderr_fd = ends->err.get();
    start.extra = {{kProgressFd, progress_end.get()}, {kEventsFd, events_end.get()}};
    if (pmi_end) start.extra.push_back({kPmiFd, pmi_end.get()});
    worker.started = boot_now();
    spawn_(start, [this, &worker, alive = std::weak_ptr(alive_)](Result<Spawned> spawned) {
        if (!alive.lock()) return;
        // The keeper died with this request. Its death is reported separately, and it is not the
        // worker's fault.
        if (!spawned && spawned.error().code() == ErrorCode::closed) return;
        if (!spawned) return fail(worker, spawned.error().sentence(), shell_code(spawned.error()));
        worker.pid = spawned->pid;
        worker.pidfd = std::move(spawned->pidfd);
        // A stop began while the keeper was starting this worker.
        if (signalled_ != 0) worker.signal(signalled_);
        on_event_(WorkerStarted{node_place_.generation, worker.index, worker.pid});
    });
}

// The program never ran, so there is no process to wait for.
void WorkerSet::fail(Worker& worker, const std::string& sentence, int exit_code) {
    worker.ended = failed_ = true;
    worker.progress.stop();
    worker.events.close();
    on_event_(WorkerNotStarted{node_place_.generation, worker.index, sentence, exit_code});
}

void WorkerSet::signal(int number, const std::vector<std::int64_t>& abort_these) {
    signalled_ = number;
    passed_.forget();
    if (!signalled_at_) signalled_at_ = boot_now();
    // The folders are still being made, so no worker has been requested yet, and none will be.
    if (!output_ && !std::exchange(forgone_, true))
        for (auto& worker : workers_) fail(*worker, "stopped before it was started", 128 + number);
    for (const auto& worker : workers_)
        if (worker->lives() && !abort(*worker, abort_these)) {
            worker->signal(number);
            if (plan_.by_turns) worker->wake();
        }
    signal_aborted(number);
}

// False: nothing of it was asked for, or it cannot be had. Then it gets the usual signal.
bool WorkerSet::abort(Worker& worker, const std::vector<std::int64_t>& processes) {
    if (!products_.last_words || !has_fault_handler(plan_)) return false;
    for (const std::int64_t pid : processes) {
        if (!worker.has(pid) || !abort_without_core(pid)) continue;
        worker.aborted = true;
        worker.output->keep_lines(kLastWordsLines);
    }
    return worker.aborted;
}

// Not at once: a second signal would end the process before it has written anything.
void WorkerSet::signal_aborted(int number) {
    if (std::ranges::none_of(workers_, &Worker::aborted, &std::unique_ptr<Worker>::operator*))
        return;
    const auto timer = std::make_shared<boost::asio::steady_timer>(loop_, kLastWordsTake);
    timer->async_wait([this, timer, number, alive = std::weak_ptr(alive_)](auto) {
        if (!alive.lock()) return;
        for (const auto& worker : workers_)
            if (worker->aborted && !worker->ended) worker->signal(number);
    });
}

void WorkerSet::pass_on(int number) {
    std::vector<int> spared;
    for (const auto& worker : workers_) {
        if (pass_on(worker->index, number)) continue;
        spared.push_back(worker->rank);
        passed_.spared(worker->index, number);
    }
    if (!spared.empty()) warn_(Error(ErrorCode::closed, spared_sentence(number, spared)));
}

// A worker that is not running yet has no handler, either.
bool WorkerSet::pass_on(int index, int number) const {
    const Worker& worker = *workers_.at(static_cast<std::size_t>(index));
    if (worker.lives()) return static_cast<const WorkerProcess&>(worker).pass_on(number);
    return worker.ended;
}

// The file first and then the signal, so that a worker that gets the signal finds the file. If the
// file cannot be written in time, the signal is sent all the same.
void WorkerSet::stop(const StopHint& hint) {
    if (!requests_) return signal(hint.signal);
    requests_->stop(hint, [this, number = hint.signal, alive = std::weak_ptr(alive_)] {
        if (alive.lock()) signal(number);
    });
}

void WorkerSet::ask_snapshot(const SnapshotHint& hint) {
    if (!requests_) {
        early_ = hint;
        return;
    }
    requests_->ask_snapshot(hint, [this, alive = std::weak_ptr(alive_)](const Error& error) {
        if (alive.lock())
            warn_(Error(error.code(), "the workers of this node cannot be asked for a snapshot: " +
                                          error.sentence()));
    });
}

void WorkerSet::tell_all(const std::string& line) {
    for (const auto& worker : workers_) worker->events.push(line);
}

// The pid comes from a worker and may be any number. It gets the signal only if its session or
// process group is one of ours.
bool WorkerSet::signal_one(std::int64_t pid, int number, const std::string& why) {
    for (const auto& worker : workers_) {
        if (!worker->has(pid)) continue;
        worker->sent_signal = why;
        return ::kill(static_cast<pid_t>(pid), number) == 0;
    }
    return false;
}

std::string WorkerSet::kept_folder() const {
    return output_ && folder_.stays() ? output_->folder() : std::string();
}

// Part of the answer to Examine. The stacks are added later.
std::vector<rendezvous::WorkerOutcome> WorkerSet::living(const std::vector<int>& indices) const {
    std::vector<rendezvous::WorkerOutcome> found;
    for (const int index : indices) {
        const Worker& worker = *workers_.at(static_cast<std::size_t>(index));
        if (!worker.lives()) continue;
        rendezvous::WorkerOutcome outcome;
        outcome.rank = worker.rank;
        outcome.local_rank = worker.index;
        outcome.pid = worker.pid;
        outcome.tail = worker.output->tail();
        found.push_back(std::move(outcome));
    }
    return found;
}

// The worker may have written just before its end, so all that it can write to is emptied first.
// The error file is read only for a failure.
bool WorkerSet::exited(std::int64_t pid, int wait_status, Time at) {
    for (auto& worker : workers_) {
        if (worker->pid != pid || worker->ended) continue;
        worker->ended = true;
        worker->progress.finish();
        worker->events.close();
        worker->output->settle();
        ExitStatus status = from_wait_status(wait_status);
        if (pmi_) {
            Pmi::Exit exit = pmi_->exited(worker->index, status);
            status = exit.status;
            if (!exit.warning.empty()) warn_(Error(ErrorCode::closed, std::move(exit.warning)));
        }
        DeathFacts facts = facts_of(*worker, status, at);
        failed_ |= facts.status.failed();
        if (facts.status.failed()) {
            const auto alive = std::weak_ptr(alive_);
            on_event_(WorkerLost{node_place_.generation, worker->index, facts.status.code,
                                 facts.status.signal, at});
            if (!alive.lock()) return true;
        }
        if (facts.status.failed() && !worker->error_file.empty())
            read_account(*worker, std::move(facts));
        else
            tell(worker->index, std::move(facts));
        return true;
    }
    return false;
}

// Reads the error file on the file thread. untold_ counts the deaths that are not reported yet: the
// machine must hear of them before it hears that the sweep is done.
void WorkerSet::read_account(const Worker& worker, DeathFacts facts) {
    ++untold_;
    const std::string& path = worker.error_file;
    const auto told = [this, index = worker.index, path, facts = std::move(facts),
                       alive = std::weak_ptr(alive_)](const ErrorFile& found) mutable {
        if (!alive.lock()) return;
        facts.error = found.error;
        facts.error_problem = found.problem;
        facts.error_written = found.written;
        facts.error_code = found.exit_code;
        if (found.there && folder_.stays()) facts.error_file = path;
        tell(index, std::move(facts));
        // tell() may have led to the end of this object.
        if (!alive.lock() || --untold_ > 0) return;
        for (const auto& done : std::exchange(when_told_, {})) done();
    };
    read_error_file(consoles_.files, path, kErrorFileLimit, told);
}

// judge_death() writes its sentence with the host's local rank; events count the workers of this
// ddprun.
void WorkerSet::tell(int index, DeathFacts facts) {
    std::vector<std::string> stack;
    if (workers_.at(static_cast<std::size_t>(index))->aborted)
        stack = products_.last_words(facts.tail);
    Death death = judge_death(std::move(facts));
    death.outcome.stack = std::move(stack);
    death.outcome.local_rank = index;
    on_event_(WorkerExited{node_place_.generation, std::move(death.outcome), death.at});
}

bool WorkerSet::have_succeeded() const {
    return !failed_ && signalled_ == 0 &&
           std::ranges::all_of(workers_, [](const auto& worker) { return worker->ended; });
}

void WorkerSet::finish() {
    for (const auto& worker : workers_)
        if (worker->output) worker->output->finish();
}

void WorkerSet::when_told(std::function<void()> done) {
    if (untold_ == 0) return done();
    when_told_.push_back(std::move(done));
}

std::optional<WorkerSet::Seen> WorkerSet::find(int rank) const {
    for (const auto& worker : workers_)
        if (worker->rank == rank)
            return Seen{worker->index, worker->pid, worker->ended,
                        worker->output ? worker->output->recent() : nullptr};
    return std::nullopt;
}

WatchedWorkers WorkerSet::watched() const {
    WatchedWorkers all{node_place_.generation, {}, true};
    for (const auto& worker : workers_) {
        all.pids.push_back(worker->ended ? 0 : worker->pid);
        all.calls_at.push_back(worker->progress.calls_at(worker->pid));
        all.have_started &= worker->pid > 0 || worker->ended;
    }
    return all;
}

std::map<std::int64_t, int> WorkerSet::ranks_by_pid() const {
    std::map<std::int64_t, int> ranks;
    for (const auto& worker : workers_)
        if (worker->lives()) ranks[worker->pid] = worker->rank;
    return ranks;
}

// Evidence is collected only for failures, because it costs system calls.
DeathFacts WorkerSet::facts_of(const Worker& worker, const ExitStatus& status, Time at) {
    DeathFacts facts;
    facts.status = status;
    facts.rank = worker.rank;
    facts.local_rank = worker.local_rank;
    facts.pid = worker.pid;
    facts.node = rendezvous::host_of(plan_.node.name);
    facts.started = worker.started;
    facts.reaped = at;
    facts.slurm_job_id = plan_.slurm_job_id;
    facts.stopped = signalled_at_;
    facts.sent_signal = worker.sent_signal;
    if (!status.failed()) return facts;
    witness_->look(facts);
    facts.tail = worker.output->tail();
    return facts;
}

}  // namespace ddprun::agent
