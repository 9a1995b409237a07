// Calls to other services, each with a client of its own.
#include "rendezvous/service/neighbours.h"

#include <utility>

#include "base/system/boot_clock.h"

namespace ddprun::rendezvous {

Neighbours::Neighbours(boost::asio::io_context& loop, Log log, Hello self, Secrets* secrets,
                       OnCalled on_called)
    : loop_(loop),
      log_(std::move(log)),
      inquire_{std::move(self)},
      secrets_(secrets),
      on_called_(std::move(on_called)) {}

void Neighbours::call(const Call& call) {
    const std::int64_t number = ++newest_call_;
    const NodeId node = call.peer.node;
    Client::Callbacks callbacks;
    callbacks.on_up = [](const std::string&) {};
    // Any other message than Standing (a refusal, for example) ends the call without an answer.
    callbacks.on_message = [this, number, node](const ToNode& message) {
        const auto* standing = std::get_if<Standing>(&message);
        end_call(number, standing ? std::optional(Called{node, *standing}) : std::nullopt);
    };
    callbacks.on_lost = [this, number](const Error&) { end_call(number, std::nullopt); };
    auto client = std::make_unique<Client>(loop_, log_, std::move(callbacks), secrets_);
    client->connect({{call.peer.address, call.peer.port}}, inquire_, boot_now() + call.within,
                    true);
    calls_.emplace(number, std::move(client));
}

// `answer` is passed by value: erasing the client also destroys the callback that holds the
// original.
void Neighbours::end_call(std::int64_t number, std::optional<Called> answer) {
    // The connection may end after the answer; only the first one counts.
    if (calls_.erase(number) > 0 && answer) on_called_(*answer);
}

void Neighbours::stand_by(std::optional<Peer> next) {
    standby_.reset();
    next_ = std::move(next);
    standby_changed();
    if (next_) connect_standby();
}

// The standby says Inquire once, so that it is no silent stranger at the other gate, and then
// nothing more.
void Neighbours::connect_standby() {
    Client::Callbacks callbacks;
    callbacks.on_up = [this](const std::string&) { standby_changed(); };
    callbacks.on_message = [](const ToNode&) {};
    callbacks.on_lost = [this](const Error&) {
        // The successor is still wanted, so its link is made again.
        if (next_) connect_standby();
        standby_changed();
    };
    standby_ = std::make_unique<Client>(loop_, log_, std::move(callbacks), secrets_);
    standby_->connect({{next_->address, next_->port}}, inquire_, kNever);
}

int Neighbours::standby_handle() const { return standby_ ? standby_->native_handle() : -1; }

std::string Neighbours::standby_gone_frame(const NodeId& node) const {
    return standby_ ? standby_->gone_frame(node) : std::string();
}

void Neighbours::close() {
    calls_.clear();
    next_.reset();
    standby_.reset();
}

}  // namespace ddprun::rendezvous
