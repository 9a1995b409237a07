// Feeds events to the agent's state machine and carries out its effects.
#include "agent/node/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>

#include "agent/death/stuck_processes.h"
#include "agent/node/operator_answers.h"
#include "agent/node/warm_job.h"
#include "agent/output/attempt_names.h"
#include "agent/output/output.h"
#include "agent/workers/keyboard_line.h"
#include "base/exit_code.h"
#include "base/overload.h"
#include "base/system/boot_clock.h"
#include "base/system/own_proc.h"
#include "keeper/killing/orphans.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::agent {
namespace {

// Share of the lease in which the keeper must answer.
constexpr Share kKeeperAnswers{500};

}  // namespace

Runner::Runner(boost::asio::io_context& loop, Config config, Keeper& keeper,
               rendezvous::Service& service, const Consoles& consoles, Log log,
               const MakeLink& make_link, OnExit on_exit)
    : loop_(loop),
      config_(std::move(config)),
      keeper_(keeper),
      service_(service),
      consoles_(consoles),
      log_(std::move(log)),
      on_exit_(std::move(on_exit)),
      machine_(config_.machine, boot_now()),
      starts_(make_starts()),
      diagnosis_(make_diagnosis()),
      folder_(consoles_.files, config_.log_dir, config_.machine.run_id, heirs()),
      orphans_(loop, says(Note::Level::warn)),
      store_(
          loop_, config_.store,
          [this](Generation generation, int processes) {
              if (phases_.met(processes, boot_now())) starts_->progressed();
              post(StoreContact{generation, processes});
          },
          log_),
      // The link's events pass through here for two facts that the machine does not need: whether
      // the leader has told the end, and that the keeper needs the new connection.
      link_(make_link([this](Event event) {
          const bool up = std::holds_alternative<LinkUp>(event);
          if (const auto* message = std::get_if<MessageCame>(&event))
              told_end_ |= std::holds_alternative<rendezvous::Finished>(message->message);
          post(std::move(event));
          if (up) prepare_gone();
      })),
      timers_(
          loop, consoles_.files, config_.timer_file,
          [this](std::int64_t pid, int signal, const std::string& why) {
              return workers_ && workers_->signal_one(pid, signal, why);
          },
          says(Note::Level::warn)),
      program_lock_(loop),
      timer_(loop) {}

std::unique_ptr<WorkerStarts> Runner::make_starts() {
    const MakeWorkerStarts make = config_.products.starts;
    if (!make) return std::make_unique<WorkerStarts>(keeper_);
    return make(loop_, keeper_, consoles_.files,
                warm_job(config_.warm, config_.recorders.opens_server, config_.workers,
                         config_.machine.offer.slots),
                {.info = says(Note::Level::info), .debug = says(Note::Level::debug)});
}

std::unique_ptr<Diagnosis> Runner::make_diagnosis() {
    Diagnosis::Calls calls{
        .workers = [this] { return workers_.get(); },
        .post = [this](Event event) { post(seen(std::move(event))); },
        .warn = says(Note::Level::warn),
        // Who has asked for the end of a job that hangs believes it to be watched.
        .unseen = says(config_.machine.limits.hang_timeout > Duration{} ? Note::Level::warn
                                                                        : Note::Level::debug)};
    const MakeDiagnosis make = config_.products.diagnosis;
    if (!make) return std::make_unique<Diagnosis>(std::move(calls));
    return make(loop_, std::move(calls), recorder_options(config_.recorders, config_.workers),
                config_.workers.environment);
}

Runner::~Runner() {
    alive_.reset();
    consoles_.files.post([left = left_sockets_] { left.remove(); });
    service_.on_standby(nullptr);
    service_.serve_workers(std::nullopt);
    link_->close();
}

