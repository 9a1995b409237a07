// The control service of a job (proto/control.proto), as its leader serves it to operators
// (operators.h).
//
// The machine stays on the loop: gRPC's threads only queue what they are asked, and the loop
// answers. How the job stands is computed only when it is asked for, and for all watchers together.
// A watcher who does not read holds one reply and the newest one.
//
// Thread: the loop's. The handlers are called on the loop, never from within a call here, and must
// not destroy this object.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/job_status.h"

#include "rendezvous/link/operator_desk.h"

namespace ddprun::rendezvous {

class Control {
  public:
    // `loop` must outlive this object. `to_day`: added to a Time, it gives the time since 1970.
    Control(boost::asio::io_context& loop, Duration to_day, OperatorHandlers handlers);
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    grpc::Service& service();  // made by the first call

    // The job has ended. Watchers get a last reply.
    void ended(const Ending& ending);

    void close();  // ends all requests; none is answered any more

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
