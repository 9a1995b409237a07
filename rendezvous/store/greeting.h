// The first words with a server: which dialect it speaks, found out without harm to it.
//
// No version of PyTorch's server says what it is, and a wrong guess is dangerous: a server of torch
// 2.1 and before takes the greeting of later ones for the length of a key, and a wrong operation
// code for another operation. So each dialect is tried with bytes that are harmless in all others,
// and is believed only after an answer that no other gives:
//
//   VALIDATE, four times CANCEL_WAIT, GET of ""    2.2 and later: four ones, and then
//        eight zeros: a server that answers GET of a missing key (ours, and PyTorch's on libuv)
//        the end of the connection: PyTorch's older back end, which must not be asked for one
//   GETNUMKEYS, and after its answer CANCEL_WAIT   one: 2.1; the end: 1.13 or 2.0
//
// What an old server reads as the length of a key then is 10^17 bytes and more, over any machine's
// address space, and it closes the connection at once (tried with 1.13, 2.1, 2.2, 2.5, 2.8 and
// 2.15, both back ends where there are two). Nothing is stored, nobody is woken.
//
// Pure: on each new connection the shell sends output() and hands over what comes, or that the
// connection ended, until the verdict is ready. Whoever knows the dialect says so, and only that
// one is tried.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "rendezvous/store/protocol.h"

namespace ddprun::store {

// What is known of a server.
struct Peer {
    Dialect dialect = Dialect::unknown;
    bool answers_missing = false;  // GET and MULTI_GET of a key that is not there

    bool cancels() const { return dialect != Dialect::torch_1_13; }
    // Whether the dialect has the operation. Within that of 2.2 and later the server may still be
    // too old for it; then it closes the connection.
    bool knows(Operation operation) const;
    bool operator==(const Peer&) const = default;
};

class Greeting {
  public:
    enum class Verdict { more, reconnect, ready };

    explicit Greeting(Dialect known = Dialect::unknown);

    // What is to be sent now; empties it.
    std::string output() { return std::exchange(output_, {}); }
    // malformed: what answers there is no store.
    Result<Verdict> received(std::string_view bytes);
    // The connection ended, or (an old dialect) no answer came. `reconnect` also when it begins
    // anew, after an end that tells nothing: began_anew() counts those.
    Verdict ended();
    int began_anew() const { return began_anew_; }
    // An answer is due soon: what stays silent here is a server of another dialect.
    bool impatient() const { return stage_ != Stage::modern && stage_ != Stage::strict; }
    const Peer& peer() const { return peer_; }

  private:
    enum class Stage { modern, strict, legacy, legacy_cancel, torch_2_1, torch_1_13 };

    void begin(Stage stage);
    void begin_anew();
    Result<Verdict> judge(std::string_view ones);

    Dialect known_;
    Stage stage_ = Stage::modern;
    std::string output_;
    std::string input_;  // of this stage
    int began_anew_ = 0;
    Peer peer_;
};

}  // namespace ddprun::store
