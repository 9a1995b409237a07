// What must hold in each moment of a virtual job, and at its end. Looks at the true state of the
// world, which no node sees; says what it finds through World::violation. Owned by the World.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/host.h"

namespace ddprun::sim {

class World;

class Invariants {
  public:
    explicit Invariants(World& world) : world_(world) {}

    // ---- at what happens
    // Workers start only for a generation in the ledger, of which the node is a member and sees the
    // same world, once, and with a deadline before them where there are other nodes.
    void spawned(const Host& host, const Process& process, const rendezvous::NodePlace& place,
                 bool guarded, Time deadline);
    // An entry is well formed and follows the ones before: one assignment a generation, ranks
    // contiguous, within limits, restarts within budget and never more than there were failures; an
    // end has its reason.
    void appended(const rendezvous::LedgerEntry& entry);
    // What a leader proposes takes into account what its nodes know: progress, a failure, a stop. So
    // the decision about a restart does not depend on who leads.
    void proposed(const Process& leader, const rendezvous::LedgerEntry& entry);
    // A worker's failure or end took its peers with it: what fails from now on is a consequence.
    void broke(Generation generation) { broken_.insert(generation); }
    // From here on nobody of this generation need make progress: only such a one may be taken for
    // hung.
    void stood_still(Generation generation) { still_.insert(generation); }
    void worker_ended(const Worker& worker, const rendezvous::WorkerOutcome& outcome, bool natural);
    // Nobody leaves workers behind, and nobody claims another end than the one recorded.
    void exited(const Process& process, const rendezvous::Ending& ending);

    // Once, after a recorded end that says so, while no worker lives anywhere.
    void requeued(const Process& process);
    int requeues() const { return requeues_; }

    // ---- after each step
    // No node runs workers of two generations; no two generations train at once; none runs beyond
    // its deadline.
    void after_step();

    // ---- at the end
    // All that live have exited in bounded time; who was connected when the job ended has the same
    // verdict.
    void at_end();

  private:
    void check_times(const rendezvous::LedgerEntry& entry);
    void check_blame(const rendezvous::LedgerEntry& entry);
    void check_members(const rendezvous::Assignment& assignment);
    void check_ending(const rendezvous::Ending& ending);
    void check_counted(const rendezvous::Assignment& assignment, int before);
    void check_host(const Host& host);
    bool just_resumed(const Host& host) const;
    bool undisturbed(const Process& process, Time from, Time until) const;

    World& world_;
    std::map<Generation, std::vector<rendezvous::WorkerOutcome>> failures_;  // of their own
    std::map<Generation, std::set<int>> successes_;                          // ranks that exited 0
    std::set<Generation> still_;
    std::set<Generation> broken_;
    std::set<Generation> failed_;  // a worker of it has failed by itself, before it was broken
    std::set<std::pair<Generation, int>> spawned_;  // on that host
    int requeues_ = 0;
    Time ended_at_ = kNever;  // when the end was recorded
};

}  // namespace ddprun::sim
