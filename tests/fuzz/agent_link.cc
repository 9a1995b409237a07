// Fuzz target: the agent link under any bytes. The frame reader must give the same frames whatever
// the pieces, and a message that passes the checks must be the same after it is encoded and decoded
// again. Anybody who reaches the port may send such bytes before a proof is asked for.
//
// The first byte of the input says how the rest is taken: 0 means the body of one message, another
// number a stream in pieces of so many bytes.
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

// What is refused must say why. What is accepted must be the same after a round trip, or two nodes
// could understand one message differently.
template <class Message, class Decode>
void check_trip(const ddprun::Result<Message>& message, Decode decode) {
    if (!message) {
        require(message.error().code() == ddprun::ErrorCode::malformed);
        return require(!message.error().sentence().empty());
    }
    const auto again = decode(encode(*message));
    require(again.has_value() && *again == *message);
}

// The messages of the handshake use the same bytes as those of the machines. Each decoder must
// refuse what belongs to another.
void check_handshake(std::string_view body) {
    // An opening is a message to the leader with a nonce. What the decoder of openings accepts, the
    // decoder of messages must accept, too.
    const auto opening = decode_opening(body);
    require(opening.has_value() <= decode_to_leader(body).has_value());
    if (opening) require(opening->nonce.size() <= kNonceSize);
    if (const auto proof = decode_node_proof(body)) {
        require(proof->mac.size() == kProofSize);
        require(decode_node_proof(encode_node_proof(*proof)).value() == *proof);
        require(!decode_to_leader(body));  // the machines never see a proof
    }
    const auto word = decode_leader_word(body);
    if (!word) return;
    if (const auto* challenge = std::get_if<Challenge>(&*word)) {
        require(challenge->nonce.size() == kNonceSize);
        // The node opens this file. A path would let a false leader make it read any file.
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
    // No bytes may pass as sealed without the secret. One seal serves all inputs, because it
    // changes only when it opens one.
    static Seal seal("a secret that is none", Side::node, Transcript{});
    std::string_view sealed = body;
    require(!seal.open(sealed));
}

// All that one reading of a stream gives. Two readings of the same bytes are compared as a whole.
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
            // Only the begin of the sentence: the rest quotes the bytes that have arrived so far,
            // and that depends on the pieces.
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
