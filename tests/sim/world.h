// A whole job in virtual time and in one thread: on each host an agent machine and a
// rendezvous machine with a keeper and workers, between them a network, below them one ledger.
// World carries events to the machines, performs what they ask for, and makes faults happen. After
// each step the invariants are looked at; at the first violation it stops. Everything follows from
// the seed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/faults.h"
#include "tests/sim/host.h"
#include "tests/sim/invariants.h"
#include "tests/sim/keeper.h"
#include "tests/sim/ledger.h"
#include "tests/sim/network.h"

namespace ddprun::sim {

// A rule that the world breaks on purpose, to prove that the invariants can fail. The product's
// code knows nothing of it: messages, answers and effects are changed on their way.
enum class Mutation {
    none,
    keeper_ignores_deadlines,  // rule 4
    kills_are_slow,            // the margin is not kept
    swept_too_early,           // a vow before the workers are dead
    gone_too_early,            // the keeper's last word before they are
    create_overwrites,         // the ledger keeps the last writer's entry
    lost_is_won,               // a create that lost is announced
    proposing_at_h,            // more is granted than the next proposal waits for
    deadline_from_arrival,     // of the Ack, instead of from the sending of the Beat
    silent_members_count,      // H over those that are heard only
    late_assigned_obeyed,      // whenever it comes
    takeover_grants_early,     // before all have echoed
    refusal_is_proof,          // that the node behind a refused connection is gone
    joins_forget,              // what the node knows of the newest generation
    acks_forget,               // what the leader knows of it
};
const char* to_string(Mutation mutation);

struct WorldConfig {
    std::uint64_t seed = 1;
    int hosts = 4;
    std::vector<int> slots;                   // of each host; default 1
    rendezvous::Limits limits;                // times included
    std::vector<Duration> starts;             // of each host's ddprun; default: within 0.1 lease
    Duration work = std::chrono::seconds{3};  // what a worker needs
    bool progress = false;                    // workers report it, one on each host
    bool only_rank_0_reports = false;
    bool offer_node_ranks = true;
    // What a worker does; default: it works and exits 0.
    std::function<Behaviour(Generation, int host, int rank)> script;
    double lost_answers = 0.05;
    double packet_loss = 0;
    Duration stale_look_ups{};  // how old a look-up in the ledger may be
    bool succession = true;
    bool in_slurm = false;  // workers that fail die of SIGTERM, as if Slurm had signalled them
    bool leader_joins_late = false;  // so that it leads, and is a spare
    double consequences = 0.4;  // share of the peers of a lost worker that fail; the others hang
    std::vector<Fault> faults;
    Mutation mutation = Mutation::none;
    bool keep_trace = false;  // all of it, not just its tail
};

// The job of a seed: size, limits, work and faults drawn from it.
WorldConfig random_config(std::uint64_t seed);
// One in which much goes wrong: long work, few nodes needed, the network cut and slow.
WorldConfig hard_config(std::uint64_t seed);

class World {
  public:
    explicit World(WorldConfig config);
    ~World();

    void run();  // to the end of the job, a violation, or the bound

    // ---- what came out
    const std::vector<std::string>& violations() const { return violations_; }
    const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
    const VirtualLedger& ledger() const { return ledger_; }
    const std::string& trace() const { return trace_; }
    std::uint64_t trace_hash() const { return trace_hash_; }
    std::string tail(std::size_t lines) const;
    Time started(Generation generation) const;  // when its last worker did; kNever: not all have
    std::size_t steps() const { return steps_; }
    int requeues() const { return invariants_.requeues(); }
    // By a node's name, how many messages it has sent to leaders, beats and openings left out.
    const std::map<std::string, int>& said() const { return said_; }

    // ---- for the parts of the world
    const WorldConfig& config() const { return config_; }
    Clock& clock() { return clock_; }
    const Network& network() const { return network_; }
    Random& random() { return random_; }
    Invariants& invariants() { return invariants_; }
    const std::vector<Host>& hosts() const { return hosts_; }
    Time now() const { return clock_.now(); }
    Duration lease(double part) const { return share(config_.limits.times.lease, part); }
    bool paused(const Host& host) const { return host.paused_until > now(); }
    bool frozen(const Process& process) const { return process.frozen_until > now(); }
    Time bound() const { return bound_; }
    std::int64_t next_pid() { return ++pids_; }
    void violation(const std::string& sentence);
    void trace(const Host& host, const std::string& line);

