// The leader's door: connections whose caller is not known yet. The gate takes their first message,
// lets them prove that they have the job's secret (identity.h), and passes on those that have. The
// machine never hears of the others.
//
//   take ─▶ silent ─Hello─▶ asked ─Proof─▶ admitted: Admit, and the link is the service's
//             │               │              where no secret is asked for, the first message admits
//             └───────────────┴──▶ refused (with a sentence), closed, or put out: 10 s have passed,
//                                  garbage, or the room is full
//
// Unknown callers are capped: `room` of them at a time, 4 KiB and 10 s each. If the room is full,
// the oldest is closed, silent ones first. A flood of connections therefore closes mostly itself,
// because a real node is admitted within a round trip. At most ten log lines about them in ten
// seconds; the rest is counted.
//
// Thread: the loop's. `admit` is called on the loop, never from within a call here. It may call
// everything, and may destroy the gate.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "rendezvous/link/link.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Secrets;

class Gate {
  public:
    // Gets an open link and the caller's first message. If a secret was asked for, the link is
    // sealed. The receiver must call Link::promote.
    using Admit = std::function<void(std::shared_ptr<Link>, ToLeader first)>;

    struct Config {
        NodeId self;
        std::size_t room = 256;  // callers at a time
    };

    // `secrets` may be null: then no proof is asked for. Otherwise it must outlive the gate.
    Gate(Secrets* secrets, Config config, Log log, Admit admit);
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    // Starts looking for the secret, so that the first caller does not wait for it.
    void prepare();
    // A new connection.
    void take(Link::Socket socket);
    void close();  // closes all connections
    std::size_t callers() const;

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
