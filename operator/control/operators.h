// The operators of a node: who has proved at the gate that he has the job's secret, and asks for
// the services of proto/control.proto.
//
//   Gate ─Operate, proved─▶ Service ─take()─▶ Standing, then a tunnel (tunnel.h) ─▶ gRPC
//   private_socket.h: a process of the same user on the leader's host ──────────────▶ │
//                                    the loop: Control (control.h), Workers (workers.h) ◀──┘
//
// gRPC and OpenSSL start with the first operator; nothing of them is in the path of a job's start
// or restart. Their code is read before, on a thread of its own: the loop does not wait for the
// file system below the program (base/system/locked_program.h).
//
// What operators may cost: 32 at a time (the next one is refused with a sentence), 16 requests of
// 64 KiB at a time for each, 10 lines about refused ones in 10 s.
//
// Thread: the loop's. The destructor waits for gRPC's threads, never for the network.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/log.h"
#include "operator/control/control.h"
#include "operator/control/workers.h"
#include "rendezvous/link/link.h"
#include "rendezvous/link/operator_desk.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

class Operators final : public OperatorDesk {
  public:
    // Nothing is started. `loop` must outlive this object. `to_day` and `handlers`: as for Control.
    Operators(boost::asio::io_context& loop, Log log, Duration to_day, OperatorHandlers handlers);
    ~Operators() override;
    static std::unique_ptr<OperatorDesk> make(boost::asio::io_context& loop, Log log,
                                              Duration to_day, OperatorHandlers handlers) {
        return std::make_unique<Operators>(loop, std::move(log), to_day, std::move(handlers));
    }
    Operators(const Operators&) = delete;
    Operators& operator=(const Operators&) = delete;

    // An operator's link, after the proof if there was one. He is refused with a sentence if he has
    // proved nothing, means another job, or is one too many.
    void take(const std::shared_ptr<Link>& link, const Operate& who, const Served& by) override;

    void ended(const Ending& ending) override;                       // as Control's
    void serve_workers(std::optional<OwnWorkers> workers) override;  // as Workers' serve()
    // Whether somebody is connected who has asked for this node itself.
    bool has_visitors() const override;

    void close() override;  // cuts all; nobody is taken any more

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

// The use of the handshake's key (Link::key_for). The service's seal has it.
inline constexpr const char* kTunnelKey = "ddprun control TLS";

}  // namespace ddprun::rendezvous
