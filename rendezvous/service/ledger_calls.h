// The machine's questions to the ledger, and its answers as events. A failed read is reported, so
// that the machine decides how long to wait for the ledger, and repeated each second.
//
// Thread: the loop's. `event` is called on the loop; it may close this object, and destroy it with
// the last reference that the caller holds. No event comes after close().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "rendezvous/ledger/ledger.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

class LedgerCalls {
  public:
    using OnEvent = std::function<void(const Event&)>;

    // `ledger` must outlive this object.
    LedgerCalls(boost::asio::io_context& loop, Ledger& ledger, OnEvent event);
    ~LedgerCalls();
    LedgerCalls(const LedgerCalls&) = delete;
    LedgerCalls& operator=(const LedgerCalls&) = delete;

    void read(const ReadLedger& read);
    void create(const CreateEntry& create);
    void look(const LookLedger& look);
    void close();

  private:
    struct State;
    std::shared_ptr<State> state_;  // handlers hold it weakly
};

}  // namespace ddprun::rendezvous
