// The workers of one node in one generation, as processes: pipes, environment, requests to the
// keeper, signals, and what is known about each of them when it ends. It makes no decisions: what
// happens becomes an event for the agent's state machine.
//
// Thread: the loop's. Owner: the runner, one object for each generation. Everything passed by
// reference must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/death/death_witness.h"
#include "agent/death/error_file.h"
#include "agent/machine/events.h"
#include "agent/output/attempt_folder.h"
#include "agent/output/generation_output.h"
#include "agent/parts/watched_workers.h"
#include "agent/workers/passed_signals.h"
#include "agent/workers/pmi.h"
#include "agent/workers/request_files.h"
#include "agent/workers/worker_plan.h"
#include "base/loop/turn_budget.h"
#include "keeper/keeper.h"

namespace ddprun::agent {

class WorkerSet {
  public:
    using OnEvent = std::function<void(Event)>;
    using Warn = std::function<void(const Error&)>;
    // Called with the folder of local rank 0 when the folders are made; the text is empty if there
    // is none.
    using Ready = std::function<void(const std::string& folder)>;

    // Starts one worker: Keeper::spawn(), or what stands before it.
    using Spawn = std::function<void(const WorkerStart& start, Keeper::SpawnCallback done)>;

    // What products add; null: the program was built without them.
    struct Products {
        MakePmi pmi = nullptr;
        // Takes the functions that a process has written before its end out of its newest lines,
        // and returns them (WorkerOutcome::stack). Of the others as many are left as a report has.
        std::vector<std::string> (*last_words)(std::vector<std::string>& lines) = nullptr;
    };

    WorkerSet(boost::asio::io_context& loop, const WorkerPlan& plan, const Products& products,
              Spawn spawn, const Consoles& consoles, AttemptFolder& folder, OnEvent on_event,
              Warn warn);
    ~WorkerSet();

    // Requests all workers at once when their folders are made, after a call of `ready`. Each
    // request is answered by WorkerStarted or WorkerNotStarted, unless kill() comes first.
    void start(const rendezvous::NodePlace& place, Ready ready);
    // Sends SIGKILL to the living workers, but to nothing that they started: that is the keeper's
    // work. Workers that have not been requested yet will not be started.
    void kill();
    // Stops the workers: sends a signal to each that lives, or will live (WorkerProcess::signal).
    // Processes of theirs in `abort` get SIGABRT, and it after a moment only: Python's faulthandler
    // writes their functions then, which are told with their end (WorkerOutcome::stack).
    void signal(int number, const std::vector<std::int64_t>& abort = {});
    // Passes a signal on to each worker that does not die of it, to the others when they do not any
    // more. It stops nothing: what a worker dies of later is its own.
    void pass_on(int number);
    // As signal(), but first writes the file that tells the workers why. If this takes too long,
    // the signal is sent without the file.
    void stop(const StopHint& hint);
    // The workers find the file that asks them for a snapshot, and go on.
    void ask_snapshot(const SnapshotHint& hint);
    // A line for the events of each worker that lives.
    void tell_all(const std::string& line);
    // Sends a signal to one process in a worker's session or process group. `why` is reported if
    // the worker dies of it. Returns false if the process belongs to no worker.
    bool signal_one(std::int64_t pid, int number, const std::string& why);
    // For those of these workers that live: process, ranks and last lines. `indices` count the
    // workers of this ddprun.
    std::vector<rendezvous::WorkerOutcome> living(const std::vector<int>& indices) const;
    // The keeper has reaped a process. Returns false if it is not a worker of this set. The event
    // follows when its error file has been read.
    bool exited(std::int64_t pid, int wait_status, Time at);
    // The terminal shows what is typed for this worker, and the \n at its end.
    void is_typed_for(std::int64_t pid);
    // Passes on what they have printed until now.
    void read_output();
    // Whether all workers have ended with 0, and none was sent a signal.
    bool have_succeeded() const;
    // Nothing of the generation is left: passes on the last output.
    void finish();
    // Calls back when the events of all workers that have exited are out; at once if they are.
    void when_told(std::function<void()> done);

    Generation generation() const { return node_place_.generation; }
    // One worker, as an operator asks for it.
    struct Seen {
        int index = 0;         // counts the workers of this ddprun
        std::int64_t pid = 0;  // 0: it does not run yet
        bool has_ended = false;
        std::shared_ptr<RecentOutput> text;  // what it prints; null: it has not been requested yet
    };
    std::optional<Seen> find(int rank) const;  // nothing: this node does not run it

    WatchedWorkers watched() const;
    // The folder of their files, if these stay after the end of the job; else empty.
    std::string kept_folder() const;
    // The ranks of the living workers by pid.
    std::map<std::int64_t, int> ranks_by_pid() const;

  private:
    struct Worker;
    void start_all(AttemptFiles files, const Ready& ready);
    void start_one(Worker& worker, const std::vector<std::string>& environment);
    std::vector<std::string> environment_of(const Worker& worker) const;
    void fail(Worker& worker, const std::string& sentence, int exit_code);
    void serve_pmi();
    DeathFacts facts_of(const Worker& worker, const ExitStatus& status, Time at);
    void read_account(const Worker& worker, DeathFacts facts);
    void tell(int index, DeathFacts facts);
    bool pass_on(int index, int number) const;
    bool abort(Worker& worker, const std::vector<std::int64_t>& processes);
    void signal_aborted(int number);
    void watch_window();

    boost::asio::io_context& loop_;
    const WorkerPlan& plan_;
    const Products products_;
    Spawn spawn_;
    const Consoles& consoles_;
    AttemptFolder& folder_;
    OnEvent on_event_;
    Warn warn_;
    std::optional<DeathWitness> witness_;  // from before the start of the first worker
    int untold_ = 0;  // workers that have exited and whose error file is being read
    std::vector<std::function<void()>> when_told_;
    rendezvous::NodePlace node_place_;
    // The share of each turn of the loop that these workers' pipes get together.
    std::shared_ptr<TurnBudget> turns_ = std::make_shared<TurnBudget>(loop_);
    std::optional<GenerationOutput> output_;  // set when the folders are made
    std::optional<RequestFiles> requests_;    // set with it
    std::unique_ptr<Pmi> pmi_;                // with --pmi; set with it
    std::optional<SnapshotHint> early_;       // asked for before
    int signalled_ = 0;                       // last signal that was sent to all; 0: none
    bool failed_ = false;                     // one has, or was not started
    bool forgone_ = false;                    // kill() was called
    std::optional<Time> signalled_at_;        // time of the first one
    std::vector<std::unique_ptr<Worker>> workers_;
    PassedSignals passed_;
    // Where workers have terminals: until the next look at the size of ddprun's.
    std::optional<boost::asio::steady_timer> window_look_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
