// The stages of the node's half of the handshake.
#include "rendezvous/link/node_handshake.h"

#include <utility>
#include <vector>

#include "base/system/random_bytes.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/secret/secret.h"

namespace ddprun::rendezvous {

struct NodeHandshake::State : std::enable_shared_from_this<State> {
    enum class Phase {
        asked,     // the opening is sent
        deciding,  // whether to follow a leader that asks for no proof
        looking,   // for the secret that the Challenge names
        proved,    // our Proof is sent
        through,
        over
    };

    State(Secrets& secrets, std::shared_ptr<Link> link, ToLeader opening, bool believe_refusals,
          Handlers handlers)
        : secrets(secrets),
          link(std::move(link)),
          opening(std::move(opening)),
          believe_refusals(believe_refusals),
          handlers(std::move(handlers)) {}

    void take(std::string_view body);
    void first(std::string_view body);
    void challenged(const Challenge& challenge);
    void answer(const Challenge& challenge, const Result<SecretText>& found);
    void leader_proves(const Proof& proof);
    void unproven(std::string_view body);
    void decided(const Result<>& followed);
    void fail_as_refused();
    void fail(const std::string& sentence, ErrorCode code = ErrorCode::refused);

    Secrets& secrets;
    const std::shared_ptr<Link> link;
    const ToLeader opening;
    const bool believe_refusals;
    const Handlers handlers;
    Phase phase = Phase::asked;
    Transcript transcript;
    SecretText secret;
    std::string refusal;  // sent without a proof
    // Messages that came while deciding; delivered in order if the leader is followed.
    std::vector<std::string> held_back;
};

void NodeHandshake::State::take(std::string_view body) {
    switch (phase) {
        case Phase::asked:
        case Phase::proved:
            return first(body);
        case Phase::deciding:
            held_back.emplace_back(body);
            return;
        case Phase::looking:
            // A leader has nothing to say between its Challenge and our Proof.
            return fail("sent a message too early", ErrorCode::malformed);
        case Phase::through:
            return handlers.on_message(body);
        case Phase::over:
            return;
    }
}

// The first frame after our opening, or after our Proof.
void NodeHandshake::State::first(std::string_view body) {
    const auto word = decode_leader_word(body);
    if (!word) return fail(word.error().sentence(), ErrorCode::malformed);
    const auto* challenge = std::get_if<Challenge>(&*word);
    const auto* proof = std::get_if<Proof>(&*word);
    if (challenge && phase == Phase::asked) return challenged(*challenge);
    if (proof && phase == Phase::proved) return leader_proves(*proof);
    // The right word at the wrong time: this is no peer of ours.
    if (challenge || proof)
        return fail("sent a handshake message at the wrong time", ErrorCode::malformed);
    unproven(body);
}

void NodeHandshake::State::challenged(const Challenge& challenge) {
    if (challenge.scheme != kIdentityScheme)
        return fail("asks for a proof with identity scheme " + std::to_string(challenge.scheme) +
                    "; this node has scheme " + std::to_string(kIdentityScheme) +
                    "; use the same version of ddprun on all nodes");
    phase = Phase::looking;
    secrets.of_leader(challenge, [weak = weak_from_this(), challenge](Result<SecretText> found) {
        if (const auto self = weak.lock()) self->answer(challenge, found);
    });
}

void NodeHandshake::State::answer(const Challenge& challenge, const Result<SecretText>& found) {
    // The look-up may take seconds (a program, a file system). The connection may be over by then.
    if (phase != Phase::looking || !link->is_open()) return;
    if (!found) return fail("is not followed: " + found.error().sentence());
    phase = Phase::proved;
    secret = *found;
    transcript.leader = challenge.leader;
    transcript.leader_nonce = challenge.nonce;
    // The Proof itself travels without a seal: the leader can check seals only when it has checked
    // the Proof.
    link->send(encode_node_proof({prove(secret, Side::node, transcript)}));
    link->seal(Seal(secret, Side::node, transcript));
}

void NodeHandshake::State::leader_proves(const Proof& proof) {
    // The leader must have the secret, too. Otherwise anybody on the port could ask nodes for
    // proofs.
    if (!is_proof(proof.mac, secret, Side::leader, transcript))
        return fail("does not have the secret that it asks for");
    link->unseal(Seal(secret, Side::leader, transcript));
    phase = Phase::through;
}

void NodeHandshake::State::unproven(std::string_view body) {
    const auto message = decode_to_node(body);
    if (!message) return fail(message.error().sentence(), ErrorCode::malformed);
    // The leader asked for our proof, so it must give its own before it says anything.
    if (const auto* refused = std::get_if<Refused>(&*message)) {
        refusal = refused->sentence;
        if (phase == Phase::proved || !believe_refusals) return fail_as_refused();
    }
    if (phase == Phase::proved) return fail("has not proved itself", ErrorCode::malformed);
    phase = Phase::deciding;
    held_back.emplace_back(body);
    secrets.of_open_leader([weak = weak_from_this()](const Result<>& followed) {
        if (const auto self = weak.lock()) self->decided(followed);
    });
}

void NodeHandshake::State::decided(const Result<>& followed) {
    if (phase != Phase::deciding || !link->is_open()) return;
    if (!followed && !refusal.empty()) return fail_as_refused();
    if (!followed) return fail("is not followed: " + followed.error().sentence());
    // A handler may destroy this object during the loop.
    const auto self = shared_from_this();
    phase = Phase::through;
    for (const std::string& body : std::exchange(held_back, {}))
        if (phase == Phase::through && link->is_open()) handlers.on_message(body);
}

// Anybody on the leader's port can send a refusal. A node with a secret goes on calling then.
void NodeHandshake::State::fail_as_refused() {
    fail("refuses, without a proof of its own: " + refusal);
}

void NodeHandshake::State::fail(const std::string& sentence, ErrorCode code) {
    if (phase == Phase::over) return;
    const auto self = shared_from_this();
    phase = Phase::over;
    handlers.on_failed(Error(code, link->peer() + " " + sentence));
}

NodeHandshake::NodeHandshake(Secrets& secrets, std::shared_ptr<Link> link, ToLeader opening,
                             bool believe_refusals, Handlers handlers)
    : state_(std::make_shared<State>(secrets, std::move(link), std::move(opening), believe_refusals,
                                     std::move(handlers))) {}

NodeHandshake::~NodeHandshake() { state_->phase = State::Phase::over; }

void NodeHandshake::start() {
    State& s = *state_;
    const Hello& hello = *caller_of(s.opening);
    // The node's half of the transcript. The leader's half comes with its Challenge.
    s.transcript.run_id = hello.run_id;
    s.transcript.requeue = hello.requeue;
    s.transcript.node = hello.node;
    s.transcript.node_nonce = random_bytes(kNonceSize);
    s.link->send(encode_opening(s.opening, s.transcript.node_nonce));
}

bool NodeHandshake::ended() {
    const auto state = state_;  // a handler may destroy this object
    if (state->phase != State::Phase::deciding || state->refusal.empty()) return false;
    state->fail_as_refused();
    return true;
}

void NodeHandshake::take(std::string_view body) {
    const auto state = state_;  // a handler may destroy this object
    state->take(body);
}

}  // namespace ddprun::rendezvous
