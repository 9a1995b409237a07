#include "trainer/group/process_group.h"

#include <algorithm>

namespace ddprun::trainer {
namespace {

constexpr char kFailures[] = "group/failures";
constexpr char kFirstFailure[] = "group/first_failure";
constexpr char kGivesUp[] = "group/gives_up/";     // + rank: a counter, said before the cut
constexpr char kAt[] = "group/at/";                // + rank: where this rank was when it failed
constexpr char kMonitored[] = "group/monitored/";  // + sequence / rank
// What a failing rank waits at most, in all, for the others to say where they are.
constexpr auto kOthersSay = std::chrono::milliseconds(1000);

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds left_until(Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    return std::max(left, std::chrono::milliseconds(1));
}

std::string bytes_of(const Opinion& opinion) {
    return {reinterpret_cast<const char*>(&opinion), sizeof opinion};
}

}  // namespace

ProcessGroup::ProcessGroup(const Context& context, std::unique_ptr<Store> store,
                           const GroupOptions& options)
    : context_(context), options_(options), store_(std::move(store)) {}

// The caller's order is the group's; so the number is given here, in the caller's thread.
Result<Operation> ProcessGroup::numbered(const Operation& operation) {
    if (auto good = check(operation, rank(), size()); !good) return good.error();
    Operation own = operation;
    own.sequence = operation.is_collective() ? ++sequence_ : ++pairwise_;
    return own;
}

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

Result<void> ProcessGroup::work(const Operation& operation, Started* started) {
    if (failed_) return *failed_;
    auto done = operation.kind == Collective::monitored_barrier ? meet_monitored(operation)
                                                                : run(operation, started);
    if (!done) return fail(operation, done.error());
    return {};
}

Result<void> ProcessGroup::all_reduce_values(std::span<double> values, ReduceOp op) {
    auto staged = stage(buffer_of(values));
    if (!staged) return staged.error();
    if (auto done = all_reduce(*staged, op); !done) return done;
    return take_back(*staged, buffer_of(values));
}

// Each rank waits for all, so that each can say who is absent; that is what this barrier is for.
Result<void> ProcessGroup::meet_monitored(const Operation& operation) {
    if (size() == 1) return {};
    const auto deadline = Clock::now() + timeout();
    const std::string key = kMonitored + std::to_string(operation.sequence) + "/";
    if (auto done = store_->set(key + std::to_string(rank()), "here"); !done) return done;
    std::vector<int> absent;
    for (int other = 0; other < size(); ++other) {
        auto here = store_->get(key + std::to_string(other), left_until(deadline));
        if (here) continue;
        if (here.error().code() != ErrorCode::timed_out) return here.error();
        absent.push_back(other);
    }
    if (absent.empty()) return {};
    return Error(ErrorCode::timed_out, name_ranks(absent) + " did not come within " +
                                           std::to_string(timeout().count()) + " ms");
}

Error ProcessGroup::fail(const Operation& operation, const Error& reason) {
    const Error mine(reason.code(), "rank " + std::to_string(rank()) + " of " +
                                        std::to_string(size()) + ": " + describe(operation) +
                                        " failed: " + reason.sentence());
    // The word in the store comes before the cut, which wakes the others: they shall find it.
    const auto first = size() > 1 ? first_failure(mine) : std::nullopt;
    if (size() > 1) (void)store_->add(kGivesUp + std::to_string(rank()), 1);
    abort();
    failed_ = mine;
    if (size() > 1) {
        // Ranks that were cut off because others disagreed have the same mistake to mend.
        const bool refused = first && first->code() == ErrorCode::refused;
        failed_ = Error(refused ? ErrorCode::refused : mine.code(),
                        mine.sentence() +
                            others_at(operation, refused || mine.code() == ErrorCode::refused) +
                            (first ? "; the first failure was: " + first->sentence() : ""));
    }
    return *failed_;
}

// A ring notices its neighbours only; what the first rank saw is what an operator wants to read on
// every rank. Nothing when that is this one.
std::optional<Error> ProcessGroup::first_failure(const Error& mine) {
    auto count = store_->add(kFailures, 1);
    if (!count) return std::nullopt;
    if (*count == 1) {
        // With the code in front; the answer to add() says that it has arrived.
        const char code = static_cast<char>('a' + static_cast<int>(mine.code()));
        (void)store_->set(kFirstFailure, code + mine.sentence());
        (void)store_->add(kFailures, 0);
        return std::nullopt;
    }
    auto first = store_->get(kFirstFailure, kOthersSay);
    if (!first || first->empty()) return std::nullopt;
    return Error(static_cast<ErrorCode>(first->front() - 'a'), first->substr(1));
}

// Who says nothing has not come to this call (or is dead, or hangs); who was elsewhere is told from
// us.
std::string ProcessGroup::others_at(const Operation& operation, bool refused) {
    const Opinion mine = opinion_of(operation);
    (void)store_->set(kAt + std::to_string(rank()), bytes_of(mine));
    // Who calls what was said already, and with a call between two the others have nothing to do.
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
        if (!at && at.error().code() != ErrorCode::timed_out) return "";
        if (!at) silent.push_back(other);
        if (!at || at->size() != sizeof(Opinion)) continue;
        Opinion theirs;
        at->copy(reinterpret_cast<char*>(&theirs), sizeof theirs);
        const bool pairwise = theirs.kind == static_cast<std::uint32_t>(Collective::send) ||
                              theirs.kind == static_cast<std::uint32_t>(Collective::receive) ||
                              theirs.kind == static_cast<std::uint32_t>(Collective::exchange);
        if (elsewhere.empty() && !(theirs == mine) && !pairwise)
            elsewhere = "; " + disagreement(mine, theirs, other);
    }
    return (silent.empty() ? "" : "; missing: " + name_ranks(silent)) + elsewhere;
}

// Its connection was closed, and no word of its own had come before: it will say nothing more, and
// a restart shall not wait for it.
bool ProcessGroup::has_died(int other) {
    if (other != lost_) return false;
    const auto word = store_->add(kGivesUp + std::to_string(other), 0);
    return word && *word == 0;
}

bool ProcessGroup::failed_elsewhere() {
    auto count = store_->add(kFailures, 0);
    return count && *count > 0;
}

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::split(int color) {
    using Made = Result<std::unique_ptr<ProcessGroup>>;
    // As one number a rank in a shared sum: 0 stands for no group.
    std::vector<double> colors(static_cast<std::size_t>(size()));
    colors[static_cast<std::size_t>(rank())] = color < 0 ? 0 : color + 1.0;
    if (auto done = all_reduce_values(colors); !done) return done.error();
    const std::uint64_t number = ++splits_;
    Context place = context_;
    place.world_size = 0;
    for (int other = 0; other < size(); ++other) {
        if (color < 0 || colors[static_cast<std::size_t>(other)] != color + 1.0) continue;
        if (other == rank()) place.rank = Rank(place.world_size);
        ++place.world_size;
    }
    auto store = store_->another("split/" + std::to_string(number) + "/" + std::to_string(color));
    if (!store) return store.error();
    Made made;
    auto done = queue_.run_now([&]() -> Result<void> {
        made = split_backend(place, std::move(*store), color);
        return {};
    });
    if (!done) return done.error();
    return made;
}

}  // namespace ddprun::trainer
