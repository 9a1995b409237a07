// The node's half of the handshake on one connection: answers the leader's Challenge, demands its
// proof, and lets nothing through before. Where the leader asks for no proof, secret.h's rule says
// whether it is followed.
//
//   opening() ─▶ asked ─Challenge─▶ secret looked up ─▶ Proof sent ─leader's Proof─▶ through
//                  └─ any other message, if such a leader is followed ─────────────▶ through
//
// Thread: the loop's. Handlers are called on the loop; in them everything may be called,
// destruction included.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/link/link.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Secrets;

class NodeHandshake {
  public:
    struct Handlers {
        // A message of a leader that may be obeyed; all that come.
        std::function<void(std::string_view body)> on_message;
        // refused: it has not proved itself, or wants no part of us; malformed. Once; the sentence
        // begins with the peer.
        std::function<void(const Error&)> on_failed;
    };

    // `believe_refusals`: a Refused by one who has not proved himself is let through. So a node
    // that has never met its leader hears why; one that has is not to be sent away by strangers.
    // `opening` is a Hello or an Inquire.
    NodeHandshake(Secrets& secrets, std::shared_ptr<Link> link, ToLeader opening,
                  bool believe_refusals, Handlers handlers);
    ~NodeHandshake();
    NodeHandshake(const NodeHandshake&) = delete;
    NodeHandshake& operator=(const NodeHandshake&) = delete;

    void start();  // sends the opening
    void take(std::string_view body);

  private:
    struct State;
    std::shared_ptr<State> state_;  // answers hold it weakly
};

}  // namespace ddprun::rendezvous