// Started is the first event. The keeper must be attached before, because the machine may act on it
// at once.
void Runner::start() {
    keeper_.attach(loop_, share(config_.lease, kKeeperAnswers),
                   {.exited =
                        [this](std::int64_t pid, int status, Time at) {
                            if (starts_->exited(pid)) return;
                            heed_terminal(pid, status);
                            if (workers_) workers_->exited(pid, status, at);
                        },
                    .signalled = [this](int number) { signal(number); },
                    .survivor = [this](const Survivor& survivor) { on_survivor(survivor); },
                    .waits =
                        [this](const LeftRunning& left) {
                            log_(Note{Note::Level::info, waits_sentence(left, patience())});
                        },
                    .expired = [this] { post(Tick{}); },
                    .frozen = [this] { post(KeeperFrozen{}); },
                    .stopping =
                        [this] {
                            if (workers_) workers_->read_output();
                        },
                    .keyboard = [this](const Keyboard& keyboard, bool ours,
                                       bool typing) { heed_keyboard(keyboard, ours, typing); },
                    .died = [this](const std::string& how) { keeper_died(how); }});
    // Whenever the service opens or loses its standby link, the keeper needs the new descriptor.
    service_.on_standby([this] { prepare_gone(); });
    prepare_gone();
    auto answers = operator_answers([this] { return workers_.get(); }, *diagnosis_);
    answers.usage = [this] { return usage(); };
    service_.serve_workers(std::move(answers));
    post(Started{});
}

// A worker that holds the terminal gets the terminal's signals, and ddprun does not. If it dies of
// Ctrl-C, the user has stopped the job; a shell sees it the same way.
void Runner::heed_terminal(std::int64_t pid, int wait_status) {
    if (!config_.workers.foreground || !WIFSIGNALED(wait_status)) return;
    if (config_.workers.by_turns && !keeper_.had_keyboard(pid)) return;
    const int number = WTERMSIG(wait_status);
    if (number == SIGINT || number == SIGQUIT) post(SignalCame{number});
}

// A line for each change that lasts, also where labels show whose prompt it is: others may wait.
void Runner::heed_keyboard(const Keyboard& keyboard, bool ours, bool typing) {
    if (!workers_) return;
    if (typing) workers_->is_typed_for(keyboard.holder());
    const std::string line = keyboard_line(keyboard, ours, workers_->ranks_by_pid());
    keyboard_looks_ = line == next_keyboard_line_ ? keyboard_looks_ + 1 : 0;
    next_keyboard_line_ = line;
    constexpr int kLasting = 4;
    if (line.empty() || line == keyboard_line_ || keyboard_looks_ < kLasting) return;
    keyboard_line_ = line;
    log_(Note{Note::Level::info, line});
}

// An effect may cause a new event at once. Such an event waits in the mailbox until the current one
// is finished, so that step() is never entered twice.
void Runner::post(Event event) {
    mailbox_.push_back(std::move(event));
    if (!draining_) drain();
}

// After the last event the timer is set, because each step may change the next deadline.
void Runner::drain() {
    draining_ = true;
    while (!mailbox_.empty() && !finished_) {
        const Event event = std::move(mailbox_.front());
        mailbox_.pop_front();
        Effects effects = machine_.step(boot_now(), event);
        for (Effect& effect : effects) perform(effect);
    }
    draining_ = false;
    if (!finished_) arm();
}

// The machine has one timer: the moment at which it wants a Tick. Setting it again for the same
// moment is avoided, because this runs after every event.
void Runner::arm() {
    const Time next = machine_.next_deadline();
    if (next == armed_) return;
    armed_ = next;
    timer_.cancel();
    // The machine wants no Tick before the next event.
    if (next == kNever) return;
    timer_.expires_after(std::max(next - boot_now(), Duration{0}));
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || !alive.lock()) return;
            armed_ = kNever;
            post(Tick{});
        });
}

// One line for each kind of effect. The compiler reports a kind that is missing.
void Runner::perform(Effect& effect) {
    std::visit(
        Overload{
            [&](const Connect& e) { link_->connect(e); }, [&](SendMessage& e) { send(e.message); },
            [&](const Lead& e) { service_.lead(e.self); },
            [&](const LeaderHeard& e) { service_.heard(e.leader); },
            [&](const SetDeadline& e) { keeper_.set_deadline(e.deadline, config_.lease); },
            [&](const OpenStore& e) { open_store(e.place); },
            [&](const CloseStore&) { store_.close(); },
            [&](const Spawn& e) { spawn(e.place, e.job); },
            [&](const SignalWorkers& e) {
                if (!workers_) return;
                if (!e.stops) return workers_->pass_on(e.signal);
                starts_->cancel();
                see_sockets();
                e.hint ? workers_->stop(*e.hint) : workers_->signal(e.signal, e.abort);
            },
            [&](const AskSnapshot& e) {
                if (workers_) workers_->ask_snapshot(e.hint);
            },
            [&](const AskJobEnd&) { ask_job_end(); },
            [&](const TellWorkers& e) {
                const std::string line = to_line(e.notice, e.generation, day_now());
                if (workers_) workers_->tell_all(line);
                store_.tell(line);
            },
            [&](const ExamineWorkers& e) { diagnosis_->examine(e); },
            [&](const Sweep& e) { sweep(e); }, [&](const HurrySweep& e) { keeper_.hurry(e.grace); },
            [&](const LookForStuck& e) { look_for_stuck(e); }, [&](const Note& e) { log_(e); },
            [&](const Exit& e) {
                // The machine has decided the end, so no further event reaches it.
                finished_ = true;
                timer_.cancel();
                program_lock_.close();
                diagnosis_->close();
                starts_->close();
                UniqueFd leader;
                // Keeps the connection to a leader that has told us the end: main can wait for its
                // close.
                if (told_end_) leader = link_->part();
                link_->close();
                store_.end();
                on_exit_(e.ending, std::move(leader));
            }},
        effect);
}

