// A whole job in virtual time and in one thread. On each host there are an agent machine and a
// rendezvous machine with a keeper and workers, between the hosts a network, and one ledger for
// all. The machines are the product's own, and so is the ledger that is written behind the start of
// a job of one node; the rest is a model.
//
// World brings events to the machines, performs the effects that they return, and makes faults
// happen. After each step the invariants are checked, and the run stops at the first violation.
// Everything follows from the seed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/behind.h"
#include "tests/sim/faults.h"
#include "tests/sim/host.h"
#include "tests/sim/invariants.h"
#include "tests/sim/keeper.h"
#include "tests/sim/ledger.h"
#include "tests/sim/network.h"

namespace ddprun::sim {

// A rule that the world breaks on purpose, to prove that the invariants can fail. The product's
// code knows nothing of it: messages, answers and effects are changed on their way. INVARIANTS.md
// says which test finds which.
enum class Mutation {
    none,
    keeper_ignores_deadlines,  // rule 4: a node that is cut off trains on
    kills_are_slow,            // a kill takes up to 3 leases, far beyond the margin
    swept_too_early,           // a node vows before its workers are dead
    frozen_keeper_protects,    // ddprun leaves the kill to a keeper that stands still
    gone_too_early,            // the keeper says Gone before the workers are dead
    create_overwrites,         // the ledger keeps the last writer's entry
    lost_is_won,               // a leader announces an entry whose create has lost
    proposing_at_h,            // the nodes get 0.2 lease more than the next proposal waits for
    deadline_from_arrival,     // of the Ack, and not from the sending of the Beat
    silent_members_count,      // silent members seem to echo, so they do not hold H back
    late_assigned_obeyed,      // a node starts, however old the message is
    takeover_grants_early,     // a takeover extends the lease before all have echoed
    refusal_is_proof,          // a refused connection proves that the node is gone
    joins_forget,              // a Join omits what the node knows of the newest generation
    acks_forget,               // an Ack omits what the leader knows of it
    requeue_is_proof,          // a new allocation does not wait for the workers of the old one
    leaders_never_look,        // for a newer allocation
    looks_are_old,             // a file system's cache answers the looks
};
const char* to_string(Mutation mutation);

inline constexpr std::uint64_t kMark = 1;                 // of the one ledger
inline constexpr const char* kOfEachHost = "172.17.0.1";  // with WorldConfig::each_leads

// A job to simulate. The defaults are a job of four nodes; tests change what their story needs
// (stories.h), and random jobs draw nearly everything from the seed.
struct WorldConfig {
    std::uint64_t seed = 1;
    int hosts = 4;
    std::vector<int> slots;        // of each host; where missing: 1
    rendezvous::Limits limits;     // times included
    std::vector<Duration> starts;  // of each host's ddprun; where missing: within 0.1 lease
    // At this time Slurm starts the job again, on as many other hosts, while the first allocation
    // may live. The two share nothing but the ledger. 0: never.
    Duration requeued_at{};
    // A job of one node whose ledger is written behind its first start (rule 26): how long after
    // the start the folder is open. The newer allocation opens it at once.
    std::optional<Duration> folder_opens;
    Duration work = std::chrono::seconds{3};  // how long a worker works
    bool progress = false;                    // workers report progress, one on each host
    bool only_rank_0_reports = false;         // with `progress`: no other rank reports
    bool offer_node_ranks = true;
    // What a worker does. Without a script it works and exits 0.
    std::function<Behaviour(Generation, int host, int rank)> script;
    double lost_answers = 0.05;   // of the ledger; see VirtualLedger::lose_answers
    double packet_loss = 0;       // of the network
    Duration stale_look_ups{};    // how old a read of the ledger may be
    double slow_connections = 0;  // share of connections; see Network
    double strays = 0;            // share of calls of which the service hears twice, in any order
    // So many ddprun-rendezvous lead, each on a host of its own behind all others. A node that
    // calls the endpoint calls them in turn. With `forgets` the ledger is in memory, so a new
    // process there knows nothing of the job.
    int outside = 0;
    Duration outside_apart{};  // how long after the one the next of them starts
    bool forgets = false;
    // A second ddprun on this host, started `again_after` the first; behind all other hosts. -1:
    // none.
    int again_on = -1;
    Duration again_after{};
    std::vector<int> blind;  // these hosts do not find the leader's ledger
    bool succession = true;  // false: as with a ledger in memory, no other node may lead
    bool each_leads =
        false;  // every host has the endpoint's address, and takes itself for the leader
    bool in_slurm = false;  // workers that fail die of SIGTERM, as if Slurm had signalled them
    bool leaves = false;    // SIGTERM to a ddprun asks to leave, as with --on-sigterm=leave
    bool leader_joins_late = false;  // host 0 leads and is a spare
    double consequences = 0.4;       // share of the peers of a lost worker that fail; the rest hang
    std::vector<Fault> faults;
    Mutation mutation = Mutation::none;
    bool keep_trace = false;  // all of it, and not just its tail
};

// The job of a seed: size, limits, work and faults drawn from it.
WorldConfig random_config(std::uint64_t seed);
// A job in which much goes wrong: long work, few nodes needed, and twice as many faults in a
// shorter time.
WorldConfig hard_config(std::uint64_t seed);

class World {
  public:
    // Queues the starts and the faults of the job. Nothing happens before run().
    explicit World(WorldConfig config);
    ~World();

