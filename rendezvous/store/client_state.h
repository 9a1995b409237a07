// What a store client knows between its calls, and what follows from it: may this call use the
// connection, may it open a new one, may it be repeated.
//
// Pure; both clients keep one. A connection that is lost is not simply opened again: what was
// written without an answer may be lost with it, and a caller who reads on as if nothing had been
// would never know. So a new connection is opened only by a call that reads (tasks.h), and only
// when every write before it has been followed by an answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "rendezvous/store/call.h"

namespace ddprun::store {

// "host:port", an IPv6 address in brackets.
std::string address_text(const std::string& host, std::uint16_t port);

// How both clients try to connect: the pauses between the tries, and how long one answer to the
// greeting may take of which only the end or silence says that the dialect is another.
inline constexpr Timeout kFirstRetry{20};
inline constexpr Timeout kLongestRetry{500};
inline constexpr Timeout kAnswerToGreeting{5'000};

Error gave_up_connecting(const Error& last, Timeout timeout);

class ClientState {
  public:
    ClientState(const std::string& host, std::uint16_t port, Dialect dialect)
        : address_(address_text(host, port)), peer_{dialect, false} {}

    const Peer& peer() const { return peer_; }
    const std::string& address() const { return address_; }

    void connected(const Peer& peer);
    bool is_connected() const { return connected_; }
    // With no connection: whether this call may open one.
    bool may_connect(const Task& task) const;
    Error refusal() const;  // when it may not

    // After a call. If is_connected() is false then, the connection is to be closed.
    void note(Operation operation, const Call& call, const Result<Answer>& result);
    // The call was lost with the connection, and may be made again on a new one.
    bool may_repeat(const Task& task) const {
        return !connected_ && !lost_.empty() && may_connect(task);
    }

    // A call was given up half-way, with its connection.
    void abandoned();
    Error no_new_one(const Error& why) const;

    // The error with the store's name in front.
    Error said(const Error& error) const;

  private:
    std::string address_;
    Peer peer_;
    bool connected_ = false;
    bool unconfirmed_ = false;  // written, and nothing answered since
    std::string lost_;  // why the connection is gone; empty: closed by ourselves, in good order
};

}  // namespace ddprun::store
