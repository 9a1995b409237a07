// What all backends share: numbering calls, splitting, and explaining a failure through the store.
#include "trainer/group/process_group.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

// Keys in the group's store.
constexpr char kFailures[] = "group/failures";           // counter: how many ranks have failed
constexpr char kFirstFailure[] = "group/first_failure";  // code and sentence of the first one
constexpr char kGivesUp[] = "group/gives_up/";           // + rank: counter, raised before the cut
constexpr char kAt[] = "group/at/";                // + rank: the call in which this rank failed
constexpr char kMonitored[] = "group/monitored/";  // + sequence / rank
// How long a failing rank waits, in all, for the other ranks to write where they are.
constexpr auto kOthersSay = std::chrono::milliseconds(1000);

using Clock = std::chrono::steady_clock;

// At least 1 ms: a key that is already there can still be read after the deadline.
std::chrono::milliseconds left_until(Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

// The form in which a rank writes its opinion to the store.
std::string bytes_of(const Opinion& opinion) {
    return {reinterpret_cast<const char*>(&opinion), sizeof opinion};
}

}  // namespace

ProcessGroup::ProcessGroup(const Context& context, std::unique_ptr<Store> store,
                           const GroupOptions& options)
    : context_(context), options_(options), store_(std::move(store)) {}

// Gives a call its number. The numbers follow the order in which the caller makes its calls, so
// they are given in the caller's thread. Calls between two ranks count apart: the other ranks do
// not make them, and the numbers of collective calls must be equal on all ranks.
Result<Operation> ProcessGroup::numbered(const Operation& operation) {
    if (auto good = check(operation, rank(), size()); !good) return good.error();
    Operation own = operation;
    own.sequence = operation.is_collective() ? ++sequence_ : ++pairwise_;
    return own;
}

// start() runs now, in the caller's thread and in the caller's order; work() runs in its turn.
Work ProcessGroup::begin(const Operation& operation) {
    auto own = numbered(operation);
    if (!own) return Work::finished(own.error());
    return queue_.push([this, operation = *own, started = start(*own, false)] {
        return work(operation, started.get());
    });
}

Result<void> ProcessGroup::call(const Operation& operation) {
    auto own = numbered(operation);
    if (!own) return own.error();
    return queue_.run_now([this, operation = *own, started = start(*own, true)] {
        return work(operation, started.get());
    });
}

// Runs on the queue's thread, or in the caller's thread if the queue is empty. Never in both at a
// time.
Result<void> ProcessGroup::work(const Operation& operation, Started* started) {
    if (failed_) return *failed_;
    const CallTeller::Call told(teller_, operation);
    auto done = operation.kind == Collective::monitored_barrier ? meet_monitored(operation)
                                                                : run(operation, started);
    if (!done) return fail(operation, done.error());
    return {};
}

// On host memory the numbers are used where they are: stage() and take_back() then do nothing.
Result<void> ProcessGroup::all_reduce_values(std::span<double> values, ReduceOp op) {
    auto staged = stage(buffer_of(values));
    if (!staged) return staged.error();
    if (auto done = all_reduce(*staged, op); !done) return done;
    return take_back(*staged, buffer_of(values));
}

// Every rank waits for every other rank, so that each can name the absent ones. That is the purpose
// of this barrier, and it costs one request to the store for each rank.
Result<void> ProcessGroup::meet_monitored(const Operation& operation) {
    if (size() == 1) return {};
    const auto deadline = Clock::now() + timeout();
    const std::string key = kMonitored + std::to_string(operation.sequence) + "/";
    if (auto done = store_->set(key + std::to_string(rank()), "here"); !done) return done;
    std::vector<int> absent;
    for (int other = 0; other < size(); ++other) {
        auto here = store_->get(key + std::to_string(other), left_until(deadline));
        if (here) continue;
        // Any other error means that the store is gone. Then nothing is known about the other
        // ranks.
        if (here.error().code() != ErrorCode::timed_out) return here.error();
        absent.push_back(other);
    }
    if (absent.empty()) return {};
    return Error(ErrorCode::timed_out, name_ranks(absent) + " did not reach the barrier within " +
                                           std::to_string(timeout().count()) + " ms");
}

// Ends the group after a failed operation and composes the error for the program.
Error ProcessGroup::fail(const Operation& operation, const Error& reason) {
    const Error mine(reason.code(), "rank " + std::to_string(rank()) + " of " +
                                        std::to_string(size()) + ": " + describe(operation) +
                                        " failed: " + reason.sentence());
    // The entries in the store come before abort(). abort() cuts the connections and so wakes the
    // other ranks, which then look for these entries.
    const auto first = size() > 1 ? first_failure(mine) : std::nullopt;
    if (size() > 1) (void)store_->add(kGivesUp + std::to_string(rank()), 1);
    abort();
    failed_ = mine;
    if (size() > 1) {
        // If the first failure was a disagreement, a rank that was cut off by it reports `refused`
        // too: the same mistake in the program has to be repaired.
        const bool refused = first && first->code() == ErrorCode::refused;
        failed_ = Error(refused ? ErrorCode::refused : mine.code(),
                        mine.sentence() +
                            others_at(operation, refused || mine.code() == ErrorCode::refused) +
                            (first ? "; the first failure was: " + first->sentence() : ""));
    }
    return *failed_;
}

