// The operator's side: finds a job's leader, or the node that is meant, proves that it has the
// job's secret, makes the other side prove the same, and gives stubs for the services of
// proto/control.proto through the tunnel (tunnel.h).
//
//   any node of the job ─Operate, proof─▶ Standing: it leads, or is meant itself ─▶ TLS, gRPC
//                                    ├──▶ Elsewhere: call that one (8 times at most)
//                                    └──▶ Refused, or no proof
//
// A node that is silent holds nobody up: after 50 ms the next one is called, too. When all have
// been called, and one of the job knows no leader, or waits as we do for one that is silent for a
// second, nobody leads now, and that is the answer.
//
// Thread: open() blocks its caller. Afterwards a thread of this object carries the bytes until it
// is destroyed. The stub may be used by any thread. A leader that is frozen or cut off is noticed
// within 20 s: what waits for it ends with UNAVAILABLE.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "proto/control.grpc.pb.h"
#include "rendezvous/link/call_target.h"
#include "rendezvous/model/messages.h"
#include "rendezvous/secret/secret.h"

namespace ddprun::rendezvous {

class OperatorConnection {
  public:
    struct Target {
        std::vector<CallTarget> nodes;  // where the job may answer, in this order
        IdentityConfig identity;        // where its secret may be
        Operate opening;                // who asks, for which job, and for a leader or this node
        bool one_node = false;          // `nodes` are addresses of one node, not all reachable
    };
    // Possible errors: unavailable (no node of the job answers; the sentence has each one's
    // reason), closed (the same, and no waiting is needed to know it: each address refuses the
    // connection or cannot be reached, or the host is unknown), timed_out (nodes of the job answer,
    // and none of them leads now), refused (all that answer refuse, or do not prove themselves: it
    // is the secret).
    static Result<std::unique_ptr<OperatorConnection>> open(Target target, Duration limit);
    // Through the private socket of a job on this host (private_socket.h). Possible errors: closed
    // (it has ended), unavailable.
    static Result<std::unique_ptr<OperatorConnection>> open_private(const std::string& path);
    ~OperatorConnection();
    OperatorConnection(const OperatorConnection&) = delete;
    OperatorConnection& operator=(const OperatorConnection&) = delete;

    control::Control::Stub& stub();
    control::Workers::Stub& workers();  // of a node that was asked for itself

  private:
    struct State;
    explicit OperatorConnection(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace ddprun::rendezvous
