// The messages from a leader to its nodes ↔ bytes.
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "rendezvous/wire/wire_parts.h"

namespace ddprun::rendezvous {
namespace {

// The largest distance of a lease's end from now; `remaining` is negative if that has passed.
// A year, like the longest time of an option.
constexpr Duration kFar = std::chrono::hours{24 * 366};

// Fills the one field of ToNode that belongs to the message. Values are our own and need no checks;
// only texts are cut.
struct Writer {
    link::ToNode& to;

    void operator()(const Welcome& welcome) const {
        link::Welcome& out = *to.mutable_welcome();
        write(welcome.leader, *out.mutable_leader());
        write(welcome.times, *out.mutable_times());
        write(welcome.at, *out.mutable_at());
        for (const Peer& peer : welcome.order) write(peer, *out.add_order());
        out.set_max_nodes(welcome.max_nodes);
        out.set_ledger(clipped(welcome.ledger));
        out.set_ledger_mark(welcome.ledger_mark);
        out.set_job(welcome.job);
    }
    void operator()(const Ack& ack) const {
        link::Ack& out = *to.mutable_ack();
        out.set_number(ack.number);
        out.set_beat(ack.beat);
        out.set_entry(ack.entry.value);
        out.set_held(ack.held.value);
        // Absent if this Ack extends no deadline.
        if (ack.remaining) out.set_remaining(ack.remaining->count());
        out.set_over(ack.over.value);
        if (ack.facts) write(*ack.facts, *out.mutable_facts());
    }
    void operator()(const Assigned& assigned) const {
        link::Assigned& out = *to.mutable_assigned();
        out.set_entry(assigned.entry.value);
        write(assigned.place, *out.mutable_place());
        out.set_beat(assigned.beat);
        // A job of one node has no lease: the field is absent then.
        if (assigned.remaining != Duration::max()) out.set_remaining(assigned.remaining.count());
        for (const Peer& peer : assigned.order) write(peer, *out.add_order());
    }
    void operator()(const Parked& parked) const {
        to.mutable_parked()->set_sentence(clipped(parked.sentence));
        for (const Peer& peer : parked.order) write(peer, *to.mutable_parked()->add_order());
    }
    void operator()(const Elsewhere& elsewhere) const {
        to.mutable_elsewhere()->set_address(elsewhere.address);
        to.mutable_elsewhere()->set_port(elsewhere.port);
        to.mutable_elsewhere()->set_rest(elsewhere.rest.count());
    }
    void operator()(const Stop& stop) const { rendezvous::write(stop, *to.mutable_stop()); }
    void operator()(const Examine& examine) const {
        to.mutable_examine()->set_generation(examine.generation.value);
        for (const int rank : examine.ranks) to.mutable_examine()->add_ranks(rank);
    }
    void operator()(const Finished& finished) const {
        write(finished.ending, *to.mutable_finished()->mutable_ending());
    }
    void operator()(const Refused& refused) const {
        to.mutable_refused()->set_sentence(clipped(refused.sentence));
    }
    void operator()(const Standing& standing) const {
        link::Standing& out = *to.mutable_standing();
        write(standing.node, *out.mutable_node());
        out.set_leads(standing.leads);
        out.set_held(standing.held.value);
        out.set_entry(standing.entry.value);
    }
};

// Reading. Each field is checked where it is read.
template <class Repeated>
// Whom a node calls, in this order, when its leader is lost (rendezvous/PROTOCOL.md, rule 10).
std::vector<Peer> read_order(const Place& place, const Repeated& from) {
    std::vector<Peer> order;
    if (!place.count("order", static_cast<std::size_t>(from.size()), kMaxNodes)) return order;
    for (int i = 0; i < from.size(); ++i)
        order.push_back(rendezvous::read(place.at("order", i), from.Get(i)));
    return order;
}

// Mark and job are random numbers, so any value is valid.
Welcome read(const Place& place, const link::Welcome& from) {
    Welcome welcome;
    welcome.leader = rendezvous::read(place.at("leader"), from.leader());
    welcome.times = rendezvous::read(place.at("times"), from.times());
    welcome.at = rendezvous::read(place.at("at"), from.at());
    welcome.order = read_order(place, from.order());
    welcome.max_nodes = place.small("max_nodes", from.max_nodes(), 1, kMaxWorld);
    welcome.ledger = place.text("ledger", from.ledger(), 0, kMaxText);
    welcome.ledger_mark = from.ledger_mark();
    welcome.job = from.job();
    return welcome;
}

Ack read(const Place& place, const link::Ack& from) {
    Ack ack;
    ack.number = place.integer("number", from.number(), 1, kMaxNumber);
    ack.beat = place.integer("beat", from.beat(), 0, kMaxNumber);
    ack.entry = read_entry(place, "entry", from.entry());
    ack.held = read_generation(place, "held", from.held());
    if (from.has_remaining())
        ack.remaining = place.duration("remaining", from.remaining(), -kFar, kFar);
    ack.over = read_generation(place, "over", from.over());
    if (from.has_facts()) ack.facts = rendezvous::read(place.at("facts"), from.facts());
    return ack;
}

Assigned read(const Place& place, const link::Assigned& from) {
    Assigned assigned;
    // An assignment always belongs to an entry, so -1 (none) is not allowed here.
    assigned.entry = EntryNumber{place.integer("entry", from.entry(), 0, kMaxNumber)};
    assigned.place = rendezvous::read(place.at("place"), from.place());
    assigned.beat = place.integer("beat", from.beat(), 0, kMaxNumber);
    assigned.remaining = from.has_remaining()
                             ? place.duration("remaining", from.remaining(), -kFar, kFar)
                             : Duration::max();
    assigned.order = read_order(place, from.order());
    return assigned;
}

Elsewhere read(const Place& place, const link::Elsewhere& from) {
    return {place.text("address", from.address(), 0, kMaxName),
            static_cast<std::uint16_t>(place.integer("port", from.port(), 0, UINT16_MAX)),
            place.duration("rest", from.rest(), Duration{0}, kFar)};
}

Standing read(const Place& place, const link::Standing& from) {
    return {rendezvous::read(place.at("node"), from.node()), from.leads(),
            read_generation(place, "held", from.held()), read_entry(place, "entry", from.entry())};
}

Examine read(const Place& place, const link::Examine& from) {
    Examine examine{read_generation(place, "generation", from.generation()), {}};
    if (place.count("ranks", static_cast<std::size_t>(from.ranks_size()), kSlowest))
        for (const int rank : from.ranks())
            examine.ranks.push_back(place.small("ranks", rank, 0, kMaxWorld));
    return examine;
}

Finished read(const Place& place, const link::Finished& from) {
    return {rendezvous::read(place.at("ending"), from.ending())};
}

// message_case() has a value for each message, so the compiler finds one that is missing here.
ToNode read(Fault& fault, const link::ToNode& from) {
    switch (from.message_case()) {
        case link::ToNode::kWelcome:
            return read(Place(fault, "Welcome"), from.welcome());
        case link::ToNode::kAck:
            return read(Place(fault, "Ack"), from.ack());
        case link::ToNode::kAssigned:
            return read(Place(fault, "Assigned"), from.assigned());
        case link::ToNode::kParked:
            return Parked{
                Place(fault, "Parked").text("sentence", from.parked().sentence(), 0, kMaxText),
                read_order(Place(fault, "Parked"), from.parked().order())};
        case link::ToNode::kElsewhere:
            return read(Place(fault, "Elsewhere"), from.elsewhere());
        case link::ToNode::kStop:
            return rendezvous::read(Place(fault, "Stop"), from.stop());
        case link::ToNode::kFinished:
            return read(Place(fault, "Finished"), from.finished());
        case link::ToNode::kRefused:
            return Refused{
                Place(fault, "Refused").text("sentence", from.refused().sentence(), 0, kMaxText)};
        case link::ToNode::kChallenge:
        case link::ToNode::kProof:
            Place(fault, "ToNode").complain("message", "belongs to a handshake, which is over");
            // Any value does, since the fault makes the caller throw it away.
            return Parked{};
        case link::ToNode::kStanding:
            return read(Place(fault, "Standing"), from.standing());
        case link::ToNode::kExamine:
            return read(Place(fault, "Examine"), from.examine());
        case link::ToNode::MESSAGE_NOT_SET:
            break;
    }
    // A field of a newer version, or none at all.
    Place(fault, "ToNode").complain("message", "unknown; does the other side run a newer version?");
    return Parked{};
}

}  // namespace

std::string encode(const ToNode& message) {
    link::ToNode to;
    std::visit(Writer{to}, message);
    return to.SerializeAsString();
}

Result<ToNode> decode_to_node(std::string_view bytes) {
    link::ToNode from;
    // The size is checked first: protobuf takes an int.
    if (bytes.size() > kLeaderFrameLimit ||
        !from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Error(ErrorCode::malformed, "ToNode: these " + std::to_string(bytes.size()) +
                                               " bytes are no protobuf message");
    Fault fault;
    ToNode message = read(fault, from);
    if (fault.first) return *fault.first;
    return message;
}

}  // namespace ddprun::rendezvous
