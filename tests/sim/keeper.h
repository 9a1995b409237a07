// The keeper of one ddprun and the workers below it, as the world models them. It starts workers on
// request, kills them at the deadline, kills a ddprun that stays frozen after it, and says Gone
// when ddprun has died and nothing is left. The real one is keeper/; this model has the same
// promises and random delays: a kill takes 0 to 0.04 lease.
//
// Owned by its Process. The workers themselves lie on the Host, because they outlive the keeper's
// ddprun.
#pragma once

#include "tests/sim/host.h"

namespace ddprun::sim {

class World;

class Keeper {
  public:
    Keeper(World& world, Host& host, Process& process)
        : world_(world), host_(host), process_(process) {}

    // On the host's clock, as the agent's machine says it. kNever: there is none.
    void set_deadline(Time local);
    Time deadline() const { return deadline_; }  // on the host's clock
    void spawn(const rendezvous::NodePlace& place);
    // A signal to all workers of this ddprun. A worker may take up to 0.2 lease to end at it.
    void signal(int number);
    // Kills all that is left of this generation, and posts Swept when nothing is.
    void sweep(Generation generation);
    // Alone: ddprun kills what is left, and a new keeper comes a little later.
    void dies(agent::KeeperDied how = {});
    // It does nothing until ddprun has noticed and killed it, half a lease to a lease later.
    void freezes();
    // A keeper and a ddprun that both stand still, or are dead, above workers that run: against
    // that nothing on this node can help (agent/README.md). So the world does not combine them.
    void thaws();
    void dies_with_all();  // together with ddprun and workers: nobody says Gone
    // After the death of its ddprun the keeper still has the listening socket, until it has said
    // Gone. A caller is accepted and gets no answer.
    bool holds_port() const { return orphaned_; }
    void process_died();  // kills all that is left, then says Gone on this connection
    // A worker ends now. `natural`: this counts as its own failure or success, and not as an end by
    // ddprun.
    void ends(std::int64_t pid, int exit_code, int signal, bool natural);

    // Workers that are not reaped yet, dying ones included.
    int living() const;

  private:
    Worker* find(std::int64_t pid);
    void start(Generation generation, std::int64_t pid);
    void live(std::int64_t pid);
    void kill(Worker& worker);
    void kill_all();
    void check_deadline(int number);
    void check_frozen();
    void check_swept();

    World& world_;
    Host& host_;
    Process& process_;
    Time deadline_ = kNever;
    bool guarded_ = false;              // the agent has set a deadline, or none, at least once
    int deadline_number_ = 0;           // of the newest; a timer of an older one does nothing
    std::vector<Generation> sweeping_;  // Swept is owed for these
    int gone_on_ = -1;                  // the connection on which Gone is owed
    bool orphaned_ = false;             // its ddprun is dead
    bool alive_ = true;                 // false after dies_with_all()
    bool frozen_ = false;
    bool replaced_ = true;  // false after dies(), until a new one runs
};

}  // namespace ddprun::sim
