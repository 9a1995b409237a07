// The ledger of a job of one node as its process has it: the product's own LedgerBehind
// (rendezvous/ledger/ledger_behind.h) in front of the virtual ledger, whose folder opens late. Like
// the product's LedgerWatch, a call is answered with a failure after one lease.
//
// Owned by its Process. After the process has ended nothing happens here any more.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "base/log.h"
#include "rendezvous/ledger/ledger_behind.h"
#include "tests/sim/ledger.h"

namespace ddprun::sim {

class Behind {
  public:
    // Runs something in the process: now, when it can run again, or never if it has ended.
    using Deliver = std::function<void(std::function<void()>)>;

    Behind(VirtualLedger& folder, int host, Clock& clock, Duration lease, Deliver deliver, Log log);

    void open();  // the folder
    void read(EntryNumber from, const VirtualLedger::Answer& answer);
    void look(const rendezvous::LookLedger& look, const VirtualLedger::Answer& answer);
    void create(rendezvous::LedgerEntry entry, const VirtualLedger::Answer& answer);

    // The generation that counts as created before the folder has it.
    const std::optional<rendezvous::LedgerEntry>& first() const { return first_; }

  private:
    void turn();
    VirtualLedger::Answer within_a_lease(VirtualLedger::Answer answer, rendezvous::Event late);

    VirtualLedger& folder_;
    const int host_;
    Clock& clock_;
    const Duration lease_;
    const Deliver deliver_;
    boost::asio::io_context loop_;
    rendezvous::LedgerOpened opened_;
    rendezvous::LedgerBehind ledger_;
    std::optional<rendezvous::LedgerEntry> first_;
};

}  // namespace ddprun::sim
