// The service Workers of proto/control.proto: what operators ask this node about its own workers.
// Every node serves it, whether it leads or not (operators.h).
//
//   worker's text ─▶ agent/output/recent_output.h ─WorkerReader─▶ here ─a reply at a time─▶ gRPC
//
// What readers may cost: 32 at a time in this node, the next one is refused. A reader who does not
// read holds one reply of about 128 KiB; the text itself waits in the agent, once for all who read
// it. Four may look at processes at a time.
//
// Thread: the loop's; gRPC's threads only queue what they are asked.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>

#include "rendezvous/model/own_workers.h"

namespace ddprun::rendezvous {

class Workers {
  public:
    // `loop` must outlive this object.
    explicit Workers(boost::asio::io_context& loop);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Who answers from now on; nothing: nobody does, and open requests end.
    void serve(std::optional<OwnWorkers> workers);
    grpc::Service& service();  // made by the first call
    void close();              // ends all requests; none is answered any more

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
