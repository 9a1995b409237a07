// Connects the agent's state machine with the world. It has the one mailbox of the agent: events go
// in, the machine decides, and the runner carries out the effects in order. Events come from the
// link, the keeper, the workers' pipes, the store and from signals.
//
// Thread: the loop's. Owner: main. Everything that the config refers to must outlive it. The end is
// reported once, through on_exit. At this point no worker lives any more, and the consoles have all
// output.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "agent/machine/machine.h"
#include "agent/node/link.h"
#include "agent/node/node_store.h"
#include "agent/node/orphan_search.h"
#include "agent/node/products.h"
#include "agent/node/program_lock.h"
#include "agent/node/start_phases.h"
#include "agent/workers/worker_set.h"
#include "agent/workers/worker_timers.h"
#include "base/system/resident_memory.h"
#include "base/system/unique_fd.h"
#include "keeper/killing/left_sockets.h"

namespace ddprun::agent {

class Runner {
  public:
    // What main has found out before the loop starts.
    struct Config {
        MachineConfig machine;
        WorkerPlan workers;
        Products products;
        warm::Mode warm = warm::Mode::off;
        RecorderOptions recorders;
        std::string log_dir;         // empty: workers' files go to a temporary folder
        std::string temporary_name;  // of that folder; empty: any
        Duration lease;              // goes to the keeper with each deadline
        bool serve_timers = false;   // offer torchrun's file timers
        std::string timer_file;      // path of their FIFO; empty: beside the workers' files
        NodeStore::Config store;
        // Asks Slurm when the job's time ends. If there is an answer, it comes from the loop. Empty
        // outside Slurm.
        std::function<void(std::function<void(std::optional<Time>)>)> find_job_end;
        // The listening socket of our service, which the keeper also holds; -1: none. Nobody else
        // can take the port until the keeper has finished.
        UniqueFd gone_listener;
        bool uses_grpc = false;  // before an operator comes
    };
    using MakeLink = std::function<std::unique_ptr<Link>(Link::OnEvent)>;
    // `leader` is the connection to the leader on another node that has told this ending; it ends
    // when this leader leaves. Otherwise it is empty.
    using OnExit = std::function<void(const rendezvous::Ending&, UniqueFd leader)>;

    Runner(boost::asio::io_context& loop, Config config, Keeper& keeper,
           rendezvous::Service& service, const Consoles& consoles, Log log,
           const MakeLink& make_link, OnExit on_exit);
    ~Runner();

    void start();
    // A signal that ddprun has received.
    void signal(int number) { post(SignalCame{number}); }
    // The folder with the workers' files of all generations; empty if there is none that stays.
    std::string log_folder() const { return folder_.base(); }

  private:
    void post(Event event);
    void drain();
    void arm();
    void perform(Effect& effect);
    void send(rendezvous::ToLeader& message);
    rendezvous::Usage usage();
    void open_store(const rendezvous::NodePlace& place);
    void spawn(const rendezvous::NodePlace& place, std::uint64_t job);
    void spawn_nothing(const rendezvous::NodePlace& place);
    // Before workers get a signal.
    void see_sockets() {
        if (keeper_.alive()) left_sockets_.see(static_cast<pid_t>(keeper_.pid()));
    }
    void ask_job_end();
    Event seen(Event event);
    void sweep(const Sweep& effect);
    Patience patience() const;
    void on_survivor(const Survivor& survivor);
    void look_for_stuck(const LookForStuck& look);
    void heed_terminal(std::int64_t pid, int wait_status);
    void heed_keyboard(const Keyboard& keyboard, bool ours, bool typing);
    void keeper_died(const std::string& how);
    void prepare_gone();
    void bequeath_folder();
    AttemptFolder::Heirs heirs();
    std::function<void(const std::string&)> says(Note::Level level);
    std::unique_ptr<WorkerStarts> make_starts();
    std::unique_ptr<Diagnosis> make_diagnosis();
    void warn(const std::string& sentence) { log_(Note{Note::Level::warn, sentence}); }

    // Reset first at the end. Callbacks that others hold look at it.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    boost::asio::io_context& loop_;
    Config config_;
    Keeper& keeper_;
    rendezvous::Service& service_;
    Consoles consoles_;
    Log log_;
    OnExit on_exit_;
    Machine machine_;
    std::unique_ptr<WorkerStarts> starts_;
    std::unique_ptr<Diagnosis> diagnosis_;
    AttemptFolder folder_;
    OrphanSearch orphans_;
    LeftSockets left_sockets_;
    StartPhases phases_;
    NodeStore store_;
    std::string keyboard_line_, next_keyboard_line_;  // the last one; the one of the last look
    int keyboard_looks_ = 0;                          // at which it was the same
    std::string no_store_;  // why this generation has none; empty: it has one, or needs none
    std::unique_ptr<Link> link_;
    std::unique_ptr<WorkerSet> workers_;
    WorkerTimers timers_;
    ProgramLock program_lock_;
    boost::asio::steady_timer timer_;
    Time armed_ = kNever;
    std::deque<Event> mailbox_;
    MemoryGauge memory_;
    Generation sweeping_ = kNoGeneration;  // the newest
    bool draining_ = false, finished_ = false;
    bool told_end_ = false;  // the leader has told the end
};

}  // namespace ddprun::agent
