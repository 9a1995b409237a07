// What all backends share: numbering calls, splitting, and explaining a failure through the store.
#include "trainer/group/process_group.h"

#include <algorithm>
#include <numeric>

#include "trainer/group/guarded_store.h"
#include "trainer/group/left_until.h"

namespace ddprun::trainer {
namespace {

// Keys in the group's store.
constexpr char kMonitored[] = "group/monitored/";  // + sequence / rank
// After so many shapes the counts begin again, on all ranks at the same call: a program with new
// shapes in each step would fill the memory.
constexpr std::size_t kMostShapes = 4096;
using Clock = std::chrono::steady_clock;

}  // namespace

ProcessGroup::ProcessGroup(const Context& context, std::unique_ptr<Store> store,
                           const GroupOptions& options)
    : context_(context),
      options_(options),
      store_(std::move(store)),
      story_(*store_, rank(), size(), context_.job_ranks) {}

// Gives a call its number. The numbers follow the order in which the caller makes its calls, so
// they are given in the caller's thread. Calls between two ranks count apart: the other ranks do
// not make them, and the numbers of collective calls must be equal on all ranks. All ranks have
// made the same calls so far, so all of them decide alike whether this one is compared.
Result<Operation> ProcessGroup::numbered(const Operation& operation) {
    if (auto good = check(operation, rank(), size()); !good) return good.error();
    if (auto end = over()) return *end;
    Operation own = operation;
    // The average over one rank is the sum over it, for which a backend has nothing to do in place.
    if (size() == 1 && own.op == ReduceOp::avg) own.op = ReduceOp::sum;
    own.sequence = operation.is_collective() ? ++sequence_ : ++pairwise_;
    if (!own.is_collective()) return own;
    if (auto good = check_launch(own); !good) return good.error();
    const Opinion o = opinion_of(own);
    if (calls_.size() >= kMostShapes) calls_.clear();
    auto& calls = calls_[Shape(o.kind, o.type, o.count, o.op, o.root, o.caller)];
    own.compared = ++calls <= std::max<std::uint64_t>(options_.checked_calls, 1);
    return own;
}

Work ProcessGroup::begin(const Operation& operation) {
    auto own = numbered(operation);
    return own ? enqueue(*own) : Work::finished(own.error());
}

Result<void> ProcessGroup::call(const Operation& operation) {
    auto own = numbered(operation);
    return own ? carry_out(*own) : own.error();
}

Result<GroupMemory> ProcessGroup::allocate(std::size_t bytes) {
    return GroupMemory::make(memory(), bytes);
}

std::shared_ptr<void> ProcessGroup::registered(void*, std::size_t) { return nullptr; }

// The reason comes before the cut, so that no call begins after it.
void ProcessGroup::abort() {
    end_with(Error(ErrorCode::closed, name_rank_of(rank(), size(), context_.job_ranks) +
                                          ": the group was aborted; make a new one"));
    cut();
}

std::optional<Error> ProcessGroup::over() const {
    if (!is_over_) return std::nullopt;
    std::lock_guard lock(over_mutex_);
    return over_;
}

void ProcessGroup::end_with(const Error& error) {
    std::lock_guard lock(over_mutex_);
    if (!over_) over_ = error;
    is_over_ = true;
}

// On host memory the numbers are used where they are: stage() and take_back() then do nothing.
Result<void> ProcessGroup::all_reduce_values(std::span<double> values, ReduceOp op,
                                             const char* caller) {
    auto staged = stage(buffer_of(values));
    if (!staged) return staged.error();
    const auto operation = Operation::all_reduce(*staged, op).on(stage_stream()).of(caller);
    if (auto done = call(operation); !done) return done;
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
    return Error(ErrorCode::timed_out, name_ranks(absent, context_.job_ranks) +
                                           " did not reach the barrier within " +
                                           std::to_string(timeout().count()) + " ms");
}

Error ProcessGroup::fail(const FailureStory::Failure& failure) {
    const Error told = story_.tell(failure, [this] { cut(); });
    end_with(told);
    return told;
}

// The ranks of this group that have the same color, in their order. Empty for no group.
Result<std::vector<int>> ProcessGroup::members_of(int color) {
    // Each rank fills its own place in a vector of zeros. The sum gives every rank all colors. 0
    // stands for no group.
    std::vector<double> colors(static_cast<std::size_t>(size()));
    colors[static_cast<std::size_t>(rank())] = color < 0 ? 0 : color + 1.0;
    if (auto done = all_reduce_values(colors); !done) return done.error();
    std::vector<int> members;
    for (int other = 0; other < size(); ++other)
        if (color >= 0 && colors[static_cast<std::size_t>(other)] == color + 1.0)
            members.push_back(other);
    return members;
}

// Of the last split.
std::string ProcessGroup::name_of_part(int color) const {
    const std::string name =
        "color " + std::to_string(color) + " of split " + std::to_string(splits_);
    return context_.job_ranks.empty() ? name : name + " of " + name_;
}

// This rank's place in the new group: its position among the members.
Context ProcessGroup::place_among(const std::vector<int>& members) const {
    Context place = context_;
    place.world_size = static_cast<int>(members.size());
    place.job_ranks = job_ranks_of_part(context_.job_ranks, members);
    for (std::size_t i = 0; i < members.size(); ++i)
        if (members[i] == rank()) place.rank = Rank(static_cast<int>(i));
    return place;
}

// One group has its own order already. So the check begins with the first split, at the same call
// on all ranks.
Result<void> ProcessGroup::watch_order() {
    if (order_ || options_.checked_launches == 0 || size() == 1) return {};
    auto pairs = store_->another("order"), own = store_->another("");
    if (!pairs) return pairs.error();
    if (!own) return own.error();
    std::vector<int> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    order_ = std::make_shared<LaunchOrder>(std::move(*pairs), rank(), options_.checked_launches);
    order_->add({"the whole group", std::move(all), std::move(*own)});
    return {};
}

// Gives a part its place in the common order.
Result<void> ProcessGroup::watch_part(ProcessGroup& part, const std::vector<int>& members) const {
    if (!order_) return {};
    auto own = part.store().another("");
    if (!own) return own.error();
    part.order_ = order_;
    part.place_in_order_ =
        order_->add(order_->part(place_in_order_, part.name_, members, std::move(*own)));
    return {};
}

// Before anything of the call is sent.
Result<void> ProcessGroup::check_launch(const Operation& operation) {
    if (!order_) return {};
    auto good = order_->next(place_in_order_, operation, [this] { cut(); });
    if (!good) end_with(good.error());
    return good;
}

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::split(int color) {
    if (auto done = watch_order(); !done) return done.error();
    auto members = members_of(color);
    if (!members) return members.error();
    const Context place = place_among(*members);
    const std::uint64_t number = ++splits_;
    std::unique_ptr<ProcessGroup> made;
    GuardedStore* guard = nullptr;
    // In its turn, because operations that were begun may still use the backend.
    auto done = in_turn([&]() -> Result<void> {
        const CallTeller::Call told(teller_, kSplitCall, number);
        // A folder of its own, because the new group uses the same keys as this one.
        auto own = store_->another("split/" + std::to_string(number) + "/" + std::to_string(color));
        if (!own) return own.error();
        auto guarded =
            std::make_unique<GuardedStore>(std::move(*own), [this] { return story_.elsewhere(); });
        guard = guarded.get();
        auto part = split_backend(place, std::move(guarded), color);
        if (!part) return part.error();
        made = std::move(*part);
        if (!made) return {};
        made->name_ = name_of_part(color);
        return watch_part(*made, *members);
    });
    if (auto confirmed = confirm_split(done, number); !confirmed) return confirmed.error();
    if (made) guard->release();
    return made;
}

// A rank that cannot make its part ends this group, so that the others do not wait for it in
// theirs. All ranks meet once more: a part is good only when all are.
Result<void> ProcessGroup::confirm_split(const Result<void>& made, std::uint64_t number) {
    if (made) return call(Operation::barrier().of("split"));
    if (auto end = over()) return *end;
    return in_turn([&]() -> Result<void> {
        return fail({std::nullopt, "split number " + std::to_string(number), made.error(), -1});
    });
}

}  // namespace ddprun::trainer
