// The one mailbox of the agent: events in, machine, effects out. Makes what happens on the link, in
// the keeper, in the workers' pipes, in the store and by signals into events, and performs what the
// machine asks for, in order.
//
// Thread: the loop's. Owner: main. What the config refers to must outlive it. The end is told once,
// through on_exit; by then no worker lives, and what the workers printed is with the consoles.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>

#include "agent/host/master_port.h"
#include "agent/keeper/left_sockets.h"
#include "agent/machine/machine.h"
#include "agent/node/link.h"
#include "agent/workers/timer_fifo.h"
#include "agent/workers/worker_set.h"
#include "base/system/unique_fd.h"
#include "rendezvous/store/store_thread.h"

namespace ddprun::agent {

class Runner {
  public:
    struct Config {
        MachineConfig machine;
        WorkerPlan workers;
        std::string log_dir;        // empty: workers' files lie in a temporary folder
        Duration lease;             // for the keeper
        bool serve_timers = false;  // torchrun's file timers
        std::string timer_file;     // where their FIFO is to be; empty: among the workers' files
        bool one_node = false;      // the workers' store listens on loopback only
        std::vector<store::Network> store_allow;  // besides the members
        store::Limits store_limits;
        // Asks Slurm when the job's time is over; the answer, if any, comes on the loop. Empty: no
        // Slurm.
        std::function<void(std::function<void(std::optional<Time>)>)> find_job_end;
        UniqueFd gone_listener;  // our service's listening socket for the keeper to hold; -1: none
    };
    using MakeLink = std::function<std::unique_ptr<Link>(Link::OnEvent)>;
    // `leader` ends when the leader elsewhere leaves that has told this ending; else none.
    using OnExit = std::function<void(const rendezvous::Ending&, UniqueFd leader)>;

    Runner(boost::asio::io_context& loop, Config config, Keeper& keeper,
           rendezvous::Service& service, const Consoles& consoles, Log log,
           const MakeLink& make_link, OnExit on_exit);
    ~Runner();

    void start();
    void signal(int number) { post(SignalCame{number}); }
    // Where the workers' files lie, of all generations; empty: none that stays has been made.
    std::string log_folder() const;

  private:
    void post(Event event);
    void drain();
    void arm();
    void perform(Effect& effect);
    void send(rendezvous::ToLeader& message);
    void open_store(const rendezvous::NodePlace& place);
    void spawn(const rendezvous::NodePlace& place);
    void serve_timers(const std::string& folder);
    void remove_left_sockets();
    void timer_expired(const TimerRequest& request);
    void ask_job_end();
    void examine(const ExamineWorkers& asked);
    void sweep(Generation generation);
    void look_for_stuck(const LookForStuck& look);
    void heed_terminal(int wait_status);
    void keeper_died();
    void prepare_gone();
    void bequeath_folder();
    void warn(const std::string& sentence);

    boost::asio::io_context& loop_;
    Config config_;
    Keeper& keeper_;
    rendezvous::Service& service_;
    Consoles consoles_;
    Log log_;
    OnExit on_exit_;
    Machine machine_;
    AttemptFolder folder_;
    LeftSockets left_sockets_;
    MasterPort master_port_;
    std::unique_ptr<Link> link_;
    std::unique_ptr<WorkerSet> workers_;
    std::unique_ptr<store::StoreThread> store_;
    std::unique_ptr<TimerFifo> timers_;
    boost::asio::steady_timer timer_;
    Time armed_ = kNever;
    std::deque<Event> mailbox_;
    bool draining_ = false, finished_ = false;
    bool told_end_ = false;  // by the leader
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
