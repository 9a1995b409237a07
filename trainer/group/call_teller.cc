// One board for the process. Its address is told when the first group is made.
#include "trainer/group/call_teller.h"

#include <mutex>
#include <utility>

#include "trainer/worker/progress.h"

namespace ddprun::trainer {
namespace {

struct Board {
    CallBoard board;
    std::mutex mutex;
    bool used[kCallGroups] = {};
    bool told = false;
};

// It stays as long as the process: ddprun may read it at any time.
Board& board() {
    static Board* const only = new Board;
    return *only;
}

std::int64_t peer_of(const Operation& operation) {
    if (operation.kind == Collective::receive) return operation.source;
    return operation.is_collective() ? -1 : operation.root;
}

}  // namespace

CallTeller::CallTeller() {
    Board& all = board();
    const std::lock_guard lock(all.mutex);
    for (std::size_t i = 0; i < kCallGroups && !entry_; ++i)
        if (!all.used[i]) {
            all.used[i] = true;
            entry_ = &all.board.groups[i];
        }
    if (!std::exchange(all.told, true))
        Progress::from_environment().tell_calls(reinterpret_cast<std::uintptr_t>(&all.board));
}

// The counts go on, so that a reader does not take the next group's calls for this one's.
CallTeller::~CallTeller() {
    if (!entry_) return;
    Board& all = board();
    const std::lock_guard lock(all.mutex);
    all.used[entry_ - all.board.groups] = false;
}

CallTeller::Call::Call(CallTeller& teller, const Operation& operation) : entry_(teller.entry_) {
    begin(static_cast<std::uint64_t>(operation.kind), operation.sequence, operation.count(),
          peer_of(operation));
}

CallTeller::Call::Call(CallTeller& teller, std::uint64_t kind, std::uint64_t number)
    : entry_(teller.entry_) {
    begin(kind, number, 0, -1);
}

CallTeller::Call::~Call() {
    if (entry_) entry_->ended.fetch_add(1, std::memory_order_release);
}

// `begun` comes last: a reader that sees it also sees the rest.
void CallTeller::Call::begin(std::uint64_t kind, std::uint64_t number, std::uint64_t elements,
                             std::int64_t peer) {
    if (!entry_) return;
    entry_->kind.store(kind, std::memory_order_relaxed);
    entry_->number.store(number, std::memory_order_relaxed);
    entry_->elements.store(elements, std::memory_order_relaxed);
    entry_->peer.store(peer, std::memory_order_relaxed);
    entry_->begun.fetch_add(1, std::memory_order_release);
}

}  // namespace ddprun::trainer
