// The stages of a caller at the gate, and what unknown callers may cost.
#include "rendezvous/service/gate.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/line_limit.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/secret/secret.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::chrono::seconds kProvedWithin{10};

}  // namespace

struct Gate::State : std::enable_shared_from_this<State> {
    using Id = std::int64_t;  // grows with each caller

    struct Caller {
        std::shared_ptr<Link> link;
        std::optional<ToLeader> opening;  // when it has come
        Transcript transcript;            // when it has been asked for a proof
        SecretText secret;                // the one it was asked for
    };

    State(Secrets* secrets, Config config, Log log, Admit admit)
        : secrets(secrets),
          config(std::move(config)),
          log(std::move(log)),
          admit(std::move(admit)) {}

    void take(Link::Socket socket);
    Link::Handlers handlers(Id id);
    void make_room();
    void frame_came(Id id, std::string_view body);
    void opened(Id id, Caller& caller, std::string_view body);
    void ask(Id id, const Opening& opening, const Result<OwnSecret>& own);
    void proved(Id id, Caller& caller, std::string_view body);
    void pass(Id id, ToLeader first);
    void refuse(Id id, const std::string& sentence);
    void garbage(Id id, const Error& why);
    void link_ended(Id id, const Error& why);
    void say(Note::Level level, const std::string& who, const std::string& what = {});
    void close();

    Secrets* const secrets;
    const Config config;
    const Log log;
    const Admit admit;
    Id newest = 0;
    std::map<Id, Caller> callers;
    std::set<Id> silent;                      // those that have sent nothing
    std::set<std::shared_ptr<Link>> leaving;  // refused; their sentence is on its way
    LineLimit lines;
};

void Gate::State::take(Link::Socket socket) {
    make_room();
    const Id id = ++newest;
    const auto link = std::make_shared<Link>(std::move(socket), kFirstFrameLimit, handlers(id));
    callers.emplace(id, Caller{link, {}, {}, {}});
    silent.insert(id);
    link->start(kProvedWithin);
}

Link::Handlers Gate::State::handlers(Id id) {
    const auto weak = weak_from_this();
    return {[weak, id](std::string_view body) {
                if (const auto self = weak.lock()) self->frame_came(id, body);
            },
            [weak, id](const Error& why) {
                if (const auto self = weak.lock()) self->link_ended(id, why);
            }};
}

// Closes one caller if the room is full. A silent one goes first: it has not shown that it is a
// node.
void Gate::State::make_room() {
    if (leaving.size() >= config.room) {  // they have had time to read their sentence
        (*leaving.begin())->drop();
        leaving.erase(leaving.begin());
    }
    if (callers.size() < config.room) return;
    const Id id = silent.empty() ? callers.begin()->first : *silent.begin();
    const auto link = callers.at(id).link;
    // drop() calls nobody, so the end is reported here.
    link->drop();
    link_ended(id, Error(ErrorCode::timed_out,
                         link->peer() + " had to make room: " + std::to_string(config.room) +
                             " connections wait to be admitted"));
}

void Gate::State::frame_came(Id id, std::string_view body) {
    const auto found = callers.find(id);
    if (found == callers.end()) return;  // it has been closed already
    Caller& caller = found->second;
    // The leader's nonce exists once the Challenge is sent, so this frame must be the Proof.
    if (!caller.transcript.leader_nonce.empty()) return proved(id, caller, body);
    if (caller.opening) return garbage(id, Error(ErrorCode::malformed, "sent a message too early"));
    opened(id, caller, body);
}

void Gate::State::opened(Id id, Caller& caller, std::string_view body) {
    auto opening = decode_opening(body);
    if (!opening) return garbage(id, opening.error());
    if (!secrets) return pass(id, std::move(opening->message));
    // Nothing is judged yet: without the secret the gate cannot even ask for a proof.
    caller.opening = opening->message;  // its first message; the proof decides whether it counts
    silent.erase(id);
    secrets->own([weak = weak_from_this(), id, opening = *opening](const Result<OwnSecret>& own) {
        if (const auto self = weak.lock()) self->ask(id, opening, own);
    });
}

