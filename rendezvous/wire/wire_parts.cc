// Writes and reads the nouns inside messages. The limits of a field stand where it is read.
#include "rendezvous/wire/wire_parts.h"

#include <algorithm>

namespace ddprun::rendezvous {
namespace {

// A year: more than any option allows, and far from an overflow.
constexpr Duration kYear = std::chrono::hours{24 * 366};
constexpr std::size_t kMaxAddress = 64;  // longer than any IPv6 address with its zone

// Protobuf has no 16-bit integers, so the range is checked here.
std::uint16_t read_port(const Place& place, const char* field, std::uint32_t value) {
    return static_cast<std::uint16_t>(place.integer(field, value, 0, UINT16_MAX));
}

// Each range depends on values that were checked before it, so that the numbers fit together.
HostPlace read(const Place& place, const link::HostPlace& from, const NodePlace& node) {
    HostPlace host;
    host.hosts = place.small("hosts", from.hosts(), 1, node.nodes);
    host.rank = place.small("rank", from.rank(), 0, host.hosts - 1);
    host.workers = place.small("workers", from.workers(), node.slots, node.world_size);
    host.first_local_rank =
        place.small("first_local_rank", from.first_local_rank(), 0, host.workers - node.slots);
    host.equal = from.equal();
    return host;
}

}  // namespace

std::string TextBudget::take(const std::string& text) {
    std::string part = clipped(text, std::min(left_, kMaxText));
    left_ -= std::min(left_, part.size() + 8);  // an empty text still takes some bytes on the wire
    return part;
}

std::string clipped(const std::string& text, std::size_t size) { return text.substr(0, size); }

Generation read_generation(const Place& place, const char* field, std::int64_t value) {
    return Generation{place.integer(field, value, kNoGeneration.value, kMaxNumber)};
}

EntryNumber read_entry(const Place& place, const char* field, std::int64_t value) {
    return EntryNumber{place.integer(field, value, kNoEntry.value, kMaxNumber)};
}

void write(const NodeId& from, link::NodeId& to) {
    to.set_name(from.name);
    // Any 64-bit number is a valid incarnation, so read() does not check it.
    to.set_incarnation(from.incarnation.value);
}

NodeId read(const Place& place, const link::NodeId& from) {
    return {place.text("name", from.name(), 1, kMaxName), Incarnation{from.incarnation()}};
}

void write(const Times& from, link::Times& to) {
    to.set_lease(from.lease.count());
    to.set_join_timeout(from.join_timeout.count());
    to.set_last_call(from.last_call.count());
}

// A lease of 0 would end every generation at once; the other two may be 0.
Times read(const Place& place, const link::Times& from) {
    Times times;
    times.lease = place.duration("lease", from.lease(), std::chrono::milliseconds{1}, kYear);
    times.join_timeout = place.duration("join_timeout", from.join_timeout(), Duration{0}, kYear);
    times.last_call = place.duration("last_call", from.last_call(), Duration{0}, kYear);
    return times;
}

void write(const Limits& from, link::Limits& to) {
    to.set_min_nodes(from.min_nodes);
    to.set_max_nodes(from.max_nodes);
    to.set_max_restarts(from.max_restarts);
    to.set_crash_loop(from.crash_loop);
    write(from.times, *to.mutable_times());
    to.set_hang_timeout(from.hang_timeout.count());
    // Stored as its opposite, so that a message without the field means the default, on.
    to.set_no_blame(!from.blame);
    to.set_on_join(static_cast<int>(from.on_join));
    to.set_join_interval(from.join_interval.count());
}

Limits read(const Place& place, const link::Limits& from) {
    constexpr int kMost = static_cast<int>(kMaxNodes);
    Limits limits;
    limits.min_nodes = place.small("min_nodes", from.min_nodes(), 1, kMost);
    // MAX must not be below MIN.
    limits.max_nodes = place.small("max_nodes", from.max_nodes(), limits.min_nodes, kMost);
    // -1 stands for auto.
    limits.max_restarts =
        place.small("max_restarts", from.max_restarts(), kAutoRestarts, kMaxWorld);
    limits.crash_loop = place.small("crash_loop", from.crash_loop(), 0, kMaxWorld);
    limits.times = read(place.at("times"), from.times());
    limits.hang_timeout = place.duration("hang_timeout", from.hang_timeout(), Duration{0}, kYear);
    limits.blame = !from.no_blame();
    // The range is checked before the cast: another number would be no enumerator.
    limits.on_join = static_cast<OnJoin>(
        place.small("on_join", from.on_join(), 0, static_cast<int>(OnJoin::spare)));
    limits.join_interval =
        place.duration("join_interval", from.join_interval(), Duration{0}, kYear);
    return limits;
}

void write(const Peer& from, link::Peer& to) {
    write(from.node, *to.mutable_node());
    to.set_address(from.address);
    to.set_port(from.port);
}

Peer read(const Place& place, const link::Peer& from) {
    return {read(place.at("node"), from.node()), place.text("address", from.address(), 0, kMaxName),
            read_port(place, "port", from.port())};
}

void write(const Offer& from, link::Offer& to) {
    to.set_slots(from.slots);
    // Absent on the wire, too: 0 is a rank.
    if (from.node_rank) to.set_node_rank(*from.node_rank);
    to.set_address(from.address);
    // A host of many containers may have more than a reader takes.
    for (std::size_t i = 0; i < std::min(from.addresses.size(), kMaxAddresses); ++i)
        to.add_addresses(from.addresses[i]);
    to.set_service_port(from.service_port);
    to.set_store_port(from.store_port);
    to.set_role(from.role);
}

Offer read(const Place& place, const link::Offer& from) {
    Offer offer;
    // A node without slots could never be a member.
    offer.slots = place.small("slots", from.slots(), 1, kMaxSlots);
    if (from.has_node_rank())
        offer.node_rank =
            place.small("node_rank", from.node_rank(), 0, static_cast<int>(kMaxNodes));
    offer.address = place.text("address", from.address(), 0, kMaxName);
    if (place.count("addresses", from.addresses().size(), kMaxAddresses))
        for (const std::string& address : from.addresses())
            offer.addresses.push_back(place.text("addresses", address, 1, kMaxAddress));
    offer.service_port = read_port(place, "service_port", from.service_port());
    offer.store_port = read_port(place, "store_port", from.store_port());
    offer.role = place.text("role", from.role(), 0, kMaxName);
    return offer;
}

void write(const NodePlace& from, link::NodePlace& to) {
    to.set_generation(from.generation.value);
    to.set_node_rank(from.node_rank);
    to.set_nodes(from.nodes);
    to.set_slots(from.slots);
    to.set_equal_slots(from.equal_slots);
    to.set_rank_offset(from.rank_offset);
    to.set_world_size(from.world_size);
    to.set_role_rank_offset(from.role_rank_offset);
    to.set_role_world_size(from.role_world_size);
    to.set_master_address(from.master_address);
    to.set_master_port(from.master_port);
    to.set_max_restarts(from.max_restarts);
    for (const std::string& address : from.addresses) to.add_addresses(address);
    // Only if several nodes share a host (--task-per-worker).
    if (!from.shared) return;
    link::HostPlace& shared = *to.mutable_shared();
    shared.set_rank(from.shared->rank);
    shared.set_hosts(from.shared->hosts);
    shared.set_first_local_rank(from.shared->first_local_rank);
    shared.set_workers(from.shared->workers);
    shared.set_equal(from.shared->equal);
}

NodePlace read(const Place& place, const link::NodePlace& from) {
    NodePlace own;
    own.generation = read_generation(place, "generation", from.generation());
    own.nodes = place.small("nodes", from.nodes(), 1, static_cast<int>(kMaxNodes));
    // A place whose numbers contradict each other would give workers wrong ranks, so each one
    // bounds the next.
    own.node_rank = place.small("node_rank", from.node_rank(), 0, own.nodes - 1);
    // Each node has one worker at least.
    own.world_size = place.small("world_size", from.world_size(), own.nodes, kMaxWorld);
    own.slots = place.small("slots", from.slots(), 1, std::min(kMaxSlots, own.world_size));
    own.rank_offset = place.small("rank_offset", from.rank_offset(), 0, own.world_size - own.slots);
    own.equal_slots = from.equal_slots();
    own.role_world_size =
        place.small("role_world_size", from.role_world_size(), own.slots, own.world_size);
    own.role_rank_offset = place.small("role_rank_offset", from.role_rank_offset(), 0,
                                       own.role_world_size - own.slots);
    own.master_address = place.text("master_address", from.master_address(), 0, kMaxName);
    own.master_port = read_port(place, "master_port", from.master_port());
    own.max_restarts = place.small("max_restarts", from.max_restarts(), kAutoRestarts, kMaxWorld);
    // The first node gets the addresses of all members, for access to the workers' store.
    if (place.count("addresses", from.addresses().size(), kMaxNodes * kMaxAddresses))
        for (const std::string& address : from.addresses())
            own.addresses.push_back(place.text("addresses", address, 1, kMaxAddress));
    if (from.has_shared()) own.shared = read(place.at("shared"), from.shared(), own);
    return own;
}

// The sentence comes first: if the budget runs out, the last lines are cut.
void write(const WorkerOutcome& from, link::WorkerOutcome& to, TextBudget& budget) {
    to.set_rank(from.rank);
    to.set_local_rank(from.local_rank);
    to.set_pid(from.pid);
    to.set_exit_code(from.exit_code);
    to.set_signal(from.signal);
    to.set_age(from.age.count());
    to.set_sentence(budget.take(from.sentence));
    to.set_error(budget.take(from.error));
    // If there are too many lines, the last ones are kept.
    const std::size_t skip = from.tail.size() - std::min(from.tail.size(), kMaxTail);
    for (std::size_t i = skip; i < from.tail.size() && !budget.empty(); ++i)
        to.add_tail(budget.take(from.tail[i]));
    to.set_hung(from.hung);
    for (std::size_t i = 0; i < std::min(from.stack.size(), kMaxTail) && !budget.empty(); ++i)
        to.add_stack(budget.take(from.stack[i]));
    to.set_error_file(budget.take(from.error_file));
    to.set_core_dumped(from.core_dumped);
    to.set_out_of_memory(from.out_of_memory);
    for (std::size_t i = 0; i < std::min(from.remarks.size(), kMaxRemarks) && !budget.empty(); ++i)
        to.add_remarks(budget.take(from.remarks[i]));
}

WorkerOutcome read(const Place& place, const link::WorkerOutcome& from) {
    WorkerOutcome outcome;
    outcome.rank = place.small("rank", from.rank(), 0, kMaxWorld);
    outcome.local_rank = place.small("local_rank", from.local_rank(), 0, kMaxSlots - 1);
    outcome.pid = place.integer("pid", from.pid(), 0, kMaxNumber);
    // What the kernel can report; a signal has a field of its own.
    outcome.exit_code = place.small("exit_code", from.exit_code(), 0, 255);
    // Linux numbers signals up to 64.
    outcome.signal = place.small("signal", from.signal(), 0, 64);
    outcome.age = place.duration("age", from.age(), Duration{0}, kYear);
    outcome.sentence = place.text("sentence", from.sentence(), 0, kMaxText);
    outcome.error = place.text("error", from.error(), 0, kMaxText);
    if (place.count("tail", from.tail().size(), kMaxTail))
        for (const std::string& line : from.tail())
            outcome.tail.push_back(place.text("tail", line, 0, kMaxText));
    outcome.hung = from.hung();
    if (place.count("stack", from.stack().size(), kMaxTail))
        for (const std::string& line : from.stack())
            outcome.stack.push_back(place.text("stack", line, 0, kMaxText));
    outcome.error_file = place.text("error_file", from.error_file(), 0, kMaxText);
    outcome.core_dumped = from.core_dumped();
    outcome.out_of_memory = from.out_of_memory();
    if (place.count("remarks", from.remarks().size(), kMaxRemarks))
        for (const std::string& remark : from.remarks())
            outcome.remarks.push_back(place.text("remarks", remark, 0, kMaxText));
    return outcome;
}

void write(const Ending& from, link::Ending& to) {
    // 1 MiB, so that the ending fits into a frame and into a ledger entry.
    TextBudget budget(std::size_t{1} << 20);
    to.set_verdict(static_cast<int>(from.verdict));
    to.set_code(from.code);
    to.set_sentence(clipped(from.sentence));
    if (from.first_failure) write(*from.first_failure, *to.mutable_first_failure(), budget);
    to.set_first_failure_node(from.first_failure_node);
    to.set_consequences(from.consequences);
    // These share the budget with the first failure, which was written before them.
    for (const Consequence& consequence : from.told_consequences) {
        link::Consequence& one = *to.add_told_consequences();
        one.set_node(consequence.node);
        write(consequence.outcome, *one.mutable_outcome(), budget);
        one.set_after(consequence.after.count());
    }
    if (from.loss) {
        to.mutable_loss()->set_node(from.loss->node);
        to.mutable_loss()->set_sentence(clipped(from.loss->sentence));
    }
    // Absent on the wire, since 0 is a generation.
    if (from.generation != kNoGeneration) to.set_generation(from.generation.value);
    to.set_at(from.at.count());
    to.set_requeue(from.requeue);
}

// The second half of an Ending.
static void read_account(const Place& place, const link::Ending& from, Ending& ending) {
    if (place.count("told_consequences", from.told_consequences().size(), kConsequencesTold))
        for (int i = 0; i < from.told_consequences_size(); ++i) {
            const Place here = place.at("told_consequences", i);
            const link::Consequence& one = from.told_consequences(i);
            ending.told_consequences.push_back(
                {here.text("node", one.node(), 0, kMaxName),
                 read(here.at("outcome"), one.outcome()),
                 here.duration("after", one.after(), Duration{0}, kYear)});
        }
    if (from.has_loss())
        ending.loss = {place.text("loss", from.loss().node(), 0, kMaxName),
                       place.text("loss", from.loss().sentence(), 0, kMaxText)};
    if (from.has_generation())
        ending.generation = read_generation(place, "generation", from.generation());
    ending.at = Duration{place.integer("at", from.at(), 0, kMaxNumber)};
}

Ending read(const Place& place, const link::Ending& from) {
    Ending ending;
    // The range is checked before the cast: another number would be no enumerator.
    ending.verdict = static_cast<Verdict>(
        place.small("verdict", from.verdict(), 0, static_cast<int>(Verdict::user_signal)));
    ending.code = place.small("code", from.code(), 0, 255);
    ending.sentence = place.text("sentence", from.sentence(), 0, kMaxText);
    if (from.has_first_failure())
        ending.first_failure = read(place.at("first_failure"), from.first_failure());
    ending.first_failure_node =
        place.text("first_failure_node", from.first_failure_node(), 0, kMaxName);
    ending.consequences = place.small("consequences", from.consequences(), 0, kMaxWorld);
    ending.requeue = from.requeue();
    read_account(place, from, ending);
    return ending;
}

}  // namespace ddprun::rendezvous
