// Reads the newest entry of a ledger and lists whom a newcomer can call.
#include "rendezvous/ledger/ledger_members.h"

#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "rendezvous/rules/succession.h"

namespace ddprun::rendezvous {
namespace {

// The leader first: in most cases it answers at once.
std::vector<Peer> members_of(const std::vector<LedgerEntry>& entries, int requeue) {
    // Nodes of an earlier allocation would refuse the call.
    if (entries.empty() || entries.back().end() || entries.back().requeue != requeue) return {};
    std::vector<Peer> all{entries.back().at};
    if (entries.back().allocation()) return all;  // the members are those of an earlier one
    for (const Peer& peer : order_of(entries.back().assignment.members, {}))
        if (peer.node != all.front().node) all.push_back(peer);
    return all;
}

}  // namespace

void find_members(const LedgerShell& shell, const LedgerPlace& place, LedgerOwner owner,
                  LedgerLimits limits, std::function<void(std::vector<Peer>)> done) {
    // A newcomer has met no leader yet, so it knows no mark.
    owner.mark = kAnyMark;
    const auto opened = [&loop = shell.loop, requeue = owner.requeue,
                         done = std::move(done)](Result<std::unique_ptr<Ledger>> found) {
        if (!found) return done({});
        const std::shared_ptr<Ledger> ledger = std::move(*found);
        ledger->read(EntryNumber{0}, [&loop, ledger, done, requeue](const auto& entries) {
            // Keeps the ledger alive until this callback is over.
            boost::asio::post(loop, [ledger] {});
            done(entries ? members_of(*entries, requeue) : std::vector<Peer>());
        });
    };
    open_ledger(shell, place, std::move(owner), limits, opened);
}

}  // namespace ddprun::rendezvous
