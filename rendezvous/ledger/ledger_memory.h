// A ledger in the memory of one process: for a job of one node, for tests, and for several nodes
// without a shared ledger. In the last case the loss of the leader's node ends the job.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "rendezvous/ledger/ledger.h"

namespace ddprun::rendezvous {

class LedgerMemory final : public Ledger {
  public:
    explicit LedgerMemory(boost::asio::io_context& loop) : loop_(loop) {}

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override { return "memory"; }

  private:
    boost::asio::io_context& loop_;
    std::map<EntryNumber, LedgerEntry> entries_;
    // Expires with the ledger; answers that come later are dropped.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// What a job of one node says where it cannot use its folder.
inline Note in_memory_instead(const std::string& why) {
    constexpr const char* kInstead =
        "; the ledger is in memory instead, so nothing tells this allocation of the job and later "
        "ones about each other";
    return {Note::Level::warn, why + kInstead};
}

}  // namespace ddprun::rendezvous
