// Entries in a map. The answers are posted, because a ledger never answers from within a call.
#include "rendezvous/ledger/ledger_memory.h"

#include <boost/asio/post.hpp>

namespace ddprun::rendezvous {

void LedgerMemory::read(EntryNumber from, ReadDone done) {
    std::vector<LedgerEntry> found;
    for (auto entry = entries_.lower_bound(from); entry != entries_.end(); ++entry)
        found.push_back(entry->second);
    boost::asio::post(loop_, [alive = std::weak_ptr(alive_), found = std::move(found), done] {
        if (!alive.expired()) done(found);
    });
}

void LedgerMemory::create(LedgerEntry entry, CreateDone done) {
    const auto& stands = entries_.try_emplace(entry.number, entry).first->second;
    LedgerCreated result = created(entry, stands);
    boost::asio::post(loop_, [alive = std::weak_ptr(alive_), result = std::move(result), done] {
        if (!alive.expired()) done(result);
    });
}

// An allocation of its own cannot know this memory.
void LedgerMemory::look(EntryNumber, LookDone done) {
    boost::asio::post(loop_, [alive = std::weak_ptr(alive_), done] {
        if (!alive.expired()) done(-1);
    });
}

}  // namespace ddprun::rendezvous