    void post_agent(Process& process, agent::Event event);
    void post_service(Process& process, rendezvous::Event event);
    void keeper_says_gone(Process& process, int connection);
    void kill_process(Host& host);
    void break_collectives(Generation generation);
    void stand_still(Generation generation);
    void examine(Process& process, const agent::ExamineWorkers& asked);
    Behaviour behaviour(Generation generation, int host, int rank);
    bool complete(Generation generation) const;  // all its workers have started
    void worker_started(Host& host, const Worker& worker);
    void worker_ended(Host& host, const Worker& worker, const rendezvous::WorkerOutcome& outcome,
                      bool natural);

  private:
    // mutation.cc: messages as the mutation wants them
    bool mutates(Mutation mutation) const { return config_.mutation == mutation; }
    void mutate(Process& node, int connection, rendezvous::ToNode& message);
    void mutate(rendezvous::ToLeader& message) const;
    void note_beat(int connection, const rendezvous::ToLeader& message);
    rendezvous::Event mutate(const rendezvous::LedgerEntry& asked, rendezvous::Event answer);
    void answer_for_silent(Process& leader, int connection, const rendezvous::ToNode& message);
    void take_refusal_for_proof(Process& leader, const Process& node);
    // processes
    void start_process(Host& host);
    void deliver(Process& process, bool tick, std::function<void()> run);
    void drain(Process& process);
    void step_agent(Process& process, const agent::Event& event);
    void step_service(Process& process, const rendezvous::Event& event);
    void perform(Process& process, const agent::Effects& effects);
    void perform(Process& process, const rendezvous::Effects& effects);
    void answer_for_slurm(Process& process, const rendezvous::AskNodeStates& ask);
    void plan_tick(Process& process, bool service);
    void end_process(Process& process);
    bool over() const;
    // links (world_links.cc)
    enum class Reached { service, keeper, refusal, nobody };
    Reached reach(int from, int to);
    int host_at(const std::string& address) const;
    void try_next(Process& process, int attempt);
    void probe(Process& process, const rendezvous::Call& call);
    void probed(int connection, const std::optional<rendezvous::Standing>& standing);
    void stand_by(Process& process, const std::optional<rendezvous::Peer>& peer);
    void connect(Process& process, const agent::Connect& connect);
    void try_connect(Process& process, int attempt);
    void call(Process& process, int attempt, Process& leader);
    void give_up(Process& process, int attempt);
    void say(int connection, rendezvous::ToLeader message);
    void came(Process& node, int connection, const rendezvous::ToNode& message);
    void connection_ended(int connection, Side side);
    void close_leader_side(const Process& process);
    // workers
    void progress(Host& host, Generation generation, std::int64_t pid, std::int64_t step);
    // faults
    void apply(const Fault& fault);
    void stall(Host& host, Time& until, Duration lasts);
    void lose_host(Host& host);
    void replace_process(Host& host);

    Host& host_of(const Process& process) { return hosts_[process.host]; }
    Process* leader_of(int connection) { return ends_[connection].second; }

    WorldConfig config_;
    Random random_;
    Clock clock_;
    Network network_;
    VirtualLedger ledger_;
    Invariants invariants_;
    std::vector<Host> hosts_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<std::pair<Process*, Process*>> ends_;  // of connections: node, leader
    // Of a service's calls: who asked (null: has its answer), and whom.
    std::map<int, std::pair<Process*, rendezvous::NodeId>> probes_;
    std::map<Generation, std::set<int>> started_;  // ranks
    std::map<Generation, Time> all_started_;
    std::set<Generation> broken_;
    std::set<Generation> stuck_;  // a worker stands, and all wait for it
    std::map<std::pair<int, std::int64_t>, Time> beats_sent_;  // connection and number
    std::map<int, rendezvous::Beat> last_beat_;                // of a connection
    int pending_ = 0;                                          // faults and starts to come
    std::uint64_t incarnations_ = 0;
    std::int64_t pids_ = 1000;
    Time bound_{};
    std::size_t steps_ = 0;
    std::map<std::string, int> said_;
    std::vector<std::string> violations_;
    std::string trace_;
    std::uint64_t trace_hash_ = 14695981039346656037ULL;
};

}  // namespace ddprun::sim
