// A ledger in the memory of one process: for a job of one node, for tests, and for several nodes
// without a shared folder, where the loss of the leader's node then ends the job. Thread: the
// loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>

#include "rendezvous/ledger/ledger.h"

namespace ddprun::rendezvous {

class LedgerMemory final : public Ledger {
  public:
    explicit LedgerMemory(boost::asio::io_context& loop) : loop_(loop) {}

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override { return "memory"; }

  private:
    boost::asio::io_context& loop_;
    std::map<EntryNumber, LedgerEntry> entries_;
    std::shared_ptr<bool> alive_ =
        std::make_shared<bool>(true);  // answers are dropped with the ledger
};

}  // namespace ddprun::rendezvous
