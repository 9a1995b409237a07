// The ledger of a node that follows a leader, so that it can lead with the same one later. Which it
// is, the leader's word says (the mark in its Welcome); until it is found, what is asked of it
// fails with a sentence. Once found it stays, unless another leader names another.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_claim.h"

namespace ddprun::rendezvous {

class LedgerFollowed final : public Ledger {
  public:
    // Opens the one with this mark, and begins none (LedgerOwner::mark).
    using Open = std::function<void(std::uint64_t mark, LedgerOpened opened)>;

    LedgerFollowed(boost::asio::io_context& loop, Open open)
        : loop_(loop), open_(std::move(open)) {}

    // Who leads at the start has opened it already.
    void adopt(std::unique_ptr<Ledger> ledger);

    // Whether the ledger with this mark can be read here: then it is this one from now on. Errors:
    // those of Open. `done` is called like those of a ledger.
    void find(std::uint64_t mark, std::function<void(const Result<>&)> done);

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override { return found_ ? found_->mark() : 0; }
    std::string folder() const override { return found_ ? found_->folder() : ""; }

  private:
    void later(std::function<void()> call);

    boost::asio::io_context& loop_;
    Open open_;
    std::vector<std::unique_ptr<Ledger>> opened_;  // older ones still owe answers
    Ledger* found_ = nullptr;                      // the newest of them
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::rendezvous
