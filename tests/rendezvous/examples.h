// One of each message of the agent link with every field set, and ledger entries: for the tests of
// wire, frames, ledger, link and service. A field that a writer or a reader forgets makes the copy
// differ. Values are at the edges of their types where that matters.
#pragma once

#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

// What a node offers. Two kinds of addresses; two ports that differ, so that they cannot be mixed
// up.
inline Offer example_offer(int slots = 4) {
    Offer offer;
    offer.slots = slots;
    offer.node_rank = 3;
    offer.address = "10.0.0.7";
    offer.addresses = {"10.0.0.7", "fe80::1"};
    offer.service_port = 29400;
    offer.store_port = 41234;
    offer.role = "trainer";
    return offer;
}

// Generation 5 after gpu03 was lost: gpu01 with 4 workers has ranks 0 to 3, gpu02 with 2 has 4 and
// 5.
inline Assignment example_assignment() {
    Assignment assignment;
    assignment.generation = Generation{5};
    // The largest incarnation: it does not fit into a signed number, nor into a double.
    assignment.members = {{{"gpu01", Incarnation{~0ULL}}, example_offer(4), 0},
                          {{"gpu02", Incarnation{2}}, example_offer(2), 4}};
    assignment.world_size = 6;
    assignment.restarts = 1;
    assignment.max_restarts = 3;
    assignment.cause = "gpu03 was lost";
    return assignment;
}

// The place of the second of three nodes, whose sizes are unequal.
inline NodePlace example_place() {
    NodePlace place;
    place.generation = Generation{5};
    place.node_rank = 1;
    place.nodes = 3;
    place.slots = 4;
    place.equal_slots = false;
    place.rank_offset = 8;
    place.world_size = 20;
    place.role_rank_offset = 2;
    place.role_world_size = 6;
    place.master_address = "10.0.0.7";
    place.master_port = 41234;
    place.max_restarts = 7;
    place.cold = true;
    return place;
}

// The place of the node with the store. Only this one has the members; it shares its host.
inline NodePlace example_master_place() {
    NodePlace place = example_place();
    place.node_rank = place.rank_offset = 0;
    place.callers = {{{{"gpu01", Incarnation{7}}, "10.0.0.7", 29400}, {"10.0.0.7", "fe80::1"}},
                     {{{"gpu02", Incarnation{2}}, "", 0}, {}}};
    place.shared = HostPlace{1, 2, 3, 8, true};
    return place;
}

// A worker that was killed for its memory, with all that can be known of such a death.
inline WorkerOutcome example_outcome() {
    WorkerOutcome outcome;
    outcome.rank = 13;
    outcome.local_rank = 5;
    outcome.pid = 4711;
    outcome.signal = 9;
    outcome.age = std::chrono::milliseconds{12};
    outcome.sentence = "rank 13 (local 5 on gpu01) was killed by signal 9 (SIGKILL)";
    outcome.error = "CUDA out of memory";
    // Workers print any bytes: an empty line and one that is no UTF-8 must arrive as they are.
    outcome.tail = {"first line", "", "not UTF-8: \xff\xfe"};
    outcome.error_file = "/logs/error.json";
    outcome.core_dumped = outcome.out_of_memory = true;
    outcome.remarks = {"core dump: /home/user/core.4711", "another"};
    outcome.warm = true;
    return outcome;
}

// A worker that lives and makes no progress: it has no signal, and a stack instead.
inline WorkerOutcome example_hang() {
    WorkerOutcome outcome = example_outcome();
    outcome.signal = 0;
    outcome.hung = true;
    outcome.stack = {"rank 13, at step 7:", "not UTF-8: \xff"};
    return outcome;
}

// A barrier, after a call that is not known any more.
inline RecordedCalls example_recorded_calls() {
    return {{12, 13}, "group 0 (default_pg, gloo)", 11, 10, {"", "barrier"}, 11};
}

