// How programs of MPI find each other (--pmi), as a worker set asks for it. The product implements
// it (agent/pmi/pmi_server.h).
//
// Thread: the loop's. Owner: the worker set.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/death/exit_report.h"
#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"
#include "rendezvous/model/node_place.h"

namespace ddprun::agent {

class Pmi {
  public:
    // A worker is to be ended, for this reason.
    using End = std::function<void(int index, const std::string& why)>;
    using Say = std::function<void(const std::string&)>;
    // How a worker counts as ended, and what the user should hear of it. Empty: nothing.
    struct Exit {
        ExitStatus status;
        std::string warning;
    };

    virtual ~Pmi() = default;
    // The worker's end of its socket, once for each worker; none if no descriptors are left. Close
    // it when the worker has been requested.
    virtual UniqueFd open(int index) = 0;
    // The worker's process has ended. What it asked before counts (End may be called). A worker
    // that was to be ended has ended by that, however its process has left.
    virtual Exit exited(int index, const ExitStatus& status) = 0;
};

using MakePmi = std::unique_ptr<Pmi> (*)(boost::asio::io_context& loop,
                                         const rendezvous::NodePlace& place,
                                         std::shared_ptr<TurnBudget> turns, Pmi::End end,
                                         Pmi::Say say);

}  // namespace ddprun::agent