rendezvous::Usage Runner::usage() {
    return {memory_.read(boot_now()), *consoles_.printed, store_.operations(), store_.waiters()};
}

// The machine does not know about ports, nor what this process uses. Each Join offers the port that
// the next generation would use.
void Runner::send(rendezvous::ToLeader& message) {
    if (auto* beat = std::get_if<rendezvous::Beat>(&message)) beat->usage = usage();
    if (auto* join = std::get_if<rendezvous::Join>(&message)) {
        join->beat.usage = usage();
        const auto port = store_.offer(join->offer);
        if (port) join->offer.store_port = *port;
        if (!port) warn(port.error().sentence());
    }
    link_->send(message);
}

void Runner::open_store(const rendezvous::NodePlace& place) {
    const Result<> opened = store_.open(place);
    no_store_ = opened ? "" : "the workers' store cannot be started: " + opened.error().sentence();
}

// A new WorkerSet for each generation. The old one is destroyed here; its processes are gone by
// now.
void Runner::spawn(const rendezvous::NodePlace& place, std::uint64_t job) {
    std::string& run = config_.workers.run;
    if (run.empty()) run = config_.workers.run_id + '.' + std::to_string(job);
    if (place.has_store() && !no_store_.empty()) return spawn_nothing(place);
    phases_.begin(place.world_size, boot_now());
    workers_ = std::make_unique<WorkerSet>(
        loop_, config_.workers, config_.products.workers,
        [this](const WorkerStart& start, Keeper::SpawnCallback done) {
            starts_->spawn(start, std::move(done));
        },
        consoles_, folder_, [this](Event event) { post(seen(std::move(event))); },
        [this](const Error& error) { warn(error.sentence()); });
    workers_->start(place, [this, cold = place.cold](const std::string& folder) {
        starts_->begin(folder_.temporary(), cold);
        diagnosis_->begin(folder_.temporary(), workers_->kept_folder(),
                          config_.workers.environment);
        if (config_.serve_timers)
            if (const std::string path = timers_.serve(folder); !path.empty())
                config_.workers.environment[kTimerVariable] = path;
        bequeath_folder();
    });
    program_lock_.later(config_.uses_grpc);
}

// All ranks would wait for the store until their own time limits.
void Runner::spawn_nothing(const rendezvous::NodePlace& place) {
    workers_.reset();
    for (int i = 0; i < place.slots; ++i)
        post(WorkerNotStarted{place.generation, i, no_store_, kCannotRunCode});
}

void Runner::ask_job_end() {
    if (!config_.find_job_end) return;
    config_.find_job_end([this, alive = std::weak_ptr(alive_)](std::optional<Time> end) {
        if (alive.lock()) post(JobEndKnown{end});
    });
}

// What the machine need not know is taken from an event of the workers on its way, and what only
// the warm starts know is added.
Event Runner::seen(Event event) {
    if (std::holds_alternative<WorkerStarted>(event)) phases_.started(boot_now());
    if (auto* exited = std::get_if<WorkerExited>(&event)) {
        if (auto why = starts_->difference(exited->outcome.error))
            return WarmStartDiffers{exited->generation, exited->outcome.local_rank, std::move(*why),
                                    exited->at};
        exited->outcome.warm = starts_->is_warm();
    }
    if (auto* examined = std::get_if<WorkersExamined>(&event))
        for (rendezvous::WorkerOutcome& outcome : examined->outcomes)
            outcome.warm = starts_->is_warm();
    if (!std::holds_alternative<WorkerProgress>(event)) return event;
    starts_->progressed();
    if (phases_.under_way())
        log_(Note{Note::Level::debug, phases_.progressed(boot_now(), store_.last_request())});
    return event;
}

