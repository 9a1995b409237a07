// One call after the other, and what may be done with its connection.
#include "rendezvous/link/client.h"

#include <fcntl.h>

#include <utility>

#include "rendezvous/link/client_call.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr int kLines = 8;

// A log that says each sentence once while it repeats, and a few in all: a node calls every 50 ms,
// and a stranger on the leader's port must not fill its log.
Log said_once(Log log) {
    struct Said {
        std::string last;
        int lines = 0;
    };
    return [log = std::move(log), said = std::make_shared<Said>()](const Note& note) {
        if (note.sentence == said->last || said->lines >= kLines) return;
        said->last = note.sentence;
        ++said->lines;
        log(note);
    };
}

}  // namespace

struct Client::State {
    asio::io_context& loop;
    Log log;
    Callbacks callbacks;
    Secrets* secrets;
    bool has_met = false;  // a rendezvous has accepted this node, in one of the calls until now
    std::shared_ptr<ClientCall> call = nullptr;

    // The connection; null while it is not up.
    Link* link() const { return call ? call->link() : nullptr; }
};

Client::Client(asio::io_context& loop, Log log, Callbacks callbacks, Secrets* secrets)
    : state_(std::make_unique<State>(
          State{loop, said_once(std::move(log)), std::move(callbacks), secrets})) {}

Client::~Client() { close(); }

void Client::connect(std::vector<CallTarget> candidates, ToLeader opening, Time deadline,
                     bool once) {
    close();
    state_->call = std::make_shared<ClientCall>(
        state_->loop, state_->log, state_->callbacks,
        ClientCall::Order{std::move(candidates), std::move(opening), deadline, once},
        state_->secrets, state_->has_met);
    state_->call->start();
}

void Client::send(const ToLeader& message) {
    if (Link* link = state_->link()) link->send(encode(message));
}

void Client::close() {
    const auto call = std::exchange(state_->call, nullptr);
    if (!call) return;
    call->stop();
    state_->has_met = call->has_met();
}

int Client::part() {
    Link* link = state_->link();
    if (!link) return -1;
    const int kept = ::fcntl(link->native_handle(), F_DUPFD_CLOEXEC, 3);
    // The duplicate keeps the connection open when our descriptor is closed.
    link->drop();
    close();
    return kept;
}

bool Client::is_up() const { return state_->link() != nullptr; }

std::string Client::gone_frame(const NodeId& node) const {
    const Link* link = state_->link();
    return link ? link->last_frame(encode(ToLeader(Gone{node}))) : std::string();
}

int Client::native_handle() const {
    Link* link = state_->link();
    return link ? link->native_handle() : -1;
}

}  // namespace ddprun::rendezvous
