// The keys of a failure in the group's store, and their order.
#include "trainer/group/failure_story.h"

#include <algorithm>
#include <chrono>

#include "trainer/group/left_until.h"

namespace ddprun::trainer {
namespace {

constexpr char kFailures[] = "group/failures";           // counter: how many ranks have failed
constexpr char kFirstFailure[] = "group/first_failure";  // code and sentence of the first one
constexpr char kGivesUp[] = "group/gives_up/";           // + rank: counter, raised before the cut
constexpr char kAt[] = "group/at/";        // + rank: the call in which it failed; empty: it died
constexpr char kWaits[] = "group/waits/";  // + rank: the last call in which it waited
constexpr char kElsewhere[] = "group/elsewhere/";  // + rank: see waits_elsewhere()
// How long a failing rank waits, in all, for the other ranks to write where they are.
constexpr auto kOthersSay = std::chrono::milliseconds(1000);
// A key that may not be there.
constexpr auto kIfThere = std::chrono::milliseconds(1);

using Clock = std::chrono::steady_clock;

// A call between two ranks has a count of its own, so comparing numbers would mislead.
bool is_pairwise(const Opinion& opinion) {
    Operation o;
    o.kind = static_cast<Collective>(opinion.kind);
    return !o.is_collective();
}

}  // namespace

FailureStory::FailureStory(Store& store, int rank, int size, JobRanks job)
    : store_(store), rank_(rank), size_(size), job_(std::move(job)) {}

Error FailureStory::mine(const Failure& failure) const {
    return Error(failure.reason.code(), name_rank_of(rank_, size_, job_) + ": " + failure.what +
                                            " failed: " + failure.reason.sentence());
}

void FailureStory::announce(const Failure& failure) { (void)first_failure(mine(failure)); }

Error FailureStory::tell(const Failure& failure, const std::function<void()>& cut) {
    const Error mine = this->mine(failure);
    const ErrorCode code = mine.code();
    if (size_ == 1) {
        cut();
        return mine;
    }
    // The entries in the store come before the cut. The cut ends connections and so wakes the other
    // ranks, which then look for these entries.
    const auto first = first_failure(mine);
    (void)store_.add(kGivesUp + std::to_string(rank_), 1);
    cut();
    if (failure.call)
        (void)store_.set(kAt + std::to_string(rank_), bytes_of(opinion_of(*failure.call)));
    // If the first failure was a disagreement, a rank that was cut off by it reports `refused` too:
    // the same mistake in the program has to be repaired.
    const bool refused =
        code == ErrorCode::refused || (first && first->code() == ErrorCode::refused);
    // A disagreement already says what each rank called. In a call between two ranks the other
    // ranks have no part.
    const bool alone = refused || !failure.call || !failure.call->is_collective();
    return Error(refused ? ErrorCode::refused : code,
                 mine.sentence() + (alone ? "" : others_at(failure)) +
                     (first ? "; the first failure was: " + first->sentence() : ""));
}

// A rank sees only its neighbours fail. An operator wants to read on every rank what the first rank
// saw, so that rank writes it to the store. Empty if this rank is the first, or if the store does
// not answer.
std::optional<Error> FailureStory::first_failure(const Error& mine) {
    auto count = store_.add(kFailures, 1);
    if (!count) return std::nullopt;
    if (*count == 1) {
        // The error's code becomes a letter in front of the sentence. The store does not answer
        // set(). It answers add(), and the answer proves that the set() before it has arrived.
        const char code = static_cast<char>('a' + static_cast<int>(mine.code()));
        (void)store_.set(kFirstFailure, code + mine.sentence());
        (void)store_.add(kFailures, 0);
        return std::nullopt;
    }
    auto first = store_.get(kFirstFailure, kOthersSay);
    // This rank may have announced it itself.
    if (!first || first->empty() || first->substr(1) == mine.sentence()) return std::nullopt;
    return Error(static_cast<ErrorCode>(first->front() - 'a'), first->substr(1));
}

// Describes where the other ranks are. A rank that writes nothing has not reached this call, is
// dead, or hangs. A rank that failed in another call is quoted with both calls.
std::string FailureStory::others_at(const Failure& failure) {
    const Opinion mine = opinion_of(*failure.call);
    const auto deadline = Clock::now() + kOthersSay;
    std::vector<int> silent, alive;
    std::string elsewhere;
    for (int other = 0; other < size_; ++other) {
        if (has_died(other, failure.lost)) {
            // No rank waits for it in vain that does not know.
            (void)store_.set(kAt + std::to_string(other), "");
            silent.push_back(other);
            continue;
        }
        auto at = store_.get(kAt + std::to_string(other), left_until(deadline));
        // The store is gone; it cannot tell who is missing.
        if (!at && at.error().code() != ErrorCode::timed_out) return "";
        if (!at || at->empty()) silent.push_back(other);
        if (!at) alive.push_back(other);
        // What another rank writes is checked before it is read: it may be another version of this
        // program.
        if (!at || at->size() != sizeof(Opinion)) continue;
        const Opinion theirs = opinion_in(*at);
        if (elsewhere.empty() && !(theirs == mine) && !is_pairwise(theirs))
            elsewhere = "; " + disagreement(mine, theirs, name_rank(other, job_));
    }
    return (silent.empty() ? "" : "; missing: " + name_ranks(silent, job_)) + elsewhere +
           in_other_groups(alive);
}

void FailureStory::waits_elsewhere(const std::string& call) {
    (void)store_.set(kElsewhere + std::to_string(rank_), call);
}

// Names one rank that waits in a call of another group.
std::string FailureStory::in_other_groups(const std::vector<int>& ranks) {
    for (int other : ranks) {
        auto call = store_.get(kElsewhere + std::to_string(other), kIfThere);
        if (call && !call->empty())
            return "; " + name_rank(other, job_) + " waits in " + *call +
                   ": all ranks must call their groups in the same order; with "
                   "GroupOptions::checked_launches the ranks compare it and name the first two "
                   "calls that differ";
        if (!call && call.error().code() != ErrorCode::timed_out) break;
    }
    return "";
}

// Whether a rank died: its connection closed, and it had not announced a failure before. Such a
// rank will write nothing more, so waiting for it would only delay the restart.
bool FailureStory::has_died(int other, int lost) {
    if (other != lost) return false;
    const auto word = store_.add(kGivesUp + std::to_string(other), 0);
    return word && *word == 0;
}

// Adding 0 reads the counter. A store that does not answer proves no failure.
bool FailureStory::elsewhere() {
    auto count = store_.add(kFailures, 0);
    return count && *count > 0;
}

// Each rank compares itself with rank 0, and rank 0 with rank 1. So a rank asks for one key,
// however many ranks there are, and a call that differs from rank 0's is found by the rank that
// makes it.
std::optional<Error> FailureStory::other_call(const Operation& mine) {
    if (!mine.is_collective() || size_ == 1) return std::nullopt;
    const Opinion here = opinion_of(mine);
    if (!store_.set(kWaits + std::to_string(rank_), bytes_of(here))) return std::nullopt;
    const int other = rank_ == 0 ? 1 : 0;
    auto said = store_.get(kWaits + std::to_string(other), kIfThere);
    if (!said || said->size() != sizeof(Opinion)) return std::nullopt;
    const Opinion there = opinion_in(*said);
    if (there == here || there.sequence != here.sequence) return std::nullopt;
    return Error(ErrorCode::refused, disagreement(here, there, name_rank(other, job_)));
}

}  // namespace ddprun::trainer
