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
#include <optional>
#include <string>
#include <vector>

#include "agent/pmi/pmi_desk.h"
#include "agent/pmi/pmi_rounds.h"
#include "agent/pmi/pmi_socket.h"
#include "agent/workers/pmi.h"
#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent::pmi {

class Server final : public Pmi {
  public:
    // A worker is to be ended.
    using End = std::function<void(const Desk::Fault&)>;
    Server(boost::asio::io_context& loop, const rendezvous::NodePlace& place,
           std::shared_ptr<TurnBudget> turns, End end, Say say);
    static std::unique_ptr<Pmi> make(boost::asio::io_context& loop,
                                     const rendezvous::NodePlace& place,
                                     std::shared_ptr<TurnBudget> turns, Pmi::End end, Say say);

    UniqueFd open(int index) override;
    Exit exited(int index, const ExitStatus& status) override;

  private:
    void carry_out(Desk::Outcome outcome);
    void end(const Desk::Fault& fault);
    void fail_all(const std::string& why);

    boost::asio::io_context& loop_;
    std::shared_ptr<TurnBudget> turns_;
    End end_;
    Desk desk_;
    std::vector<std::unique_ptr<Socket>> sockets_;
    std::vector<std::optional<ExitStatus>> ends_;  // of those that were to be ended
    Rounds rounds_;
};

}  // namespace ddprun::agent::pmi
