// Encodes and decodes Opening, Challenge and Proof.
#include "rendezvous/identity/handshake_messages.h"

#include <algorithm>

#include "proto/agent_link.pb.h"
#include "rendezvous/identity/identity.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/model_fields.h"
#include "rendezvous/wire/protobuf_fields.h"

namespace ddprun::rendezvous {

// MUNGE's credentials are below 400 bytes for a secret of our size.
constexpr std::size_t kMaxCredential = 4096;
constexpr int kMaxScheme = 1000;

void each_field(auto& v, Is<Challenge> auto& challenge) {
    v(DDPRUN_FIELD(scheme), challenge.scheme, Whole{1, kMaxScheme});
    v(DDPRUN_FIELD(leader), challenge.leader, Any{});
    v(DDPRUN_FIELD(nonce), challenge.nonce, Text{kNonceSize, kNonceSize});
    v(DDPRUN_FIELD(credential), challenge.credential, Text{0, kMaxCredential});
    v(DDPRUN_FIELD(file), challenge.file, kName);
}

void each_field(auto& v, Is<Proof> auto& proof) {
    v(DDPRUN_FIELD(mac), proof.mac, Text{kProofSize, kProofSize});
}

namespace {

// A file name without slashes and without a dot in front. Otherwise a Challenge could make a node
// open a file outside of the ledger's folder.
bool is_plain_name(std::string_view name) {
    return (name.empty() || name.front() != '.') &&
           std::all_of(name.begin(), name.end(), [](unsigned char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
           });
}

Challenge read(const Place& place, const link::Challenge& from) {
    auto challenge = read_fields<Challenge>(place, from);
    if (!is_plain_name(challenge.file)) place.complain("file", "is not a plain file name");
    // Two sources would leave open which one counts.
    if (!challenge.file.empty() && !challenge.credential.empty())
        place.complain("file", "comes with a credential; one secret is enough");
    return challenge;
}

template <class Message>
bool parse(Message& message, std::string_view bytes, std::size_t limit) {
    return bytes.size() <= limit &&
           message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::string encode_opening(const ToLeader& opening, const std::string& nonce) {
    // Nonce and scheme are appended as a second message of the same type. In protobuf, two messages
    // one after the other are the same as one message with the fields of both.
    link::ToLeader more;
    link::Hello& hello =
        std::holds_alternative<Inquire>(opening)   ? *more.mutable_inquire()->mutable_as()
        : std::holds_alternative<Operate>(opening) ? *more.mutable_operate()->mutable_as()
                                                   : *more.mutable_hello();
    hello.set_nonce(nonce);
    hello.set_scheme(kIdentityScheme);
    return encode(opening) + more.SerializeAsString();
}

std::string encode(const Challenge& challenge) {
    link::ToNode to;
    TextBudget budget(0);  // none of its texts is output of workers
    write_fields(challenge, *to.mutable_challenge(), budget);
    return to.SerializeAsString();
}

std::string encode_node_proof(const Proof& proof) {
    link::ToLeader to;
    to.mutable_proof()->set_mac(proof.mac);
    return to.SerializeAsString();
}

std::string encode_leader_proof(const Proof& proof) {
    link::ToNode to;
    to.mutable_proof()->set_mac(proof.mac);
    return to.SerializeAsString();
}

// The bytes are parsed twice: by wire.h, which checks the message itself, and here for nonce and
// scheme.
Result<Opening> decode_opening(std::string_view bytes) {
    auto message = decode_to_leader(bytes);
    if (!message) return message.error();
    Opening opening{std::move(*message), {}, 0};
    link::ToLeader from;
    if (!parse(from, bytes, kNodeFrameLimit) || !caller_of(opening.message)) return opening;
    Fault fault;
    const Place place(fault, "Hello");
    const link::Hello& hello = from.has_inquire()   ? from.inquire().as()
                               : from.has_operate() ? from.operate().as()
                                                    : from.hello();
    opening.nonce = place.text("nonce", hello.nonce(), 0, kNonceSize);
    opening.scheme = place.small("scheme", hello.scheme(), 0, kMaxScheme);
    if (fault.first) return *fault.first;
    return opening;
}

Result<Proof> decode_node_proof(std::string_view bytes) {
    link::ToLeader from;
    if (!parse(from, bytes, kNodeFrameLimit) || !from.has_proof())
        return Error(ErrorCode::malformed, "ToLeader: not the Proof that was asked for");
    Fault fault;
    auto proof = read_fields<Proof>(Place(fault, "Proof"), from.proof());
    if (fault.first) return *fault.first;
    return proof;
}

Result<LeaderWord> decode_leader_word(std::string_view bytes) {
    link::ToNode from;
    // wire.h will say what is wrong with it.
    if (!parse(from, bytes, kLeaderFrameLimit)) return LeaderWord();
    Fault fault;
    LeaderWord word;
    if (from.has_challenge()) word = read(Place(fault, "Challenge"), from.challenge());
    if (from.has_proof()) word = read_fields<Proof>(Place(fault, "Proof"), from.proof());
    if (fault.first) return *fault.first;
    return word;
}

}  // namespace ddprun::rendezvous
