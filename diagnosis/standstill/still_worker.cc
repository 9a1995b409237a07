// Compares each sample of a worker with the one before.
#include "diagnosis/standstill/still_worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ddprun::agent {
namespace {

using rendezvous::Doing;

// Samples in a row: a healthy worker waits for its disk in some of them.
constexpr int kHangsInKernel = 3;
constexpr auto kTick = std::chrono::milliseconds{10};
constexpr double kComputes = 0.5;
// Share of a CPU that a worker takes while nothing moves in it: threads that look for work.
constexpr double kIdles = 0.05;
// Share of the newest pause in what is usual: a long one, as for a snapshot or the first step, is
// an exception, and is soon forgotten.
constexpr double kNewestLonger = 0.2, kNewestShorter = 0.8;

}  // namespace

void StillWorker::moved(Time now) {
    const Duration pause = now - std::exchange(moved_at_, now);
    // Its start is no pause.
    if (!std::exchange(has_moved_, true)) return;
    const double newest = pause > usual_ ? kNewestLonger : kNewestShorter;
    usual_ = usual_ == Duration{} ? pause : share(pause, newest) + share(usual_, 1 - newest);
}

void StillWorker::sampled(Time now, const WorkerSample& sample) {
    const WorkerSample before = std::exchange(last_, sample);
    const Duration since = now - std::exchange(sampled_at_, now);
    if (!std::exchange(sampled_, true) || !before.is_known) {
        still_since_ = moved_at_ = unmoved_since_ = now;
        return;
    }
    const bool turned = (before.pending > 0) != (sample.pending > 0) ||
                        before.has_ended != sample.has_ended || !sample.is_known;
    const bool sent = before.sent != sample.sent;
    if (turned || sent) moved(now);
    if (turned || (sent && sample.pending > 0)) {
        still_since_ = now;
        nccl_ = {};
        place_ = {};  // it was that of the standstill before
    }
    const Duration computed = kTick * (sample.cpu - before.cpu);
    computes_ = computed > share(since, kComputes);
    idles_ = before.moved == sample.moved && computed <= share(since, kIdles);
    if (turned || !idles_) unmoved_since_ = now;
    in_kernel_ = sample.state == 'D' ? in_kernel_ + 1 : 0;
}

void StillWorker::found_at(Time now, const ProgramPlace& place) {
    const ProgramPlace before = std::exchange(place_, place);
    const Duration since = now - std::exchange(found_at_, now);
    // The first look at it may come seconds after it has come there; it took CPU time before that.
    if (place.meets && !before.meets)
        meets_since_ = before.stack == 0 ? std::max(still_since_, unmoved_since_) : now;
    // A child that has ended took its time with it.
    const bool computed = place.children_cpu < before.children_cpu ||
                          kTick * (place.children_cpu - before.children_cpu) > share(since, kIdles);
    if (place.stack != before.stack || computed) unmoved_since_ = now;
}

Duration StillWorker::unmoved(Time now) const {
    return place_.stack == 0 ? Duration{} : now - unmoved_since_;
}

// Workers that have made other calls than the rest are elsewhere, at whichever line that is.
std::uint32_t StillWorker::place() const {
    return nccl_.operation.empty() ? place_.place : hash_of(nccl_.operation);
}

Doing StillWorker::doing() const {
    if (last_.has_ended) return Doing::has_ended;
    if (last_.state == 'T' || last_.state == 't') return Doing::is_stopped;
    if (in_kernel_ >= kHangsInKernel) return Doing::hangs_in_kernel;
    if (place_.meets) return Doing::meets;
    if (last_.pending > 0 || nccl_.part == NcclPart::waits) return Doing::in_collective;
    if (computes_ || last_.state == 'R') return Doing::computes;
    switch (last_.waiting) {
        case WaitingIn::timer:
            return Doing::sleeps;
        case WaitingIn::reading:
            return Doing::reads;
        case WaitingIn::writing:
            return Doing::writes;
        case WaitingIn::child:
            return Doing::waits_for_child;
        case WaitingIn::anything:
            break;
    }
    return Doing::waits;
}

}  // namespace ddprun::agent
