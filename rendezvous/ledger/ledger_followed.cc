// Forwards every call to the ledger that was found, or answers that there is none.
#include "rendezvous/ledger/ledger_followed.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace ddprun::rendezvous {
namespace {

constexpr const char* kNotFound = "the leader's ledger has not been found on this node";

}  // namespace

// A ledger's callbacks never come from within the call, so the answers made here are posted.
void LedgerFollowed::later(std::function<void()> call) {
    boost::asio::post(loop_, [alive = std::weak_ptr(alive_), call = std::move(call)] {
        if (!alive.expired()) call();
    });
}

void LedgerFollowed::adopt(std::unique_ptr<Ledger> ledger) {
    found_ = ledger.get();
    opened_.push_back(std::move(ledger));
}

void LedgerFollowed::find(std::uint64_t mark, std::function<void(const Result<>&)> done) {
    // It is in use already.
    if (this->mark() == mark) return later([done = std::move(done)] { done(Result<>()); });
    open_(mark, [this, alive = std::weak_ptr(alive_),
                 done = std::move(done)](Result<std::unique_ptr<Ledger>> opened) {
        if (alive.expired()) return;
        if (opened) adopt(std::move(*opened));
        done(opened ? Result<>() : opened.error());
    });
}

void LedgerFollowed::read(EntryNumber from, ReadDone done) {
    if (found_) return found_->read(from, std::move(done));
    later([done = std::move(done)] { done(Error(ErrorCode::unavailable, kNotFound)); });
}

void LedgerFollowed::create(LedgerEntry entry, CreateDone done) {
    if (found_) return found_->create(std::move(entry), std::move(done));
    later([entry = std::move(entry), done = std::move(done)] {
        done({LedgerCreated::Outcome::failed, entry, kNotFound});
    });
}

void LedgerFollowed::look(EntryNumber from, LookDone done) {
    if (found_) return found_->look(from, std::move(done));
    later([done = std::move(done)] { done(Error(ErrorCode::unavailable, kNotFound)); });
}

std::string LedgerFollowed::name() const { return found_ ? found_->name() : "none"; }

}  // namespace ddprun::rendezvous
