// How a client finds out which dialect a server speaks, without doing harm to it.
//
// No version of PyTorch's server says what it is, and a wrong guess is dangerous. A server of torch
// 2.1 or older reads the greeting of later versions as the length of a key, and a code of another
// dialect as another operation. So each dialect is tried with bytes that are harmless in all
// others, and is believed only after an answer that no other dialect gives:
//
//   VALIDATE, four times CANCEL_WAIT, GET of ""    2.2 and later: four ones, and then
//        eight zeros: a server that answers GET of a missing key (ours, and PyTorch's on libuv)
//        the end of the connection: PyTorch's older back end, which must not be asked for one
//   GETNUMKEYS, and after its answer CANCEL_WAIT   one: 2.1; the end: 1.13 or 2.0
//
// What an old server then reads as the length of a key is 10^17 bytes or more, beyond any address
// space, and it closes the connection at once (tried with 1.13, 2.1, 2.2, 2.5, 2.8 and 2.15, both
// back ends where there are two). Nothing is stored, and no waiting client is woken.
//
// Pure. On each new connection the shell sends output() and passes on what arrives, or that the
// connection ended, until the verdict is ready. A caller that knows the dialect names it; then only
// that one is tried.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "store/protocol/protocol.h"

namespace ddprun::store {

// What a client knows of its server.
struct Peer {
    Dialect dialect = Dialect::unknown;
    bool answers_missing = false;  // it answers GET and MULTI_GET of a missing key

    // It knows CANCEL_WAIT.
    bool cancels() const { return dialect != Dialect::torch_1_13; }
    // Whether the dialect has this operation. A server of 2.2 or later may still be too old for it;
    // it closes the connection then.
    bool knows(Operation operation) const;
    bool operator==(const Peer&) const = default;
};

class Greeting {
  public:
    // more: go on with this connection. reconnect: go on with a new one. ready: peer() is known.
    enum class Verdict { more, reconnect, ready };

    explicit Greeting(Dialect known = Dialect::unknown);

    // What to send now; empties it.
    std::string output() { return std::exchange(output_, {}); }
    // Possible errors: malformed: what answers is no store.
    Result<Verdict> received(std::string_view bytes);
    // The connection ended, or an old server did not answer in time. The result is always
    // `reconnect`. began_anew() counts how often the greeting had to start from the beginning,
    // after an end that tells nothing.
    Verdict ended();
    int began_anew() const { return began_anew_; }
    // Whether silence at this point means that the server speaks another dialect.
    bool impatient() const { return stage_ != Stage::modern && stage_ != Stage::strict; }
    const Peer& peer() const { return peer_; }

  private:
    // modern and strict: 2.2 and later, with and without the GET. legacy and legacy_cancel: 2.1 or
    // older, which one is open. torch_2_1 and torch_1_13: the dialect is known and only confirmed.
    enum class Stage { modern, strict, legacy, legacy_cancel, torch_2_1, torch_1_13 };

    void begin(Stage stage);
    void begin_anew();
    Result<Verdict> judge(std::string_view ones);

    Dialect known_;
    Stage stage_ = Stage::modern;
    std::string output_;
    std::string input_;  // received in this stage
    int began_anew_ = 0;
    Peer peer_;
};

}  // namespace ddprun::store
