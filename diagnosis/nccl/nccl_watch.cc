// Compares an answer with the one before.
#include "diagnosis/nccl/nccl_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ddprun::agent {
namespace {

constexpr auto kAgain = std::chrono::seconds{2}, kLongestWait = std::chrono::seconds{60};
constexpr auto kForEach = std::chrono::milliseconds{50};
// As in StillWorker: a longer pause than usual counts at once, a shorter one slowly.
constexpr double kNewestShorter = 0.2;

}  // namespace

void NcclWatch::unanswered(Time now) {
    waits_ = std::clamp<Duration>(2 * waits_, kAgain, kLongestWait);
    asks_at_ = now + waits_;
    known_ = still_ = false;
    judged_ = RasJudgement();
}

void NcclWatch::answered(Time now, const RasAnswer& answer) {
    waits_ = {};
    asks_at_ = now + std::clamp<Duration>(kForEach * answer.processes, kAgain, kLongestWait);
    Launched launched;
    for (const RasCommunicator& communicator : answer.communicators)
        for (const RasCounts& counts : communicator.counts)
            for (const RasSide& side : counts.sides)
                launched[{communicator.hash, counts.operation}] +=
                    side.count * static_cast<std::uint64_t>(side.size);
    const bool was_known = std::exchange(known_, true);
    const bool moves = std::exchange(launched_, launched) != launched || !was_known;
    judged_ = judge_ras(answer);
    still_ = !moves;
    if (!moves) return;
    // One that is found between two answers is shorter than they can tell.
    const Duration pause = now - std::exchange(moved_at_, now);
    if (!was_known || pause < 2 * kAgain) return;
    usual_ =
        pause > usual_ ? pause : share(usual_, 1 - kNewestShorter) + share(pause, kNewestShorter);
}

std::vector<NcclState> NcclWatch::states(const std::vector<std::int64_t>& pids,
                                         const std::vector<std::string>& hosts) const {
    std::vector<NcclState> states(pids.size());
    if (!still_) return states;
    for (std::size_t i = 0; i < pids.size(); ++i) {
        states[i].moved_at = moved_at_;
        states[i].usual = usual_;
        if (pids[i] == 0) continue;
        for (const std::string& host : hosts) {
            const RasJudgement::Process process{host, pids[i]};
            const NcclPart part = judged_.part_of(process);
            // Of text the others are those that are nowhere: on each address.
            if (part == NcclPart::unknown || states[i].part == NcclPart::is_awaited) continue;
            if (judged_.odd.contains(process) || states[i].part == NcclPart::unknown)
                states[i].part = part;
            states[i].operation += judged_.operation_of(process);
        }
    }
    return states;
}

}  // namespace ddprun::agent
