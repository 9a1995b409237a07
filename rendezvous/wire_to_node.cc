// What the rendezvous says.
#include "rendezvous/frame.h"
#include "rendezvous/wire.h"
#include "rendezvous/wire_parts.h"

namespace ddprun::rendezvous {
namespace {

// How far beyond now a lease may have passed or may last: remaining is negative when it has.
constexpr Duration kFar = std::chrono::hours{24 * 365};

// ---- to bytes

struct Writer {
    link::ToNode& to;

    void operator()(const Welcome& welcome) const {
        link::Welcome& out = *to.mutable_welcome();
        write(welcome.leader, *out.mutable_leader());
        write(welcome.times, *out.mutable_times());
        for (const std::string& name : welcome.order) out.add_order(name);
        out.set_max_nodes(welcome.max_nodes);
    }
    void operator()(const Ack& ack) const {
        link::Ack& out = *to.mutable_ack();
        out.set_number(ack.number);
        out.set_beat(ack.beat);
        out.set_entry(ack.entry.value);
        out.set_held(ack.held.value);
        if (ack.remaining) out.set_remaining(ack.remaining->count());
        out.set_over(ack.over.value);
    }
    void operator()(const Assigned& assigned) const {
        link::Assigned& out = *to.mutable_assigned();
        out.set_entry(assigned.entry.value);
        write(assigned.assignment, *out.mutable_assignment());
        out.set_beat(assigned.beat);
        if (assigned.remaining != Duration::max()) out.set_remaining(assigned.remaining.count());
    }
    void operator()(const Parked& parked) const {
        to.mutable_parked()->set_sentence(clipped(parked.sentence));
    }
    void operator()(const Elsewhere& elsewhere) const {
        to.mutable_elsewhere()->set_address(elsewhere.address);
        to.mutable_elsewhere()->set_port(elsewhere.port);
    }
    void operator()(const Stop& stop) const {
        to.mutable_stop()->set_generation(stop.generation.value);
        to.mutable_stop()->set_signal(stop.signal);
        to.mutable_stop()->set_reason(clipped(stop.reason));
    }
    void operator()(const Finished& finished) const {
        write(finished.ending, *to.mutable_finished()->mutable_ending());
    }
    void operator()(const Refused& refused) const {
        to.mutable_refused()->set_sentence(clipped(refused.sentence));
    }
};

// ---- from bytes

Welcome read(const Place& place, const link::Welcome& from) {
    Welcome welcome;
    welcome.leader = rendezvous::read(place.at("leader"), from.leader());
    welcome.times = rendezvous::read(place.at("times"), from.times());
    if (place.count("order", from.order().size(), kMaxNodes))
        for (const std::string& name : from.order())
            welcome.order.push_back(place.text("order", name, 1, kMaxName));
    welcome.max_nodes = place.small("max_nodes", from.max_nodes(), 1, kMaxWorld);
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
    return ack;
}

Assigned read(const Place& place, const link::Assigned& from) {
    Assigned assigned;
    assigned.entry = EntryNumber{place.integer("entry", from.entry(), 0, kMaxNumber)};
    assigned.assignment = rendezvous::read(place.at("assignment"), from.assignment());
    assigned.beat = place.integer("beat", from.beat(), 0, kMaxNumber);
    assigned.remaining = from.has_remaining()
                             ? place.duration("remaining", from.remaining(), -kFar, kFar)
                             : Duration::max();
    return assigned;
}

Elsewhere read(const Place& place, const link::Elsewhere& from) {
    return {place.text("address", from.address(), 0, kMaxName),
            static_cast<std::uint16_t>(place.integer("port", from.port(), 0, UINT16_MAX))};
}

Stop read(const Place& place, const link::Stop& from) {
    return {read_generation(place, "generation", from.generation()),
            place.small("signal", from.signal(), 0, 64),
            place.text("reason", from.reason(), 0, kMaxText)};
}

Finished read(const Place& place, const link::Finished& from) {
    return {rendezvous::read(place.at("ending"), from.ending())};
}

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
                Place(fault, "Parked").text("sentence", from.parked().sentence(), 0, kMaxText)};
        case link::ToNode::kElsewhere:
            return read(Place(fault, "Elsewhere"), from.elsewhere());
        case link::ToNode::kStop:
            return read(Place(fault, "Stop"), from.stop());
        case link::ToNode::kFinished:
            return read(Place(fault, "Finished"), from.finished());
        case link::ToNode::kRefused:
            return Refused{
                Place(fault, "Refused").text("sentence", from.refused().sentence(), 0, kMaxText)};
        case link::ToNode::kChallenge:
        case link::ToNode::kProof:
            Place(fault, "ToNode").complain("message", "belongs to a handshake, which is over");
            return Parked{};
        case link::ToNode::MESSAGE_NOT_SET:
            break;
    }
    Place(fault, "ToNode").complain("message", "none that I know; is the other side newer?");
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
