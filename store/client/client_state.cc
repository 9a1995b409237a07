// The rules for connections that were lost.
#include "store/client/client_state.h"

namespace ddprun::store {

std::string address_text(const std::string& host, std::uint16_t port) {
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Error gave_up_connecting(const Error& last, Timeout timeout) {
    return Error(ErrorCode::unavailable,
                 last.sentence() + " (tried for " + seconds_text(timeout) + ")");
}

void ClientState::connected(const Peer& peer) {
    peer_ = peer;
    connected_ = true;
    unconfirmed_ = false;
    lost_.clear();
}

// A connection that was dropped in good order, or never existed, can be opened by any call.
bool ClientState::may_connect(const Task& task) const {
    return lost_.empty() || (is_repeatable(task) && !unconfirmed_);
}

Error ClientState::refusal() const {
    return said(
        Error(ErrorCode::closed,
              "not usable any more since: " + lost_ +
                  (unconfirmed_ ? "; what was written just before may not have arrived" : "")));
}

void ClientState::note(Operation operation, const Call& call, const Result<Answer>& result) {
    if (call.spoiled()) lost_ = result.error().sentence();
    if (call.spoiled() || call.dropped()) {
        connected_ = false;
    } else if (result || result.error().code() == ErrorCode::timed_out) {
        // The server answers in order: any answer shows that everything before it has arrived. A
        // timed-out wait was answered, too (by the answer to CANCEL_WAIT).
        unconfirmed_ = !has_answer(operation);
    }
}

void ClientState::abandoned() {
    connected_ = false;
    lost_ = "a call was given up before its answer";
    unconfirmed_ = true;  // it may have been a write
}

Error ClientState::no_new_one(const Error& why) const {
    return said(Error(ErrorCode::closed,
                      "the connection was lost, and reconnecting failed: " + why.sentence()));
}

Error ClientState::said(const Error& error) const {
    return Error(error.code(), "store at " + address_ + ": " + error.sentence());
}

}  // namespace ddprun::store
