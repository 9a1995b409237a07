// Serves PMI-1 to the workers of this node in one generation (--pmi), so that programs of the MPICH
// family find each other: across nodes, and anew after a restart. Each worker has a descriptor of
// its own to ask on (PMI_FD).
//
//   worker ── lines ──▶ Socket ──▶ Desk (answers; pure) ──▶ Rounds (barrier with the other nodes)
//
// Thread: the loop's. Owner: the worker set.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/pmi/pmi_desk.h"
#include "agent/pmi/pmi_rounds.h"
#include "agent/pmi/pmi_socket.h"
#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent::pmi {

class Server {
  public:
    // A worker is to be ended.
    using End = std::function<void(const Desk::Fault&)>;
    using Say = Rounds::Say;

    Server(boost::asio::io_context& loop, const rendezvous::NodePlace& place,
           std::shared_ptr<TurnBudget> turns, End end, Say say);

    // The worker's end of its socket, once for each worker; none if no descriptors are left. Close
    // it when the worker has been requested.
    UniqueFd open(int index);
    // The worker has exited: takes what it has asked before. It may be ended by that (End).
    void finish(int index);
    // Its program has called MPI_Finalize: another one of this worker would find no PMI.
    bool has_finalized(int index) const { return desk_.has_finalized(index); }
    // It has called MPI_Init and not MPI_Finalize.
    bool is_in_mpi(int index) const { return desk_.is_in_mpi(index); }

  private:
    void carry_out(Desk::Outcome outcome);
    void fail_all(const std::string& why);

    boost::asio::io_context& loop_;
    std::shared_ptr<TurnBudget> turns_;
    End end_;
    Desk desk_;
    std::vector<std::unique_ptr<Socket>> sockets_;
    Rounds rounds_;
};

}  // namespace ddprun::agent::pmi
