// Numbers requests, and judges which snapshot answers one (snapshot_request.h).
#include "rendezvous/parts/snapshot_request.h"

#include <algorithm>
#include <utility>

namespace ddprun::rendezvous {
namespace {

// Entry numbers grow over leaders. The ledger's are not trusted to be small.
constexpr std::int64_t kOfOneEntry = 1'000'000, kMostEntries = 1'000'000'000'000;

}  // namespace

void SnapshotRequest::ask(const std::string& by, EntryNumber entry) {
    const std::int64_t base = std::clamp<std::int64_t>(entry.value, 0, kMostEntries) * kOfOneEntry;
    open_ = SnapshotAsked{base + ++asked_, by};
}

void SnapshotRequest::generation_began() {
    earlier_ = std::max(earlier_, std::exchange(newest_, -1));
}

std::optional<SnapshotAsked> SnapshotRequest::reported(std::int64_t snapshot) {
    if (snapshot <= newest_) return std::nullopt;
    const bool newer = snapshot > std::max(newest_, newest_ < 0 ? earlier_ : -1);
    newest_ = snapshot;
    return newer ? std::exchange(open_, std::nullopt) : std::nullopt;
}

}  // namespace ddprun::rendezvous
