// The workers of one node in one generation, as processes: pipes, variables, requests to the
// keeper, signals, and what is known of each when it ends. It decides nothing; what happens becomes
// agent events.
//
// Thread: the loop's. Owner: the runner, one for each generation. What is handed in by reference
// must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/death/death_witness.h"
#include "agent/death/error_file.h"
#include "agent/keeper/keeper.h"
#include "agent/machine/events.h"
#include "agent/output/attempt_folder.h"
#include "agent/output/generation_output.h"
#include "agent/workers/worker_plan.h"

namespace ddprun::agent {

class WorkerSet {
  public:
    using OnEvent = std::function<void(Event)>;
    using Warn = std::function<void(const Error&)>;
    // Told the folder of local rank 0; empty if there is none.
    using Ready = std::function<void(const std::string& folder)>;

    WorkerSet(boost::asio::io_context& loop, const WorkerPlan& plan, Keeper& keeper,
              const Consoles& consoles, AttemptFolder& folder, OnEvent on_event, Warn warn);
    ~WorkerSet();

    // Requests all workers at once, when their folders are there (`ready` is called then). Each is
    // answered by WorkerStarted or WorkerNotStarted, unless it is to be stopped before.
    void start(const rendezvous::NodePlace& place, Ready ready);
    void forgo();             // none that has not been requested yet is to start any more
    void signal(int number);  // to the process group of each that lives
    // The same, once the file that tells the workers of it is there, or takes too long.
    void stop(const StopHint& hint);
    // To one process of a worker's session or group; `why` is what is said of it if it dies. False:
    // it is of none.
    bool signal_one(std::int64_t pid, int number, const std::string& why);
    // Of those of these that live: their process and what they printed last.
    std::vector<rendezvous::WorkerOutcome> living(const std::vector<int>& indices) const;
    // The keeper has reaped a process. False: it is none of ours. The event comes when its error
    // file has been read.
    bool exited(std::int64_t pid, int wait_status, Time at);
    // Calls back, at once or later, when of all that have exited the event has come.
    void when_told(std::function<void()> done);

    std::map<std::int64_t, int> ranks_by_pid() const;

  private:
    struct Worker;
    void start_all(AttemptFiles files, const Ready& ready);
    void start_one(Worker& worker, const std::vector<std::string>& environment);
    std::vector<std::string> environment_of(const Worker& worker) const;
    std::string stop_file() const;  // empty: there is no folder for it
    void fail(Worker& worker, const std::string& sentence, int exit_code);
    void await_progress(Worker& worker);
    bool take_progress(Worker& worker);
    DeathFacts facts_of(const Worker& worker, const ExitStatus& status, Time at);
    void read_account(const Worker& worker, DeathFacts facts);
    void tell(int index, DeathFacts facts);
    static void send_signal(const Worker& worker, int number);

    boost::asio::io_context& loop_;
    const WorkerPlan& plan_;
    Keeper& keeper_;
    const Consoles& consoles_;
    AttemptFolder& folder_;
    OnEvent on_event_;
    Warn warn_;
    DeathWitness witness_;
    int untold_ = 0;  // exited, and its error file is still being read
    std::vector<std::function<void()>> when_told_;
    rendezvous::NodePlace node_place_;
    std::optional<GenerationOutput> output_;  // once the folders are there
    int signalled_ = 0;
    bool forgone_ = false;
    std::optional<Time> signalled_at_;  // the first time
    std::vector<std::unique_ptr<Worker>> workers_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