// The workers are killed from here, too: a frozen keeper would let them run on, perhaps beyond the
// deadline. Then `noticed`: the sweep may follow a deadline, and the keeper must not take ddprun
// for frozen.
// Swept is reported last, so that the machine hears of every death first.
void Runner::sweep(const Sweep& effect) {
    const Generation generation = effect.generation;
    sweeping_ = generation;
    see_sockets();
    if (workers_) workers_->kill();
    starts_->cancel();
    keeper_.noticed();
    const bool succeeded = workers_ && workers_->have_succeeded();
    starts_->ended(!succeeded, effect.met);
    keeper_.sweep(succeeded ? std::optional(patience()) : std::nullopt,
                  [this, generation, alive = std::weak_ptr(alive_)](const LeftRunning& left) {
                      // A keeper that has died answers its open sweeps as well. KeeperDied then
                      // tells the machine, not Swept.
                      if (!alive.lock() || !keeper_.alive()) return;
                      if (left.count > 0)
                          log_(Note{Note::Level::info, left_behind_sentence(left, patience())});
                      const auto swept = [this, generation] { post(Swept{generation}); };
                      if (!workers_) return swept();
                      workers_->finish();
                      workers_->when_told(swept);
                  });
}

Patience Runner::patience() const {
    const Grace& grace = config_.machine.grace;
    return {grace.helpers.value_or(Duration{}), grace.final_stop, !grace.helpers};
}

void Runner::on_survivor(const Survivor& survivor) {
    if (!survivor.blocks) return warn(survivor_sentence(survivor));
    post(CannotKill{sweeping_, survivor_sentence(survivor)});
}

// Without a result the sweep is about to end, and there is nothing to report.
void Runner::look_for_stuck(const LookForStuck& look) {
    if (!workers_) return;
    // What a dead keeper has left is below ddprun, and so is a keeper that does not die.
    const pid_t above = keeper_.alive() ? static_cast<pid_t>(keeper_.pid()) : ::getpid();
    std::string sentence = stuck_sentence(find_stuck(above, workers_->ranks_by_pid()), look.since);
    if (sentence.empty() && !proc_is_ours())
        sentence = "a worker is still alive " + to_text(look.since) + " after SIGKILL";
    if (!sentence.empty()) post(CannotKill{look.generation, sentence});
}

// The new keeper knows nothing, so it is told again what to do at the end.
// A worker whose folder is still being made must not start on the next keeper: its generation ends
// here, and the next one may begin.
void Runner::keeper_died(const std::string& how) {
    if (workers_) {
        workers_->kill();
        workers_->finish();
    }
    starts_->keeper_died();
    post(KeeperDied{how});
    if (const auto again = keeper_.restart(); !again)
        return post(NoKeeper{again.error().sentence()});
    prepare_gone();
    bequeath_folder();
    post(KeeperBack{});
}

// The keeper writes Gone on a duplicate of our link; if this node leads, on the link to the node
// that leads next. Without a link it only releases the port.
void Runner::prepare_gone() {
    const int link = link_->native_handle();
    keeper_.prepare_gone(link < 0 ? std::string() : link_->gone_frame(config_.machine.node), link,
                         config_.gone_listener.get());
}

// If ddprun ends normally, it removes the temporary folder itself. After SIGKILL the keeper has to
// do it.
void Runner::bequeath_folder() {
    if (const std::string folder = folder_.temporary(); !folder.empty())
        keeper_.remove_when_gone(folder, folder_.temporary_lock());
}

AttemptFolder::Heirs Runner::heirs() {
    return {.name = config_.temporary_name,
            .origin = [](const std::string& folder) { return to_json(origin_here(folder)); },
            .furnish = {starts_->furnish(), diagnosis_->furnish(!config_.log_dir.empty())},
            .found =
                [this, alive = std::weak_ptr(alive_)](OthersFolders others) {
                    if (alive.lock()) orphans_.begin(std::move(others));
                },
            .made =
                [this, alive = std::weak_ptr(alive_)] {
                    if (alive.lock()) bequeath_folder();
                }};
}

std::function<void(const std::string&)> Runner::says(Note::Level level) {
    return [this, level](const std::string& line) { log_(Note{level, line}); };
}

}  // namespace ddprun::agent
