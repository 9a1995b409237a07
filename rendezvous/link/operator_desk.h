// Who serves the operators of a node. The program hands it in, so that the service knows neither
// gRPC nor TLS. operator/control/operators.h is the one that there is; without one, operators are
// refused.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "rendezvous/model/events.h"
#include "rendezvous/model/job_status.h"
#include "rendezvous/model/own_workers.h"

namespace ddprun::rendezvous {

class Link;

// What a desk may ask of the service.
struct OperatorHandlers {
    std::function<std::optional<JobStatus>()> status;  // nothing: this node leads no more
    std::function<Answered(const std::string& by, const OperatorAction& action)> operate;
};

class OperatorDesk {
  public:
    struct Served {
        NodeId node;
        bool leads = false;
        std::uint64_t ledger_mark = 0;  // 0: the ledger has none
    };
    virtual ~OperatorDesk() = default;
    virtual void take(const std::shared_ptr<Link>& link, const Operate& who, const Served& by) = 0;
    virtual void ended(const Ending& ending) = 0;
    virtual void serve_workers(std::optional<OwnWorkers> workers) = 0;
    virtual bool has_visitors() const = 0;
    virtual void close() = 0;
};
using MakeOperatorDesk = std::function<std::unique_ptr<OperatorDesk>(
    boost::asio::io_context& loop, Log log, Duration to_day, OperatorHandlers handlers)>;

}  // namespace ddprun::rendezvous
