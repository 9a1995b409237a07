// The keeper of one ddprun and the workers below it, as the world model knows them: starts on
// request, kills at the deadline, kills a ddprun that stays frozen after it, and says Gone when
// ddprun has died and nothing is left. A kill takes 0..0.04 lease. Owned by its Process; the
// workers themselves lie on the Host.
#pragma once

#include "tests/sim/host.h"

namespace ddprun::sim {

class World;

class Keeper {
  public:
    Keeper(World& world, Host& host, Process& process)
        : world_(world), host_(host), process_(process) {}

    void set_deadline(Time local);
    Time deadline() const { return deadline_; }  // on the host's clock
    void spawn(const rendezvous::NodePlace& place);
    void signal(int number);
    void sweep(Generation generation);
    void dies();           // alone: ddprun kills what it left, and a new one stands a little later
    void dies_with_all();  // ddprun is about to be killed too, workers are: nobody says Gone
    bool holds_port() const { return orphaned_; }
    void process_died();  // kill all that is left, then Gone on this connection
    // A worker ends by itself, now. `natural`: counts as its own failure or success, not as ours.
    void ends(std::int64_t pid, int exit_code, int signal, bool natural);

    int living() const;

  private:
    Worker* find(std::int64_t pid);
    void start(Generation generation, std::int64_t pid);
    void live(std::int64_t pid);
    void kill(Worker& worker);
    void kill_all();
    void check_deadline(int number);
    void check_swept();

    World& world_;
    Host& host_;
    Process& process_;
    Time deadline_ = kNever;
    bool guarded_ = false;  // a deadline, or none, was ever set
    int deadline_number_ = 0;
    std::vector<Generation> sweeping_;
    int gone_on_ = -1;  // connection on which Gone is due
    bool orphaned_ = false;
    bool alive_ = true;
};

}  // namespace ddprun::sim
