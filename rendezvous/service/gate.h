// The leader's door: connections whose caller is not known yet. It takes their first message, has
// them prove that they have the job's secret (identity.h), and hands on those who have; the machine
// never hears of the others.
//
//   take ─▶ silent ─Hello─▶ asked ─Proof─▶ admitted: Admit, and the link is the service's
//             │               │              where no secret is asked for, the first message admits
//             └───────────────┴──▶ refused (with a sentence), closed, or put out: 10 s have passed,
//                                  garbage, or the room is full
//
// Callers who are not known may cost little: `room` of them at once, 4 KiB each, 10 s each. In a
// full room the oldest makes place, one that has said nothing before one that has, so a flood puts
// out itself: a real node is through in a round trip. The log has at most ten lines about them in
// ten seconds, and then their number.
//
// Thread: the loop's. `admit` is called on the loop, never from within a call here; in it
// everything may be called, destruction included.
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
    // The link is open and sealed, and waits for Link::promote.
    using Admit = std::function<void(std::shared_ptr<Link>, ToLeader first)>;

    struct Config {
        NodeId self;
        std::size_t room = 256;
    };

    // `secrets` may be null: no proof is asked for. Else it must outlive the gate.
    Gate(Secrets* secrets, Config config, Log log, Admit admit);
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    // Has the secret looked up, which would else wait for the first caller.
    void prepare();
    void take(Link::Socket socket);
    void close();  // puts all out
    std::size_t callers() const;

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
