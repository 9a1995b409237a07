// The group around libtorch's Gloo: the meeting of the ranks, agreement on each call, and failures.
#include "trainer/torch/torch_group.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/system/no_pipe_signal.h"
#include "trainer/choice/backend_choice.h"
#include "trainer/group/compared_calls.h"
#include "trainer/group/left_until.h"
#include "trainer/group/meet.h"
#include "trainer/group/queued_group.h"
#include "trainer/nccl/process_group_nccl.h"
#include "trainer/torch/loss_watch.h"
#include "trainer/torch/torch_calls.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using Made = Result<std::unique_ptr<ProcessGroup>>;

// Keys in the group's store.
constexpr char kHere[] = "torch/here";    // + rank: this rank has come
constexpr char kPlace[] = "torch/place";  // the prefix of c10d's keys
constexpr char kEnds[] = "torch/ends/";   // + rank: the near ends of its connections

class TorchGroup final : public QueuedGroup {
  public:
    TorchGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options)
        : QueuedGroup(context, std::move(store), options) {}
    ~TorchGroup() override {
        stop();
        // No goodbye after a failure: the other ranks must take the end of this rank for a loss.
        if (watch_ && !over() && !calls_->aborted()) LossWatch::say_goodbye(store(), rank());
        watch_.reset();  // it refers to the connections
    }

    static Made make(const Context& context, std::unique_ptr<Store> store,
                     const GroupOptions& options) {
        auto group = std::make_unique<TorchGroup>(context, std::move(store), options);
        if (context.world_size > 1)
            if (auto done = group->connect(); !done) return done.error();
        return std::unique_ptr<ProcessGroup>(std::move(group));
    }

    const char* backend() const override { return "gloo"; }
    Memory memory() const override { return Memory::host; }

  protected:
    void cut() override {
        if (watch_) watch_->expect_cut();
        if (calls_) calls_->abort();
    }

    // c10d must see the calls in one order on all ranks, so each begins in its turn.
    std::shared_ptr<Started> start(const Operation&, bool) override { return nullptr; }

    Result<void> run(const Operation& operation, Started*) override {
        if (size() == 1) return run_alone(operation);
        const NoPipeSignal guard;
        waiting_ = &operation;
        looked_ = false;
        try {
            if (!operation.is_collective()) return pairwise(operation);
            if (auto agreed = agree(operation); !agreed) return agreed;
            // A call without elements moves nothing, but it still waits for all ranks.
            calls_->run(operation.count() ? operation : Operation::barrier());
            return {};
        } catch (const std::exception& problem) {
            return explain(problem);
        }
    }

    Made split_backend(const Context& place, std::unique_ptr<Store> own, int color) override {
        if (color < 0) return std::unique_ptr<ProcessGroup>();
        return make(place, std::move(own), options());
    }

  private:
    // One deadline for the meeting and the connecting. Rank 0 invents the prefix of c10d's keys, so
    // that two groups never meet.
    Result<void> connect() {
        const auto deadline = Clock::now() + timeout();
        if (auto all = meet_all(context(), store(), kHere, deadline, timeout()); !all) return all;
        if (rank() == 0) {
            const auto now = Clock::now().time_since_epoch().count();
            const std::string place = std::to_string(getpid()) + "." + std::to_string(now);
            if (auto done = store().set(kPlace, place); !done) return done;
        }
        auto place = store().get(kPlace, left_until(deadline));
        if (!place) return place.error();
        // c10d's threads inherit the blocked signal: a dead rank must not end this process by
        // SIGPIPE.
        const NoPipeSignal guard;
        try {
            calls_ = std::make_unique<TorchCalls>(
                context(),
                "ddprun_trainer/" + std::to_string(context().generation.value) + "/torch/" + *place,
                left_until(deadline), timeout(), [this] { ask_other_ranks(); });
        } catch (const std::exception& problem) {
            const Error error = error_of_torch(problem);
            return Error(error.code(), name_rank_of(rank(), size(), context().job_ranks) +
                                           " cannot connect: " + error.sentence());
        }
        return watch(deadline);
    }

    // The ranks tell each other the near ends of their connections. The far end of one of ours is
    // the near end of one of theirs.
    Result<void> watch(Clock::time_point deadline) {
        const std::string mine = calls_->sockets().ends();
        if (auto done = store().set(kEnds + std::to_string(rank()), mine); !done) return done;
        std::vector<std::pair<int, int>> links;
        for (int other = 0; other < size(); ++other) {
            if (other == rank()) continue;
            auto theirs = store().get(kEnds + std::to_string(other), left_until(deadline));
            if (!theirs) return theirs.error();
            for (int fd : calls_->sockets().links_to(*theirs)) links.emplace_back(fd, other);
        }
        auto made = LossWatch::start(store(), std::move(links), [this] { calls_->abort(); });
        if (!made) return made.error();
        watch_ = std::move(*made);
        return {};
    }

    std::string name(int other) const { return name_rank(other, context().job_ranks); }

    // While a call waits. A rank that waits for a rank which hangs learns here that a third one has
    // failed. A call that was there the last time too may wait for a rank that waits for us in
    // another call.
    void ask_other_ranks() {
        if (story().elsewhere()) {
            elsewhere_ = true;
            return cut();
        }
        if (!std::exchange(looked_, true)) return;
        mismatch_ = story().other_call(*waiting_);
        if (!mismatch_) return;
        // Before the cut, which the other ranks would take for the first failure.
        story().announce({*waiting_, describe(*waiting_), *mismatch_, -1});
        cut();
    }

    // In a world of one the output is the input.
    static Result<void> run_alone(const Operation& o) {
        if (o.out.data != o.in.data && o.out.bytes())
            std::memcpy(o.out.data, o.in.data, o.out.bytes());
        return {};
    }

    // What libtorch saw is often only a reaction of another rank, or the cut. The watches know
    // which rank was lost first, so the message names that one.
    Error explain(const std::exception& problem) {
        if (mismatch_) return *mismatch_;
        const Error seen = error_of_torch(problem);
        if (seen.code() == ErrorCode::timed_out) return seen;
        const int lost = LossWatch::first_lost(store());
        if (lost >= 0 && lost != rank()) {
            lose(lost);
            return Error(ErrorCode::closed, "the connection to " + name(lost) +
                                                " was closed: that rank has died or given up");
        }
        if (!calls_->aborted()) return seen;
        return Error(ErrorCode::closed, elsewhere_ ? "another rank's group has failed"
                                                   : "this rank's group was aborted");
    }

    // Compares this call on all ranks: if two of them disagree on a size, Gloo ends the process.
    // All ranks decide alike whether to compare.
    Result<void> agree(const Operation& operation) {
        if (!operation.compared) return {};
        Opinion mine = opinion_of(operation);
        std::vector<Opinion> all(static_cast<std::size_t>(size()));
        calls_->run(Operation::all_gather({&mine, sizeof mine, DataType::uint8},
                                          {all.data(), all.size() * sizeof mine, DataType::uint8}));
        return compare_calls(operation, all, context().job_ranks);
    }

    Result<void> pairwise(const Operation& o) {
        return call_pairwise(o, context().job_ranks, [&](int tag, auto out, auto in) {
            calls_->exchange(tag, out, o.root, in, o.source);
            return Result<void>();
        });
    }

    std::unique_ptr<TorchCalls> calls_;  // null in a world of one
    std::unique_ptr<LossWatch> watch_;
    // Only the thread that runs operations uses these.
    bool elsewhere_ = false;  // the connections were cut because another rank has failed
    const Operation* waiting_ = nullptr;  // the newest call
    bool looked_ = false;                 // at the other ranks, while it waits
    std::optional<Error> mismatch_;       // another rank waits in another call
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_torch_group(const Context& context, Store& store,
                                                       const GroupOptions& options) {
    const auto deadline = Clock::now() + options.timeout;
    CallTeller teller;
    const CallTeller::Call told(teller, kMeetingCall, 0);
    auto own = another_of_kind(store, "group", context.rank);
    if (!own) return own.error();
    auto backend = agree_on_backend(context, **own, options, deadline);
    if (!backend) return backend.error();
    return *backend == Backend::nccl ? make_nccl_group(context, std::move(*own), options, deadline)
                                     : TorchGroup::make(context, std::move(*own), options);
}

}  // namespace ddprun::trainer
