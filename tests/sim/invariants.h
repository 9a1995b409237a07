// What must hold in each moment of a virtual job, and at its end. The checks look at the true state
// of the world, which no node sees, and report what they find through World::violation.
// rendezvous/INVARIANTS.md has the table of all invariants.
//
// Owned by the World, which calls the functions below at each event.
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

    // A node starts workers. Allowed only for a generation in the ledger of which the node is a
    // member, with exactly the place that the ledger has for it, once, and with a deadline if there
    // are other nodes.
    void spawned(const Host& host, const Process& process, const rendezvous::NodePlace& place,
                 bool guarded, Time deadline);
    // An entry is in the ledger. It must be well formed and follow the ones before: generations
    // count up by one, ranks are contiguous, sizes are within the limits, and restarts are within
    // the budget and never more than there were failures. An end must have its reason.
    void repeats(const rendezvous::LedgerEntry& entry);
    void appended(const rendezvous::LedgerEntry& entry);
    // A leader proposes an entry. It must take into account what its nodes know: progress, a
    // failure, a stop. Otherwise the decision about a restart would depend on who leads.
    void proposed(const Process& leader, const rendezvous::LedgerEntry& entry);
    // A service has done something. What it promises an operator it keeps for as long as it leads.
    void stepped(const Process& service, const rendezvous::Event& event,
                 const rendezvous::Effects& effects);
    // A node asks its workers for a snapshot: for each request once.
    void asked_for_snapshot(const Process& process, const agent::SnapshotHint& hint);
    // A leader sends a node into a generation: never one that it has promised to take out.
    void assigned(const Process& leader, const std::string& host);
    // A worker's failure or end took its peers with it. What fails in this generation from now on
    // is a consequence.
    void broke(Generation generation) { broken_.insert(generation); }
    // From now on no rank of this generation need make progress. Only such a generation may be
    // judged as hung.
    void stood_still(Generation generation) { still_.insert(generation); }
    // The clock of a host has stood still and goes on now. What it was granted before, and what it
    // grants as a leader, may last for one more lease (PROTOCOL.md, section 6).
    void clock_goes_on();
    // `natural`: by its own failure or success, and not because ddprun ended it.
    void worker_ended(const Worker& worker, const rendezvous::WorkerOutcome& outcome, bool natural);
    // A ddprun exits. It must leave no workers behind, and its verdict must be the recorded one.
    void exited(const Process& process, const rendezvous::Ending& ending);

    // A leader asks Slurm to requeue the job. Allowed once in an allocation, after a recorded end
    // that says so, and while no worker lives anywhere.
    void requeued(const Process& process);
    int requeues() const { return static_cast<int>(requeued_.size()); }

    // After each step: no node runs workers of two generations, no two generations train at once,
    // and no worker runs beyond its deadline.
    void after_step();

    // All living processes have exited in bounded time. Nodes that were connected when the job
    // ended have the same verdict.
    void at_end();

  private:
    void check_times(const rendezvous::LedgerEntry& entry);
    void check_time_spent(const rendezvous::LedgerEntry& entry);
    void check_blame(const rendezvous::LedgerEntry& entry);
    void check_suspension(const rendezvous::LedgerEntry& entry);
    void check_limits(const rendezvous::LedgerEntry& entry);
    void check_promise(const Process& leader, const rendezvous::LedgerEntry& entry);
    void check_places(const rendezvous::Assignment& assignment, const rendezvous::Limits& limits);
    void check_members(const rendezvous::Assignment& assignment, const rendezvous::Limits& limits);
    void check_ending(const rendezvous::Ending& ending);
    void check_counted(const rendezvous::Assignment& assignment, int before);
    void check_host(const Host& host);
    bool just_resumed(const Host& host) const;
    bool undisturbed(const Process& process, Time from, Time until) const;

    World& world_;
    std::map<Generation, std::vector<rendezvous::WorkerOutcome>> failures_;  // natural ones
    std::map<Generation, std::set<int>> successes_;                          // ranks that exited 0
    std::set<Generation> still_;
    std::set<Generation> broken_;
    std::set<Generation> failed_;  // a worker failed by itself, before the generation was broken
    std::set<std::pair<Generation, int>> spawned_;  // with the index of the host
    // Hosts that a process has promised to take out, since it leads.
    std::map<Incarnation, std::set<std::string>> drained_;
    // Limits that a process has promised since it leads, and has not recorded yet.
    struct Promise {
        std::string name;  // of the process, as entries have it
        rendezvous::OperatorLimits limits;
        std::size_t place = 0;  // among all that were given
    };
    std::map<Incarnation, Promise> promised_;
    std::vector<rendezvous::OperatorLimits> given_;  // by all processes, in their order
    // Of each node and generation.
    std::map<std::pair<Incarnation, Generation>, std::int64_t> newest_request_;
    std::set<int> requeued_;         // restart counts of the allocations that were
    Time lenient_until_ = kLongAgo;  // see clock_goes_on()
    Time ended_at_ = kNever;         // when the end was recorded
    // The newest generation: its members, and when it was recorded.
    std::vector<rendezvous::Member> members_;
    Time generation_at_ = kLongAgo;
};

}  // namespace ddprun::sim
