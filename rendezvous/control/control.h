// The control service of a job (proto/control.proto), as its leader serves it to operators who have
// proved at the gate that they have the job's secret.
//
//   Gate ─Operate, proved─▶ Service ─take()─▶ Standing, then a tunnel (tunnel.h) ─▶ gRPC
//
// The machine stays on the loop: gRPC's threads only queue what they are asked, and the loop
// answers. gRPC and OpenSSL start with the first operator; nothing of them is in the path of a
// job's start or restart. How the job stands is computed only when it is asked for, and for all
// watchers together.
//
// What operators may cost: 32 at a time (the next one is refused with a sentence), 16 requests of
// 64 KiB at a time for each, 10 lines about refused ones in 10 s. A watcher who does not read holds
// one reply and the newest one.
//
// Thread: the loop's. The handlers are called on the loop, never from within a call here, and must
// not destroy this object. The destructor waits for gRPC's threads, never for the network.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "rendezvous/link/link.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/job_status.h"

namespace ddprun::rendezvous {

class Control {
  public:
    struct Handlers {
        std::function<std::optional<JobStatus>()> status;  // nothing: this node leads no more
        std::function<Answered(const std::string& by, const OperatorAction& action)> operate;
    };
    // Nothing is started. `loop` must outlive this object. `to_day`: added to a Time, it gives the
    // time since 1970.
    Control(boost::asio::io_context& loop, Log log, Duration to_day, Handlers handlers);
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    struct Leader {
        NodeId node;
        std::uint64_t ledger_mark = 0;  // 0: the ledger has none
    };
    // An operator's link, after the proof if there was one. He is refused with a sentence if he has
    // proved nothing, means another job, or is one too many.
    void take(const std::shared_ptr<Link>& link, const Operate& who, const Leader& leader);

    // The job has ended. Watchers get a last reply.
    void ended(const Ending& ending);

    void close();  // cuts all; nobody is taken any more

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

// The use of the handshake's key (Link::key_for). The leader's seal has it.
inline constexpr const char* kTunnelKey = "ddprun control TLS";

}  // namespace ddprun::rendezvous