// A failed job: the first failure with its node, 7 consequences of which one is named, a loss, and
// the time in seconds since 1970.
inline Ending example_ending() {
    return {Verdict::worker_failed,
            137,
            "rank 13 failed",
            example_outcome(),
            "gpu01",
            7,
            {{"gpu02", example_outcome(), std::chrono::milliseconds{3}}},
            NodeLoss{"gpu03", "node gpu03 is gone"},
            Generation{5},
            std::chrono::seconds{1'800'000'000},
            true};
}

// A Beat of a node whose workers are complete, with marks of a restart and the slowest ranks. Step
// -1: that rank has reported nothing.
inline Beat example_beat() {
    Beat beat{9,
              8,
              Generation{4},
              EntryNumber{6},
              Generation{5},
              std::chrono::seconds{3},
              Reach::progressed,
              1000,
              900};
    beat.reports = 12;
    beat.reported = std::chrono::milliseconds{40};
    beat.marks = {Generation{5},
                  {{RestartPhase::started, std::chrono::seconds{9}},
                   {RestartPhase::contact, std::chrono::seconds{8}}}};
    beat.slowest = {{3, 990}, {2, 995}, {5, -1}};
    beat.still = {
        {0b101, Doing::in_collective, std::chrono::seconds{17}, std::chrono::seconds{2}, 4711},
        {0b010, Doing::sleeps, std::chrono::seconds{18}, {}, 0}};
    beat.saving = std::chrono::milliseconds{1500};
    beat.usage = {50'000'000, 4711, 1234567, 3};
    beat.stood_still = std::chrono::milliseconds{14600};
    beat.complete = true;
    return beat;
}

// Limits that all differ from their defaults, so that none can be lost on the way. `order` is not
// sent.
inline Limits example_limits() {
    Limits limits;
    limits.min_nodes = 2;
    limits.max_nodes = 5;
    limits.max_restarts = 7;
    limits.crash_loop = 0;
    limits.times = {std::chrono::seconds{2}, std::chrono::seconds{60}, std::chrono::seconds{1},
                    std::chrono::seconds{7}};
    limits.hang_timeout = std::chrono::seconds{90};
    limits.blame = false;
    limits.on_join = OnJoin::spare;
    limits.join_interval = std::chrono::seconds{7};
    return limits;
}

// All that can be known of a generation and is in no ledger entry yet: failures, a loss, a stop,
// the silent members.
inline Facts example_facts() {
    Facts facts;
    facts.generation = Generation{5};
    facts.reach = Reach::met;
    facts.snapshot = 900;
    facts.failures = {{"gpu01", example_outcome()}, {"gpu02", example_hang()}};
    facts.interruption = Interruption{"gpu03", "node gpu03 is gone", true};
    facts.interrupted = std::chrono::milliseconds{30};
    facts.silent = std::vector<NodeId>{{"gpu03", Incarnation{7}}};
    facts.stop =
        Stop{Generation{5}, 15, "scancel", StopCause::signal, std::chrono::seconds{9}, true};
    facts.led = std::chrono::milliseconds{1};
    facts.saved = std::chrono::milliseconds{2};
    facts.saving = std::chrono::milliseconds{3};
    facts.limits = {4, {.min_nodes = 2, .max_nodes = 5, .max_restarts = 7, .by = "alice@login1"}};
    return facts;
}

// Every message from a node to its leader. The first one is a Hello, as on a connection.
inline std::vector<ToLeader> examples_to_leader() {
    // No other leader has ever sent this node an Ack.
    Beat never = example_beat();
    never.silent = Duration::max();
    // Of messages with optional parts there are several: a Join that reads the leader's ledger and
    // one that has facts instead, stops with and without a time limit. Marks are large numbers.
    return {Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 2, example_limits()},
            Join{example_offer(), example_beat(), ~0ULL - 7, ~0ULL - 6},
            Join{example_offer(), example_beat(), 0, 0, example_facts()},
            example_beat(),
            never,
            Report{Generation{5}, {example_outcome(), example_outcome()}},
            Report{Generation{5}, {example_hang()}, {example_recorded_calls()}},
            StopAsked{15, "scancel"},
            StopAsked{0, "limit", StopCause::time_limit, std::chrono::seconds{60}, true},
            Leave{"done"},
            Gone{{"gpu01", Incarnation{7}}},
            Unusable{"rank 3 cannot be killed"},
            Inquire{{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 2, example_limits()}},
            AskOwners{7, {{"10.0.0.8", 40001, "10.0.0.7", 41234}, {"fe80::2", 1, "fe80::1", 2}}},
            Operate{{"8812", {"alice@login1", Incarnation{7}}, "0.1.0", 2, example_limits()},
                    ~0ULL - 7},
            Operate{{"8812", {"bob@login2", Incarnation{8}}, "0.1.0"}, 0, true}};
}

