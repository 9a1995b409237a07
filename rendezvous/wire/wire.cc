// Puts messages into their envelopes and takes them out.
#include "rendezvous/wire/wire.h"

#include "proto/agent_link.pb.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/message_fields.h"
#include "rendezvous/wire/protobuf_fields.h"

namespace ddprun::rendezvous {

std::string TextBudget::take(const std::string& text) {
    std::string part = text.substr(0, std::min(left_, kMaxText));
    left_ -= std::min(left_, part.size() + 8);  // an empty text still takes some bytes on the wire
    return part;
}

namespace {

// Half of kNodeFrameLimit; the rest is for everything else in a Report.
constexpr std::size_t kReportTexts = std::size_t{2} << 20;
// All other messages with output of workers (Ending, Facts) have to fit into a node's frame, an
// Ending into a ledger's entry too.
constexpr std::size_t kTexts = std::size_t{1} << 20;

template <class Envelope, class Variant>
std::string encode_in(const Variant& message) {
    Envelope to;
    std::visit(
        [&to]<class T>(const T& value) {
            TextBudget budget(std::same_as<T, Report> ? kReportTexts : kTexts);
            const auto place = enveloped(std::type_identity<T>{});
            write_fields(value, *place.field.mutable_field(to), budget);
        },
        message);
    return to.SerializeAsString();
}

// Reads the alternative whose field is set. At most one is: they are a oneof.
template <class Variant, class Envelope, std::size_t... kIndex>
std::optional<Variant> read_any(Fault& fault, const Envelope& from,
                                std::index_sequence<kIndex...>) {
    std::optional<Variant> message;
    const auto try_one = [&]<class T>(std::type_identity<T> type) {
        const auto place = enveloped(type);
        if (place.field.has(from))
            message = read_fields<T>(Place(fault, place.name), place.field.get(from));
    };
    (try_one(std::type_identity<std::variant_alternative_t<kIndex, Variant>>{}), ...);
    return message;
}

// `unexpected` complains about a message of the handshake, which has no place here.
template <class Variant, class Envelope>
Result<Variant> decode_from(std::string_view bytes, std::size_t limit, const char* name,
                            void (*unexpected)(const Envelope&, const Place&)) {
    Envelope from;
    // The size is checked first: protobuf takes an int.
    if (bytes.size() > limit || !from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Error(ErrorCode::malformed, std::string(name) + ": these " +
                                               std::to_string(bytes.size()) +
                                               " bytes are no protobuf message");
    Fault fault;
    auto message =
        read_any<Variant>(fault, from, std::make_index_sequence<std::variant_size_v<Variant>>{});
    if (!message) {
        const Place place(fault, name);
        unexpected(from, place);
        // A field of a newer version, or none at all.
        place.complain("message", "unknown; does the other side run a newer version?");
    }
    if (fault.first) return *fault.first;
    return std::move(*message);
}

}  // namespace

std::string encode(const ToLeader& message) { return encode_in<link::ToLeader>(message); }
std::string encode(const ToNode& message) { return encode_in<link::ToNode>(message); }

// The gate reads Proofs. One that comes later is out of place.
Result<ToLeader> decode_to_leader(std::string_view bytes) {
    return decode_from<ToLeader, link::ToLeader>(
        bytes, kNodeFrameLimit, "ToLeader", [](const link::ToLeader& from, const Place& place) {
            if (from.has_proof()) place.complain("proof", "comes once, in answer to a Challenge");
        });
}

Result<ToNode> decode_to_node(std::string_view bytes) {
    return decode_from<ToNode, link::ToNode>(
        bytes, kLeaderFrameLimit, "ToNode", [](const link::ToNode& from, const Place& place) {
            if (from.has_challenge() || from.has_proof())
                place.complain("message", "belongs to a handshake, which is over");
        });
}

}  // namespace ddprun::rendezvous
