// The node's half of the handshake on one connection (identity.h). It answers the leader's
// Challenge, demands the leader's proof, and lets nothing through before. If the leader asks for no
// proof, the rule in secret.h decides whether the node follows it.
//
//   opening() ─▶ asked ─Challenge─▶ secret looked up ─▶ Proof sent ─leader's Proof─▶ through
//                  └─ any other message, if such a leader is followed ─────────────▶ through
//
// A Refused counts as such a message: a node with a secret goes on calling.
//
// Thread: the loop's. Handlers are called on the loop. They may call everything, and may destroy
// this object.
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
        // Each message of a leader that may be obeyed.
        std::function<void(std::string_view body)> on_message;
        // Called once. refused: the leader has not proved itself, or refuses this node. malformed:
        // what came is no handshake. The sentence begins with the peer.
        std::function<void(const Error&)> on_failed;
    };

    // `opening` is a Hello, an Inquire or an Operate. A Refused without proof is let through only
    // by a node that has no secret either, and only with `believe_refusals`: strangers cannot send
    // the others away.
    NodeHandshake(Secrets& secrets, std::shared_ptr<Link> link, ToLeader opening,
                  bool believe_refusals, Handlers handlers);
    ~NodeHandshake();
    NodeHandshake(const NodeHandshake&) = delete;
    NodeHandshake& operator=(const NodeHandshake&) = delete;

    void start();  // sends the opening
    // A frame has come.
    void take(std::string_view body);
    // The link has ended. A leader that refuses ends it at once, and may do so before it is known
    // whether its refusal counts: on_failed gets it then. False: there is none.
    bool ended();

  private:
    struct State;
    std::shared_ptr<State> state_;  // answers hold it weakly
};

}  // namespace ddprun::rendezvous