    void run();  // to the end of the job, to a violation, or to the bound

    // The result, for tests.
    const std::vector<std::string>& violations() const { return violations_; }
    const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
    const VirtualLedger& ledger() const { return ledger_; }
    const std::string& trace() const { return trace_; }
    // The hash covers the whole trace, also the part that is not kept.
    std::uint64_t trace_hash() const { return trace_hash_; }
    std::string tail(std::size_t lines) const;
    Time started(Generation generation) const;  // when its last worker started; kNever: not yet
    bool has_run(Generation generation) const { return started_.contains(generation); }
    std::size_t steps() const { return steps_; }
    int requeues() const { return invariants_.requeues(); }
    // By a node's name: how many messages it has sent to leaders, without Beats and without those
    // that open a connection.
    const std::map<std::string, int>& said() const { return said_; }
    // How many messages leaders have sent to nodes, without answers to Beats and openings.
    int told() const { return told_; }

    // For the parts of the world: keepers, invariants, and the files of World.
    const WorldConfig& config() const { return config_; }
    Clock& clock() { return clock_; }
    const Network& network() const { return network_; }
    Random& random() { return random_; }
    Invariants& invariants() { return invariants_; }
    const std::vector<Host>& hosts() const { return hosts_; }
    Time now() const { return clock_.now(); }
    int host_count() const { return static_cast<int>(hosts_.size()); }
    // SLURM_RESTART_COUNT of the allocation to which a host belongs.
    int restart_count(int host) const { return hosts_[host].allocation; }
    // The entry of a generation that this process may start, or null.
    const rendezvous::LedgerEntry* recorded(const Process& process, Generation generation) const;
    Process* leader_of(int connection) const { return ends_[connection].second; }
    Duration lease(double part) const { return share(config_.limits.times.lease, part); }
    Duration lease(Share part) const { return share(config_.limits.times.lease, part); }
    bool paused(const Host& host) const { return host.paused_until > now(); }
    bool frozen(const Process& process) const { return process.frozen_until > now(); }
    // A job that has not ended by then counts as hung.
    Time bound() const { return bound_; }
    std::int64_t next_pid() { return ++pids_; }
    // Records a broken invariant. run() then stops.
    void violation(const std::string& sentence);
    void trace(const Host& host, const std::string& line);

    // Events for the machines of a process. They wait while the process is frozen or its host is
    // paused.
    void post_agent(Process& process, agent::Event event);
    void post_service(Process& process, rendezvous::Event event);
    void keeper_says_gone(Process& process, int connection);
    void kill_process(Host& host);
    // A worker of this generation is gone: its peers fail or hang, as in a real collective.
    void break_collectives(Generation generation);
    // A rank stands still and the others wait for it. No process ends by itself any more.
    void stand_still(Generation generation);
    void examine(Process& process, const agent::ExamineWorkers& asked);
    Behaviour behaviour(Generation generation, int host, int rank);
    bool complete(Generation generation) const;  // all its workers have started, and none is gone
    void worker_started(Host& host, const Worker& worker);
    void worker_ended(Host& host, const Worker& worker, const rendezvous::WorkerOutcome& outcome,
                      bool natural);

