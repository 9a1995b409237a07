// The checks of each invariant. A check has the true state of all hosts, so it needs no rule of the
// protocol, and cannot repeat a mistake of it.
#include "tests/sim/invariants.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rendezvous/rules/time_spent.h"
#include "tests/sim/describe.h"
#include "tests/sim/world.h"

namespace ddprun::sim {

using rendezvous::Assignment;
using rendezvous::Ending;
using rendezvous::LedgerEntry;
using rendezvous::NodeId;
using rendezvous::NodePlace;
using rendezvous::Verdict;

namespace {

std::string name(Generation generation) { return "generation " + std::to_string(generation.value); }

// The command line's limits, and over them what operators had set when the entry was written.
rendezvous::Limits limits_at(const World& world, const LedgerEntry& entry) {
    rendezvous::Limits limits = world.config().limits;
    limits.min_nodes = entry.limits.min_nodes.value_or(limits.min_nodes);
    limits.max_nodes = entry.limits.max_nodes.value_or(limits.max_nodes);
    limits.max_restarts = entry.limits.max_restarts.value_or(limits.max_restarts);
    return limits;
}

}  // namespace

void Invariants::spawned(const Host& host, const Process& process, const NodePlace& place,
                         bool guarded, Time deadline) {
    const std::string who = host.name + " starts " + name(place.generation);
    const LedgerEntry* entry = world_.recorded(process, place.generation);
    const auto places = entry ? places_of(entry->assignment) : std::map<NodeId, NodePlace>{};
    const auto recorded = places.find(process.id);
    if (!entry)
        world_.violation(who + ", which is not in the ledger");
    else if (recorded == places.end())
        world_.violation(who + " and is no member of it");
    else if (recorded->second != place)
        world_.violation(who + " with another place than the ledger's: " + describe(place) +
                         " instead of " + describe(recorded->second));
    // A node that starts the same generation twice would double its ranks.
    if (!spawned_.emplace(place.generation, host.index).second)
        world_.violation(who + " a second time");
    // A job of one node has no lease, so its deadline is "never". But the agent must have set even
    // that.
    if (!guarded || (world_.config().limits.max_nodes > 1 && deadline == kNever))
        world_.violation(who + " without a deadline");
    if (deadline != kNever && host.clock.local(world_.now()) >= deadline)
        world_.violation(who + " after its deadline");
    // The leaders build on the vow (PROTOCOL.md, rule 7).
    if (process.agent->snapshot().floor >= place.generation)
        world_.violation(who + ", which it has vowed not to run");
    for (const Worker& worker : host.workers)
        if (worker.owner == process.id.incarnation)
            world_.violation(who + " beside workers of " + name(worker.generation));
}

void Invariants::check_members(const Assignment& assignment, const rendezvous::Limits& limits) {
    const int nodes = static_cast<int>(assignment.members.size());
    if (nodes < limits.min_nodes || nodes > limits.max_nodes)
        world_.violation(name(assignment.generation) + " has " + std::to_string(nodes) + " nodes");
    // Members are in the order of their ranks. A gap, an overlap or a wrong sum makes every
    // collective wait for ever.
    int ranks = 0;
    std::set<rendezvous::NodeId> nodes_seen;
    for (const rendezvous::Member& member : assignment.members) {
        if (member.rank_offset != ranks)
            world_.violation(name(assignment.generation) + ": ranks are not contiguous");
        if (!nodes_seen.insert(member.node).second)
            world_.violation(name(assignment.generation) + " has " + member.node.name + " twice");
        ranks += member.offer.slots;
    }
    check_places(assignment, limits);
    if (ranks != assignment.world_size)
        world_.violation(name(assignment.generation) + ": the world has another size than said");
}

// Data may be tied to ranks. So members of two generations in a row keep their order, and with
// --on-join=spare the world does not grow.
void Invariants::check_places(const Assignment& assignment, const rendezvous::Limits& limits) {
    const LedgerEntry* before = world_.ledger().find(Generation{assignment.generation.value - 1});
    if (!before) return;
    std::size_t next = 0;
    const std::vector<rendezvous::Member>& members = assignment.members;
    for (const rendezvous::Member& old : before->assignment.members) {
        const auto place = std::ranges::find(members, old.node, &rendezvous::Member::node);
        if (place == members.end()) continue;
        const auto at = static_cast<std::size_t>(place - members.begin());
        if (at < next) world_.violation(old.node.name + " has lost its place among the ranks");
        next = at;
    }
    const auto most = std::max<std::size_t>(limits.min_nodes, before->assignment.members.size());
    if (limits.on_join == rendezvous::OnJoin::spare && members.size() > most)
        world_.violation(name(assignment.generation) + " has grown by spares");
}

void Invariants::appended(const LedgerEntry& entry) {
    check_blame(entry);
    check_limits(entry);
    check_times(entry);
    if (entry.end()) {
        ended_at_ = world_.now();
        check_ending(*entry.end());
        return;
    }
    const Assignment& assignment = entry.assignment;
    // The new entry is in the ledger already, so it is left out of the history.
    int before = 0;
    std::int64_t newest = -1;
    for (const LedgerEntry& earlier : world_.ledger().entries()) {
        if (&earlier == &world_.ledger().entries().back()) break;
        newest = std::max(newest, earlier.assignment.generation.value);
        before = std::max(before, earlier.assignment.restarts);
    }
    if (!entry.makes_generation()) return repeats(entry);
    check_suspension(entry);
    // What an older allocation has done under this number, before it was recorded, counts no more.
    if (entry.requeue > 0) {
        failures_.erase(assignment.generation);
        successes_.erase(assignment.generation);
        still_.erase(assignment.generation);
        broken_.erase(assignment.generation);
        failed_.erase(assignment.generation);
    }
    if (assignment.generation.value != newest + 1)
        world_.violation(name(assignment.generation) + " follows " + std::to_string(newest));
    const rendezvous::Limits limits = limits_at(world_, entry);
    check_members(assignment, limits);
    // `auto` means three.
    const int asked = limits.max_restarts;
    const int budget = asked == rendezvous::kAutoRestarts ? 3 : asked;
    // Generations in which a worker failed by itself or stood still. There cannot be more restarts
    // than these.
    std::set<Generation> ended_so = still_;
    for (const auto& [generation, outcomes] : failures_) ended_so.insert(generation);
    int failed = 0;
    for (const Generation generation : ended_so) failed += generation < assignment.generation;
    // A budget may be lowered below what is used up.
    if (assignment.restarts > std::max(budget, before))
        world_.violation(name(assignment.generation) + " is beyond the budget of restarts");
    if (assignment.restarts > failed)
        world_.violation(name(assignment.generation) + " counts " +
                         std::to_string(assignment.restarts) + " restarts, but only " +
                         std::to_string(failed) + " generations had a worker that failed");
    check_counted(assignment, before);
    if (assignment.restarts < before || assignment.restarts > before + 1)
        world_.violation(name(assignment.generation) + " jumps in the count of restarts");
}

// A takeover and the begin of an allocation repeat the newest generation.
void Invariants::repeats(const LedgerEntry& entry) {
    const auto& entries = world_.ledger().entries();
    const LedgerEntry before = entries.size() > 1 ? entries[entries.size() - 2] : LedgerEntry{};
    if (before.assignment != entry.assignment)
        world_.violation("an entry repeats another generation than the newest");
    if (entry.takes_over() && (before.end() || before.allocation()))
        world_.violation("a takeover follows no generation");
    if (entry.takes_over() && before.requeue != entry.requeue)
        world_.violation("a takeover by another allocation");
}

// Compares what the leader proposes with what the agents of the new members know of the generation
// before. The facts of a node reach the leader with its Join, so a leader that has its Join must
// know them. A node that has gone on to another leader may have heard more there.
void Invariants::proposed(const Process& leader, const LedgerEntry& entry) {
    check_promise(leader, entry);
    if (!entry.makes_generation() || entry.assignment.generation == Generation{0}) return;
    const Generation g{entry.assignment.generation.value - 1};
    const rendezvous::GenerationFacts& known = leader.service->facts();
    for (const auto& process : world_.processes()) {
        if (!process->alive || !entry.assignment.find(process->id)) continue;
        if (process->connection >= 0 && world_.leader_of(process->connection) != &leader) continue;
        const rendezvous::GenerationFacts& facts = process->agent->facts();
        if (facts.generation() != g) continue;
        const std::string who = leader.id.name + " proposes " + name(entry.assignment.generation) +
                                " and does not know what " + process->id.name + " does: ";
        if (facts.reach() >= rendezvous::Reach::met && !entry.met)
            world_.violation(who + "that the workers have met");
        if (facts.failure() && !known.failure())
            world_.violation(who + facts.failure().outcome().sentence);
        const auto stop = facts.stop(kLongAgo);
        // A stop for a larger world, or for one without a node that leaves, is fulfilled by the
        // next generation. Every other stop ends the job.
        if (stop && stop->cause != rendezvous::StopCause::larger_world &&
            stop->cause != rendezvous::StopCause::node_leaves)
            world_.violation(who + "a stop");
    }
}

// A failure that follows from a lost node, or from a lease that has passed, uses up no restart. The
// leader judges this by the ages of messages. So the check leaves out jobs whose network or hosts
// were held up in the last three leases: there the ages are not exact.
void Invariants::check_counted(const Assignment& assignment, int before) {
    const Generation g{assignment.generation.value - 1};
    const bool hung = assignment.cause.find("no rank has made progress") != std::string::npos;
    // There each message may be late, or ends the connection of another.
    bool held_up = world_.config().slow_connections > 0 || world_.config().strays > 0;
    const Time from = world_.now() - world_.lease(3);
    for (const Host& host : world_.hosts())
        held_up |=
            host.disturbed_until > from || world_.network().was_cut(host.index, from, world_.now());
    if (assignment.restarts > before && !failed_.contains(g) && !hung && !held_up)
        world_.violation(name(assignment.generation) + " uses up a restart, but no worker of " +
                         name(g) + " had failed by itself");
}

void Invariants::check_ending(const Ending& ending) {
    if (ending.sentence.empty()) world_.violation("the end has no sentence");
    // Success needs one generation in which all workers exited 0. Workers that succeed in different
    // generations do not add up.
    if (ending.verdict == Verdict::succeeded) {
        bool whole = false;
        for (const LedgerEntry& entry : world_.ledger().entries())
            if (entry.makes_generation())
                whole |= static_cast<int>(successes_[entry.assignment.generation].size()) ==
                         entry.assignment.world_size;
        if (!whole) world_.violation("success, but in no generation all workers exited 0");
        if (ending.code != 0) world_.violation("success with a code that is not 0");
    }
    if (ending.verdict == Verdict::internal) world_.violation("internal: " + ending.sentence);
    if (ending.verdict != Verdict::worker_failed) return;
    if (!ending.first_failure) {
        world_.violation("a worker's failure ended the job, and it is not named");
        return;
    }
    // The failure that ends the job must be one that a worker had by itself, and not a kill by
    // ddprun.
    bool real = ending.first_failure->hung && !still_.empty();
    for (const auto& [generation, outcomes] : failures_)
        for (const auto& outcome : outcomes) real |= outcome.pid == ending.first_failure->pid;
    if (!real)
        world_.violation("the failure that ended the job is not a worker's own: " +
                         describe(ending));
    if (ending.code == 0 || ending.code != ending.first_failure->code())
        world_.violation("the job's code is not that of the first failure: " + describe(ending));
}

// The phases of restarts add up, entry by entry: to the sums in the entry, and to no more than all
// the time that there was. One lease is allowed for clocks that drift and for the way to the
// leader.
void Invariants::check_times(const LedgerEntry& entry) {
    const auto& entries = world_.ledger().entries();
    const rendezvous::RestartTotals before = entries.size() > 1
                                                 ? entries[entries.size() - 2].restart.totals
                                                 : rendezvous::RestartTotals{};
    const rendezvous::RestartTotals& totals = entry.restart.totals;
    const Generation generation = entry.assignment.generation;
    const bool restart = entry.makes_generation() && generation > Generation{0};
    // The phases from `started` on belong to the generation before a restart, or to the one that
    // the end closes. Generation 0 is no restart, and a takeover repeats the sums.
    const bool start_counts =
        generation.value - (restart ? 1 : 0) > 0 && (entry.makes_generation() || entry.end());
    constexpr auto kStart = static_cast<std::size_t>(rendezvous::RestartPhase::started);
    Duration lost{};
    for (std::size_t i = 0; i < rendezvous::kRestartPhases; ++i) {
        const Duration took = entry.restart.times[i].took;
        if (took < Duration{}) world_.violation("a phase of a restart took less than no time");
        const bool counts = i < kStart || start_counts;
        if (totals.took[i] != before.took[i] + (counts ? took : Duration{}))
            world_.violation(std::string("the time in ") + rendezvous::kRestartPhaseNames[i] +
                             " does not add up");
        lost += totals.took[i];
    }
    if (lost > world_.now() - Time{} + world_.lease(1))
        world_.violation("more time was lost than there was: " + ddprun::to_text(lost));
    if (totals.restarts != before.restarts + (restart ? 1 : 0))
        world_.violation("a restart was not counted");
    if (std::accumulate(totals.causes.begin(), totals.causes.end(), 0) != totals.restarts)
        world_.violation("a restart has no cause");
    check_time_spent(entry);
}

// From the job's begin to this entry each moment is in one part. The clocks of hosts differ.
void Invariants::check_time_spent(const LedgerEntry& entry) {
    const auto& entries = world_.ledger().entries();
    const rendezvous::TimeRecord& time = entry.time;
    if (time.spent.all() != time.at - time.begun)
        world_.violation("the parts of the job's time do not add up");
    for (const rendezvous::TimePart& part : rendezvous::parts_of(time.spent))
        if (part.took < Duration{})
            world_.violation(std::string("less than no time was spent ") + part.words);
    if (time.begun != entries.front().time.begun) world_.violation("the job's begin has moved");
    if (time.at > kDay + (world_.now() - Time{}) + world_.lease(1))
        world_.violation("an entry is of a time that has not come");
    if (entries.size() < 2) return;
    const LedgerEntry& before = entries[entries.size() - 2];
    const auto trained = [](const LedgerEntry& each) {
        return each.time.spent.training + each.time.spent.lost;
    };
    if (!world_.has_run(before.assignment.generation) && trained(entry) > trained(before))
        world_.violation("a generation that nobody has run has trained");
}

// "Suspended" is said only if each member of the generation before has stood still since it began.
void Invariants::check_suspension(const LedgerEntry& entry) {
    const Time began = std::exchange(generation_at_, world_.now());
    const auto members = std::exchange(members_, entry.assignment.members);
    if (!entry.assignment.cause.starts_with("the job was suspended")) return;
    for (const rendezvous::Member& member : members)
        if (std::ranges::none_of(world_.hosts(), [&](const Host& host) {
                return host.name == member.node.name && host.stood_until > began;
            }))
            world_.violation(member.node.name + " has not stood still before " +
                             name(entry.assignment.generation));
}

// A blamed node was the first cause twice within five generations, and it stays blamed for the rest
// of the job.
void Invariants::check_blame(const LedgerEntry& entry) {
    const auto& entries = world_.ledger().entries();
    const rendezvous::Blame before =
        entries.size() > 1 ? entries[entries.size() - 2].blame : rendezvous::Blame{};
    std::map<std::string, int> causes;
    for (const rendezvous::FirstCause& cause : entry.blame.causes) {
        ++causes[cause.node];
        const std::int64_t newest = entry.assignment.generation.value;
        if (cause.generation.value > newest) world_.violation("a cause of what is to come");
    }
    for (const std::string& node : before.nodes)
        if (std::count(entry.blame.nodes.begin(), entry.blame.nodes.end(), node) != 1)
            world_.violation(node + " is not blamed any more");
    for (const std::string& node : entry.blame.nodes)
        if (std::count(before.nodes.begin(), before.nodes.end(), node) == 0 && causes[node] < 2)
            world_.violation(node + " is blamed for " + std::to_string(causes[node]) + " failures");
    // Whom an operator has taken out stays out, over all leaders, and runs nothing any more.
    for (const std::string& host : before.drained)
        if (std::count(entry.blame.drained.begin(), entry.blame.drained.end(), host) != 1)
            world_.violation(host + " was taken out, and is not any more");
    if (entry.makes_generation())
        for (const rendezvous::Member& member : entry.assignment.members)
            if (std::count(entry.blame.drained.begin(), entry.blame.drained.end(),
                           member.node.name) != 0)
                world_.violation(member.node.name + " was taken out, and gets a place");
    const auto& causes_now = entry.blame.causes;
    if (!causes_now.empty() &&
        causes_now.back().generation.value - causes_now.front().generation.value >= 5)
        world_.violation("a cause of long ago still counts");
}

void Invariants::worker_ended(const Worker& worker, const rendezvous::WorkerOutcome& outcome,
                              bool natural) {
    // A worker that ddprun has killed says nothing about the program.
    if (!natural) return;
    if (outcome.failed()) {
        failures_[worker.generation].push_back(outcome);
        if (!broken_.contains(worker.generation)) failed_.insert(worker.generation);
    } else {
        successes_[worker.generation].insert(worker.rank);
    }
}

void Invariants::exited(const Process& process, const Ending& ending) {
    const Host& host = world_.hosts()[process.host];
    for (const Worker& worker : host.workers)
        if (worker.owner == process.id.incarnation) {
            world_.violation(host.name + " exits with workers of " + name(worker.generation));
            break;
        }
    const LedgerEntry* end = world_.ledger().end();
    // 69 is right for a node that could not hear the end. at_end() looks whether it could.
    if (ending.verdict == Verdict::unavailable && ending.code == 69) return;
    // A node with a signal of its user and without a leader stops alone.
    if (process.signalled &&
        (ending.verdict == Verdict::user_signal || ending.verdict == Verdict::work_left ||
         ending.verdict == Verdict::left))
        return;
    // A ledger that is away for good cannot record the end. Then the end that a leader has sent
    // counts.
    for (const auto& each : world_.processes())
        if (each->told && each->told->verdict == ending.verdict && each->told->code == ending.code)
            return;
    if (!end)
        world_.violation(host.name + " exits with " + describe(ending) +
                         ", but no end is recorded");
    else if (end->end()->verdict != ending.verdict || end->end()->code != ending.code)
        world_.violation(host.name + " exits with " + describe(ending) + " instead of " +
                         describe(*end->end()));
}

void Invariants::requeued(const Process& process) {
    const std::string& who = world_.hosts()[process.host].name;
    const int restart = world_.restart_count(process.host);
    const LedgerEntry* end = nullptr;  // of this allocation
    for (const LedgerEntry& entry : world_.ledger().entries())
        if (entry.end() && entry.requeue == restart) end = &entry;
    // Two requeues would start the job twice.
    if (!requeued_.insert(restart).second) world_.violation(who + " requeues the job once more");
    if (!end || !end->end()->requeue)
        world_.violation(who + " requeues the job, and no end says so");
    for (const Host& host : world_.hosts())
        for (const Worker& worker : host.workers)
            if (worker.alive && host.up && !world_.paused(host) && !just_resumed(host) &&
                world_.now() > lenient_until_)
                world_.violation(who + " requeues the job while " + name(worker.generation) +
                                 " runs on " + host.name);
}

// The named limit of the protocol: a host whose clock went on during a pause runs its workers for
// the length of one kill after it resumes. 0.04 of a lease is a kill; the rest is the keeper's
// delay.
bool Invariants::just_resumed(const Host& host) const {
    return host.resumed_stale && world_.now() <= host.resumed_at + world_.lease(0.07);
}

void Invariants::check_host(const Host& host) {
    const Worker* first = nullptr;
    for (const Worker& worker : host.workers) {
        if (!worker.alive) continue;
        if (first && first->generation != worker.generation)
            world_.violation(host.name + " runs " + name(first->generation) + " and " +
                             name(worker.generation) + " at once");
        first = &worker;
    }
    if (!first || world_.config().limits.max_nodes == 1 || just_resumed(host)) return;
    // A kill takes up to 0.04 of a lease, so 0.05 is allowed.
    const Time deadline = host.process->keeper->deadline();
    if (host.process->id.incarnation == first->owner && deadline != kNever &&
        host.clock.local(world_.now()) > deadline + world_.lease(0.05))
        world_.violation(host.name + " runs " + name(first->generation) + " beyond its deadline");
}

void Invariants::clock_goes_on() { lenient_until_ = world_.now() + world_.lease(1.2); }

void Invariants::after_step() {
    const Worker* training = nullptr;
    const Host* where = nullptr;
    for (const Host& host : world_.hosts()) {
        if (host.workers.empty() || !host.up || world_.paused(host)) continue;
        check_host(host);
        if (just_resumed(host)) continue;  // the named limit: the length of one kill
        for (const Worker& worker : host.workers) {
            if (!worker.alive) continue;
            // Two allocations may begin with the same number (rule 26, "One node").
            if (training &&
                (training->generation != worker.generation ||
                 where->allocation != host.allocation) &&
                world_.now() > lenient_until_)
                world_.violation(name(training->generation) + " on " + where->name + " and " +
                                 name(worker.generation) + " on " + host.name + " train at once");
            training = &worker;
            where = &host;
        }
    }
}

// Whether this process could hear the end: its host was well, no cut touched it, a leader had
// welcomed it, and it was still there.
bool Invariants::undisturbed(const Process& process, Time from, Time until) const {
    const Host& host = world_.hosts()[process.host];
    if (!host.up || host.disturbed_until > from) return false;
    // Who cannot read the ledger gives up, whoever else leads.
    if (world_.ledger().has_lost_an_entry()) return false;
    if (world_.network().was_cut(process.host, from, until)) return false;
    return process.first_welcome <= from && process.exited_at >= from;
}

void Invariants::at_end() {
    const LedgerEntry* end = world_.ledger().end();
    const Process* leader = nullptr;  // the first that has closed
    const auto of_the_end = [&](const Process& process) {
        return end && world_.restart_count(process.host) == end->requeue;
    };
    for (const auto& each : world_.processes())
        if (each->closed && of_the_end(*each) && (!leader || each->closed_at < leader->closed_at))
            leader = each.get();
    for (const auto& process : world_.processes()) {
        const std::string& who = world_.hosts()[process->host].name;
        if (!process->agent) continue;  // a rendezvous outside of the job lives for weeks
        if (process->alive && !process->exit)
            world_.violation(who + " has not exited in " + ddprun::to_text(world_.now() - Time{}));
        if (process->alive && process->leads() && !process->closed)
            world_.violation("the service of " + who + " has not closed in " +
                             ddprun::to_text(world_.now() - Time{}));
        if (process->signalled || !process->exit || !of_the_end(*process) ||
            process->exit->verdict == end->end()->verdict)
            continue;
        // Two ddprun of one host have one node rank. Without a free place the one that is no member
        // is refused while both go on.
        const int twice = world_.config().again_on;
        const bool one_rank = twice >= 0 && who == world_.hosts()[twice].name &&
                              process->exit->sentence.find("has --node-rank=") != std::string::npos;
        if (!leader || one_rank) continue;
        // Two leases before the end, because a disturbance may still hold up messages; one lease
        // after the leader has closed, because it waits that long for absent members.
        const Time from = ended_at_ - world_.lease(2), until = leader->closed_at + world_.lease(1);
        if (undisturbed(*process, from, until) && undisturbed(*leader, from, until))
            world_.violation(who + " was connected, but exits with " + describe(*process->exit) +
                             " instead of " + describe(*end->end()));
    }
}

}  // namespace ddprun::sim
