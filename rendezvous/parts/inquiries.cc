// Rounds of inquiries to other leaders (inquiries.h).
#include "rendezvous/parts/inquiries.h"

#include <algorithm>

#include "rendezvous/model/durations.h"

namespace ddprun::rendezvous {
namespace {

// Bounds the connections of one round; the turns reach all of them in a few rounds.
constexpr std::size_t kAskedAtOnce = 8;

}  // namespace

void Inquiries::begin(Time now, Duration lease) { next_ = now + share(lease, kInquiry); }

std::vector<Peer> Inquiries::round(Time now, Duration lease, const std::optional<Peer>& writer,
                                   const std::vector<Peer>& before, const MayCall& may_call) {
    begin(now, lease);
    asked_.clear();
    std::vector<Peer> called;
    const auto ask = [&](const Peer& peer) {
        // The writer may stand in the order too; emplace keeps it from being called twice.
        if (may_call(peer) && asked_.emplace(peer.node, peer).second) called.push_back(peer);
    };
    if (writer) ask(*writer);
    for (std::size_t i = 0; i < std::min(before.size(), kAskedAtOnce); ++i)
        ask(before[turns_++ % before.size()]);
    return called;
}

std::optional<Peer> Inquiries::asked(const NodeId& node) const {
    const auto found = asked_.find(node);
    return found == asked_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ddprun::rendezvous