// The secret is known: sends the Challenge, or admits the caller if no proof is asked for.
void Gate::State::ask(Id id, const Opening& opening, const Result<OwnSecret>& own) {
    const auto found = callers.find(id);
    if (found == callers.end()) return;
    Caller& caller = found->second;
    if (!own) return refuse(id, own.error().sentence());
    if (own->secret.empty()) return pass(id, opening.message);
    const Hello* hello = caller_of(opening.message);
    // A Gone comes without nonce, so it cannot be proved on a connection of its own.
    if (!hello) return garbage(id, Error(ErrorCode::malformed, "does not begin with a Hello"));
    // Refused with a sentence rather than closed: most likely this node runs another version.
    if (opening.scheme != kIdentityScheme || opening.nonce.size() != kNonceSize)
        return refuse(id, "node " + hello->node.name + " runs ddprun " + hello->version +
                              " with identity scheme " + std::to_string(opening.scheme) +
                              "; the rendezvous on " + config.self.name + " has scheme " +
                              std::to_string(kIdentityScheme) +
                              "; use the same version on all nodes");
    caller.secret = own->secret;
    // Both nonces and both identities go into the proofs, so a proof is worth nothing on another
    // connection.
    caller.transcript = {hello->run_id, hello->requeue, hello->node,
                         config.self,   opening.nonce,  random_bytes(kNonceSize)};
    caller.link->send(encode(Challenge{kIdentityScheme, config.self, caller.transcript.leader_nonce,
                                       own->credential, own->file}));
}

void Gate::State::proved(Id id, Caller& caller, std::string_view body) {
    const auto proof = decode_node_proof(body);
    if (!proof) return garbage(id, proof.error());
    const Transcript& transcript = caller.transcript;
    if (!is_proof(proof->mac, caller.secret, Side::node, transcript))
        return refuse(id, "node " + caller_of(*caller.opening)->node.name +
                              " does not have the secret of this job (--secret-file, MUNGE, the "
                              "ledger's folder)");
    // The node seals from its Proof on. Our own Proof goes out before our first sealed frame.
    caller.link->unseal(Seal(caller.secret, Side::node, transcript));
    caller.link->send(encode_leader_proof({prove(caller.secret, Side::leader, transcript)}));
    caller.link->seal(Seal(caller.secret, Side::leader, transcript));
    pass(id, std::move(*caller.opening));
}

void Gate::State::pass(Id id, ToLeader first) {
    const auto self = shared_from_this();  // admit() may destroy the gate
    const auto link = callers.at(id).link;
    callers.erase(id);
    silent.erase(id);
    admit(link, std::move(first));
}

void Gate::State::refuse(Id id, const std::string& sentence) {
    const auto link = callers.at(id).link;
    callers.erase(id);
    silent.erase(id);
    say(Note::Level::warn, "refused " + link->peer() + ": ", sentence);
    link->send(encode(ToNode(Refused{sentence})));
    // Kept until the caller has read the sentence, or its time is up.
    leaving.insert(link);
    link->finish();
}

void Gate::State::garbage(Id id, const Error& why) {
    const auto link = callers.at(id).link;
    link->drop();
    link_ended(id, Error(why.code(), "from " + link->peer() + ": " + why.sentence()));
}

void Gate::State::link_ended(Id id, const Error& why) {
    silent.erase(id);
    if (callers.erase(id) == 0) {
        std::erase_if(leaving, [](const auto& one) { return one->is_over(); });
        return;
    }
    // A caller that simply leaves is not worth a line. One that does not speak the agent link is.
    const bool stranger = why.code() != ErrorCode::closed;
    say(stranger ? Note::Level::info : Note::Level::debug, "connection closed: " + why.sentence());
}

// Strangers must not be able to fill the log. One that asks again calls from another port.
void Gate::State::say(Note::Level level, const std::string& who, const std::string& what) {
    const std::string sentence = who + what;
    if (level == Note::Level::debug) return log({level, sentence});
    const LineLimit::Said said = lines.say(boot_now(), what);
    if (said.unsaid > 0)
        log({Note::Level::warn,
             std::to_string(said.unsaid) +
                 " more connections were refused or closed before they had proved themselves"});
    if (said.allowed) log({level, sentence});
}

void Gate::State::close() {
    for (const auto& [id, caller] : callers) caller.link->drop();
    for (const auto& link : leaving) link->drop();
    callers.clear();
    silent.clear();
    leaving.clear();
}

Gate::Gate(Secrets* secrets, Config config, Log log, Admit admit)
    : state_(
          std::make_shared<State>(secrets, std::move(config), std::move(log), std::move(admit))) {}

Gate::~Gate() { close(); }

void Gate::prepare() {
    if (state_->secrets) state_->secrets->own([](const Result<OwnSecret>&) {});
}

void Gate::take(Link::Socket socket) { state_->take(std::move(socket)); }

void Gate::close() { state_->close(); }

std::size_t Gate::callers() const { return state_->callers.size(); }

}  // namespace ddprun::rendezvous