  private:
    // mutation.cc: changes messages as the mutation wants them.
    bool mutates(Mutation mutation) const { return config_.mutation == mutation; }
    void mutate(Process& node, int connection, rendezvous::ToNode& message);
    void mutate(rendezvous::ToLeader& message) const;
    void note_beat(int connection, const rendezvous::ToLeader& message);
    rendezvous::Event mutate(const rendezvous::LedgerEntry& asked, rendezvous::Event answer);
    void answer_for_silent(Process& leader, int connection, const rendezvous::ToNode& message);
    void take_refusal_for_proof(Process& leader, const Process& node);
    // processes
    void in_order(Time when, std::function<void()> action);
    void add_host(const std::string& name, int allocation, int place, Duration start);
    void start_process(Host& host);
    void start_service(Process& process, const Host& host, const agent::MachineConfig& config);
    bool ask_ledger(Process& process, const rendezvous::Effect& effect);
    void write_behind(Process& process);
    void appended(const rendezvous::LedgerEntry& entry);
    bool is_blind(int host) const;
    rendezvous::Lead leads_from(const rendezvous::Peer& self) const;
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
    // What a new connection meets.
    enum class Reached { service, keeper, refusal, nobody };
    Reached reach(int from, int to);
    int host_at(const std::string& address, int from) const;
    void try_next(Process& process, int attempt);
    void probe(Process& process, const rendezvous::Call& call);
    void probed(int connection, const std::optional<rendezvous::Standing>& standing);
    void stand_by(Process& process, const std::optional<rendezvous::Peer>& peer);
    void connect(Process& process, const agent::Connect& connect);
    void try_connect(Process& process, int attempt);
    int called_by(const Process& process) const;
    void call(Process& process, int attempt, Process& leader);
    void stray(Process& process, Process& leader, const rendezvous::Hello& hello);
    void give_up(Process& process, int attempt);
    void say(int connection, rendezvous::ToLeader message);
    void came(Process& node, int connection, const rendezvous::ToNode& message);
    void connection_ended(int connection, Side side);
    void close_leader_side(const Process& process);
    // workers
    void ask_snapshot(Process& process, const agent::SnapshotHint& hint);
    void progress(Host& host, Generation generation, std::int64_t pid, std::int64_t step);
    // faults
    void apply(const Fault& fault);
    void operate(rendezvous::OperatorAction action, Duration again_after);
    void stall(Host& host, Time& until, Duration lasts);
    void suspend(Host& host, Duration lasts);
    void lose_host(Host& host);
    void replace_process(Host& host);

    Host& host_of(const Process& process) { return hosts_[process.host]; }

    WorldConfig config_;
    Random random_;
    Clock clock_;
    Network network_;
    VirtualLedger ledger_;
    Invariants invariants_;
    std::vector<Host> hosts_;
    std::vector<std::unique_ptr<Process>> processes_;
    std::vector<std::pair<Process*, Process*>> ends_;  // of each connection: node, leader
    // Of a service's calls: which process has asked (null: it has its answer), and which node was
    // asked.
    std::map<int, std::pair<Process*, rendezvous::NodeId>> probes_;
    std::map<Generation, std::set<int>> started_;  // ranks
    std::map<Generation, Time> all_started_;
    std::set<Generation> broken_;  // a worker is gone, the others fail or hang
    std::set<Generation> stuck_;   // one worker stands, and all wait for it
    std::map<std::pair<int, std::int64_t>, Time> beats_sent_;  // connection and number
    std::map<int, rendezvous::Beat> last_beat_;                // by connection
    int pending_ = 0;                                          // faults and starts still to come
    std::uint64_t incarnations_ = 0;
    std::int64_t pids_ = 1000;
    Time bound_{};
    std::size_t steps_ = 0;
    std::map<std::string, int> said_;
    int told_ = 0;
    std::vector<std::string> violations_;
    std::string trace_;
    std::uint64_t trace_hash_ = 14695981039346656037ULL;
};

}  // namespace ddprun::sim