// Every message from a leader to a node. The first one is a Welcome, as on a connection; the second
// one is an Ack.
inline std::vector<ToNode> examples_to_node() {
    // An Ack that grants nothing, one that grants 8 s, one with facts.
    Ack nothing{3, 2, EntryNumber{6}, kNoGeneration, std::nullopt, Generation{5}};
    Ack granted{4, 3, EntryNumber{6}, Generation{5}, std::chrono::seconds{8}, Generation{4}};
    // silent_is_nobody has an empty list, which is not the same as no list.
    Ack of_facts = granted, silent_is_nobody = granted;
    of_facts.facts = example_facts();
    of_facts.snapshot = SnapshotAsked{5'000'001, "alice@login1"};
    of_facts.news =
        News{Generation{5},
             {{NewsKind::worker_lost, "gpu01", 3, 1, 0, 9}, {NewsKind::node_lost, "gpu02", 4, 4}}};
    silent_is_nobody.facts = Facts{.generation = Generation{5}, .silent = std::vector<NodeId>{}};
    // Port 0: nobody can call that node.
    const std::vector<Peer> order{{{"gpu01", Incarnation{7}}, "10.0.0.7", 29400},
                                  {{"gpu02", Incarnation{2}}, "", 0}};
    // Assigned twice: a lease that has passed on its way, and no deadline at all. The second Stop
    // belongs to a time limit that has passed.
    return {Welcome{{"gpu01", Incarnation{8}},
                    Times{},
                    order,
                    2,
                    order.front(),
                    "etcd:h:1",
                    ~0ULL - 8,
                    ~0ULL - 9},
            nothing,
            granted,
            of_facts,
            silent_is_nobody,
            Assigned{EntryNumber{6}, example_place(), 9, std::chrono::milliseconds{-5}},
            Assigned{EntryNumber{6}, example_master_place(), 9, Duration::max(), order},
            Parked{"waiting for gpu03", order},
            Elsewhere{"10.0.0.8", 29400, std::chrono::seconds{30}},
            Standing{{"gpu02", Incarnation{2}}, true, Generation{5}, EntryNumber{6}},
            Stop{Generation{5}, 15, "drain"},
            Stop{Generation{5}, 0, "limit", StopCause::time_limit, std::chrono::seconds{-1}, true},
            Examine{Generation{5}, {13, 0}},
            Finished{example_ending()},
            Refused{"this is run 8812", true},
            Owners{7, {{Whose::ours, 0}, {Whose::other, 4294967294U}, {Whose::unknown, 0}}}};
}

// A generation as the ledger records it. `random` tells its writer from others; the tests of the
// ledgers rely on the command digest and on requeue 1.
inline LedgerEntry example_entry(std::int64_t number = 6, std::uint64_t random = 99) {
    LedgerEntry entry;
    entry.number = EntryNumber{number};
    entry.leader = {"gpu01", Incarnation{~0ULL - 1}};
    entry.random = random;
    entry.requeue = 1;
    entry.command_digest = "abc123";
    entry.assignment = example_assignment();
    entry.met = true;
    entry.at = {{"gpu01", Incarnation{7}}, "10.0.0.7", 29400};
    entry.in_a_row = 2;
    entry.last_cause = "3/1/0/out of memory";
    entry.restart.times[2] = {std::chrono::milliseconds{12}, "gpu02"};
    entry.restart.totals.restarts = 3;
    entry.restart.totals.causes = {2, 0, 0, 0, 1};
    entry.restart.totals.took[2] = std::chrono::seconds{2};
    entry.restart.totals.longest = {std::chrono::seconds{1}, "gpu02"};
    entry.restart.totals.longest_phase = RestartPhase::stopped;
    entry.restart.totals.longest_of = Generation{4};
    entry.time.begun = std::chrono::hours{24 * 20000};
    entry.time.at = entry.time.begun + Duration{36};
    entry.time.progresses = entry.time.saves = true;
    entry.time.spent = {Duration{1}, Duration{2}, Duration{3}, Duration{4},
                        Duration{5}, Duration{6}, Duration{7}, Duration{8}};
    entry.blame = {{{Generation{3}, "gpu03"}, {Generation{4}, "gpu03"}}, {"gpu03"}, {"gpu04"}};
    entry.limits = {2, kMostNodes, kMostRestarts, "alice@login1"};
    return entry;
}

// An allocation with this restart count begins, while the one before it may still train.
inline LedgerEntry example_allocation(std::int64_t number, int requeue) {
    LedgerEntry entry = example_entry(number);
    entry.leader = {"gpu09", Incarnation{static_cast<std::uint64_t>(requeue)}};
    entry.act = BeginsAllocation{true};
    entry.requeue = requeue;
    return entry;
}

// The end of the job, which has no assignment.
inline LedgerEntry example_end(std::int64_t number, std::uint64_t random = 99) {
    LedgerEntry entry = example_entry(number, random);
    entry.act = EndsJob{example_ending()};
    entry.assignment = {};
    return entry;
}

}  // namespace ddprun::rendezvous
