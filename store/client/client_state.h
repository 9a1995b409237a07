// What a store client knows between its calls, and the rules that follow from it: may this call use
// the connection, may it open a new one, may it be repeated.
//
// Pure; each of the two clients has one. A lost connection is not simply opened again. What was
// written without an answer may be lost with it, and a caller that goes on reading would never
// notice. So only a call that reads (tasks.h) opens a new connection, and only if an answer has
// followed every write before it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "store/client/call.h"

namespace ddprun::store {

// "host:port"; an IPv6 address stands in brackets.
std::string address_text(const std::string& host, std::uint16_t port);

// How a client connects: the pause after the first attempt and the longest pause, and how long
// an answer to the greeting may take where only silence or the end of the connection shows that the
// dialect is another.
inline constexpr Timeout kFirstRetry{20};
inline constexpr Timeout kLongestRetry{500};
inline constexpr Timeout kAnswerToGreeting{5'000};

// The last attempt's error, with the time for which it was tried.
Error gave_up_connecting(const Error& last, Timeout timeout);

class ClientState {
  public:
    ClientState(const std::string& host, std::uint16_t port, Dialect dialect)
        : address_(address_text(host, port)), peer_{dialect, false} {}

    const Peer& peer() const { return peer_; }
    const std::string& address() const { return address_; }

    void connected(const Peer& peer);
    bool is_connected() const { return connected_; }
    // Without a connection: whether this call may open one.
    bool may_connect(const Task& task) const;
    Error refusal() const;  // the error of a call that may not

    // Takes note of a call's result. If is_connected() is false afterwards, the caller closes the
    // connection.
    void note(Operation operation, const Call& call, const Result<Answer>& result);
    // The call was lost with its connection, and may be made again on a new one.
    bool may_repeat(const Task& task) const {
        return !connected_ && !lost_.empty() && may_connect(task);
    }

    // A call was given up before its end, and its connection with it.
    void abandoned();
    Error no_new_one(const Error& why) const;

    // The error with the store's address in front.
    Error said(const Error& error) const;

  private:
    std::string address_;
    Peer peer_;
    bool connected_ = false;
    bool unconfirmed_ = false;  // something was written, and nothing has been answered since
    std::string lost_;          // why the connection is gone; empty: we closed it in good order
};

}  // namespace ddprun::store
