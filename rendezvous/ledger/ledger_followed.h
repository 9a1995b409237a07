// The ledger of a node that follows a leader, so that the node can lead with the same ledger later.
// The leader's Welcome says which one it is, by its mark. Until it is found, every call fails with
// a sentence. Once found it stays, until another leader names another one.
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
    // Opens the ledger with this mark, and never begins a new one (LedgerOwner::mark).
    using Open = std::function<void(std::uint64_t mark, LedgerOpened opened)>;

    LedgerFollowed(boost::asio::io_context& loop, Open open)
        : loop_(loop), open_(std::move(open)) {}

    // For the node that leads at the start: it has opened its ledger already.
    void adopt(std::unique_ptr<Ledger> ledger);

    // Looks for the ledger with this mark. If it can be read here, it is used from now on. Possible
    // errors: those of Open. `done` is called later, on the loop.
    void find(std::uint64_t mark, std::function<void(const Result<>&)> done);

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override { return found_ ? found_->mark() : 0; }
    std::string folder() const override { return found_ ? found_->folder() : ""; }
    bool follows_end() const override { return found_ && found_->follows_end(); }

  private:
    void later(std::function<void()> call);

    boost::asio::io_context& loop_;
    Open open_;
    // Earlier ones stay, because they may still owe answers.
    std::vector<std::unique_ptr<Ledger>> opened_;
    Ledger* found_ = nullptr;  // the one in use; null: none yet
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::rendezvous