// A rank in a ring sees only its neighbours fail. An operator wants to read on every rank what the
// first rank saw, so that rank writes it to the store. Empty if this rank is the first, or if the
// store does not answer.
std::optional<Error> ProcessGroup::first_failure(const Error& mine) {
    auto count = store_->add(kFailures, 1);
    if (!count) return std::nullopt;
    if (*count == 1) {
        // The error's code becomes a letter in front of the sentence. The store does not answer
        // set(). It answers add(), and the answer proves that the set() before it has arrived.
        const char code = static_cast<char>('a' + static_cast<int>(mine.code()));
        (void)store_->set(kFirstFailure, code + mine.sentence());
        (void)store_->add(kFailures, 0);
        return std::nullopt;
    }
    auto first = store_->get(kFirstFailure, kOthersSay);
    if (!first || first->empty()) return std::nullopt;
    return Error(static_cast<ErrorCode>(first->front() - 'a'), first->substr(1));
}

// Describes where the other ranks are. A rank that writes nothing has not reached this call, is
// dead, or hangs. A rank that failed in another call is quoted with both calls.
std::string ProcessGroup::others_at(const Operation& operation, bool refused) {
    const Opinion mine = opinion_of(operation);
    (void)store_->set(kAt + std::to_string(rank()), bytes_of(mine));
    // A disagreement already says what each rank called. In a call between two ranks the other
    // ranks have no part.
    if (refused || !operation.is_collective()) return "";
    const auto deadline = Clock::now() + kOthersSay;
    std::vector<int> silent;
    std::string elsewhere;
    for (int other = 0; other < size(); ++other) {
        if (has_died(other)) {
            silent.push_back(other);
            continue;
        }
        auto at = store_->get(kAt + std::to_string(other), left_until(deadline));
        // The store is gone; it cannot tell who is missing.
        if (!at && at.error().code() != ErrorCode::timed_out) return "";
        if (!at) silent.push_back(other);
        // What another rank writes is checked before it is read: it may be another version of this
        // program.
        if (!at || at->size() != sizeof(Opinion)) continue;
        Opinion theirs;
        at->copy(reinterpret_cast<char*>(&theirs), sizeof theirs);
        // A call between two ranks has a count of its own, so comparing numbers would mislead.
        const bool pairwise = theirs.kind == static_cast<std::uint32_t>(Collective::send) ||
                              theirs.kind == static_cast<std::uint32_t>(Collective::receive) ||
                              theirs.kind == static_cast<std::uint32_t>(Collective::exchange);
        if (elsewhere.empty() && !(theirs == mine) && !pairwise)
            elsewhere = "; " + disagreement(mine, theirs, other);
    }
    return (silent.empty() ? "" : "; missing: " + name_ranks(silent)) + elsewhere;
}

// Whether a rank died: its connection closed, and it had not announced a failure before. Such a
// rank will write nothing more, so waiting for it would only delay the restart.
bool ProcessGroup::has_died(int other) {
    if (other != lost_) return false;
    const auto word = store_->add(kGivesUp + std::to_string(other), 0);
    return word && *word == 0;
}

// Adding 0 reads the counter. A store that does not answer proves no failure.
bool ProcessGroup::failed_elsewhere() {
    auto count = store_->add(kFailures, 0);
    return count && *count > 0;
}

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::split(int color) {
    using Made = Result<std::unique_ptr<ProcessGroup>>;
    // Each rank fills its own place in a vector of zeros. The sum gives every rank all colors. 0
    // stands for no group.
    std::vector<double> colors(static_cast<std::size_t>(size()));
    colors[static_cast<std::size_t>(rank())] = color < 0 ? 0 : color + 1.0;
    if (auto done = all_reduce_values(colors); !done) return done.error();
    const std::uint64_t number = ++splits_;
    // This rank's place in the new group: its position among the ranks of its color.
    Context place = context_;
    place.world_size = 0;
    for (int other = 0; other < size(); ++other) {
        if (color < 0 || colors[static_cast<std::size_t>(other)] != color + 1.0) continue;
        if (other == rank()) place.rank = Rank(place.world_size);
        ++place.world_size;
    }
    // A folder of its own, because the new group uses the same keys as this one.
    auto store = store_->another("split/" + std::to_string(number) + "/" + std::to_string(color));
    if (!store) return store.error();
    Made made;
    // In the queue, because operations that were begun may still use the backend.
    auto done = queue_.run_now([&]() -> Result<void> {
        const CallTeller::Call told(teller_, kSplitCall, number);
        made = split_backend(place, std::move(*store), color);
        return {};
    });
    if (!done) return done.error();
    return made;
}

}  // namespace ddprun::trainer
