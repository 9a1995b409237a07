// The agent link under any bytes: the frame reader gives the same frames whatever the pieces, and
// what passes the checks of wire.h and wire_identity.h is the same message after another trip.
//
// The first byte of the input says how the rest is taken: 0: as the body of one message; else as a
// stream that comes in pieces of so many bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/identity/identity.h"
#include "rendezvous/wire/frame.h"

namespace {

using namespace ddprun::rendezvous;

void require(bool holds) {
    if (!holds) std::abort();
}

template <class Message, class Decode>
void check_trip(const ddprun::Result<Message>& message, Decode decode) {
    if (!message) {
        require(message.error().code() == ddprun::ErrorCode::malformed);
        return require(!message.error().sentence().empty());
    }
    const auto again = decode(encode(*message));
    require(again.has_value() && *again == *message);
}

void check_handshake(std::string_view body) {
    const auto opening = decode_opening(body);
    require(opening.has_value() <= decode_to_leader(body).has_value());
    if (opening) require(opening->nonce.size() <= kNonceSize);
    if (const auto proof = decode_node_proof(body)) {
        require(proof->mac.size() == kProofSize);
        require(decode_node_proof(encode_node_proof(*proof)).value() == *proof);
        require(!decode_to_leader(body));  // the machines never see one
    }
    const auto word = decode_leader_word(body);
    if (!word) return;
    if (const auto* challenge = std::get_if<Challenge>(&*word)) {
        require(challenge->nonce.size() == kNonceSize);
        require(challenge->file.find('/') == std::string::npos &&
                !challenge->file.starts_with('.'));
        require(std::get<Challenge>(decode_leader_word(encode(*challenge)).value()) == *challenge);
    }
    if (word->index() != 0) require(!decode_to_node(body));
}

void check_body(std::string_view body) {
    check_trip(decode_to_leader(body), decode_to_leader);
    check_trip(decode_to_node(body), decode_to_node);
    check_handshake(body);
    static Seal seal("a secret that is none", Side::node, Transcript{});
    std::string_view sealed = body;
    require(!seal.open(sealed));
}

struct Frames {
    std::vector<std::string> bodies;
    std::string error;
    bool operator==(const Frames&) const = default;
};

Frames read(std::string_view bytes, std::size_t piece) {
    Frames frames;
    FrameReader reader(kFirstFrameLimit);
    while (!bytes.empty() && frames.error.empty()) {
        reader.add(bytes.substr(0, piece));
        bytes.remove_prefix(std::min(piece, bytes.size()));
        while (frames.error.empty()) {
            auto body = reader.next();
            if (!body) frames.error = body.error().sentence().substr(0, 20);
            if (!body || !*body) break;
            require((*body)->size() <= kFirstFrameLimit);
            frames.bodies.push_back(std::move(**body));
        }
    }
    return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] == 0) {
        check_body(rest);
        return 0;
    }
    const Frames frames = read(rest, data[0]);
    require(frames == read(rest, rest.size() + 1));
    for (const std::string& body : frames.bodies) check_body(body);
    return 0;
}
