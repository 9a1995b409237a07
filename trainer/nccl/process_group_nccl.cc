// The NCCL backend. begin() gives a call to the GPU in the caller's thread, so that what a program
// begins in one order is launched in this order, also on several groups. NCCL does not check that
// the ranks make the same call; if they do not, it may hang. So the ranks compare their first calls
// of each shape through the store.
#include "trainer/nccl/process_group_nccl.h"

#include <atomic>
#include <future>

#include "base/system/start_thread.h"
#include "trainer/group/guarded_store.h"
#include "trainer/nccl/nccl_comm.h"
#include "trainer/nccl/nccl_watch.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kCall[] = "nccl/call/";  // + number of the call: rank 0's opinion
constexpr auto kSlice = milliseconds(100);
// How long a group that ends waits for NCCL's abort.
constexpr auto kAbort = std::chrono::seconds(5);

class NcclGroup final : public ProcessGroup {
  public:
    // `launching` is held while a call is launched; groups that were split from each other have
    // one.
    NcclGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options,
              const nccl::Functions& nccl, int gpu, std::shared_ptr<std::mutex> launching)
        : ProcessGroup(context, std::move(store), options),
          nccl_(nccl),
          gpu_(gpu),
          comm_(std::make_shared<NcclComm>(nccl, gpu)),
          launching_(std::move(launching)) {}

    // The watch ends first: it waits for the calls under way. An abort that does not end keeps the
    // communicator, and goes on without this object.
    ~NcclGroup() override {
        watch_.reset();
        if (!aborter_.joinable()) return;
        if (aborted_->get_future().wait_for(kAbort) == std::future_status::ready)
            aborter_.join();
        else
            aborter_.detach();
    }

    const char* backend() const override { return "nccl"; }
    Memory memory() const override { return Memory::gpu; }

    Result<GroupMemory> allocate(std::size_t bytes) override {
        const GpuTurn turn(gpu_);
        if (!turn.chosen()) return turn.chosen().error();
        return comm_->allocate(bytes);
    }
    std::shared_ptr<void> registered(void* memory, std::size_t bytes) override {
        return comm_->registered(memory, bytes);
    }

    // Connects the communicator by `join` until `deadline`, then starts the watch.
    Result<void> connect(const std::function<Result<void>(NcclComm&, const NcclComm::Alive&)>& join,
                         const std::function<bool()>& failed_elsewhere,
                         Clock::time_point deadline) {
        const GpuTurn turn(gpu_);
        if (!turn.chosen()) return turn.chosen();
        if (auto done = comm_->prepare(options().priority); !done) return done;
        auto neighbours = Neighbours::connect(context(), store(), deadline);
        if (!neighbours) return neighbours.error();
        auto own = store().another("");
        if (!own) return own.error();
        auto ask_again = Clock::now();
        const auto alive = [&]() -> Result<void> {
            const auto now = Clock::now();
            if (now > deadline)
                return Error(ErrorCode::timed_out, "NCCL was not ready after " +
                                                       std::to_string(timeout().count()) + " ms");
            if (now < ask_again) return {};
            ask_again = now + kSlice;
            if (failed_elsewhere()) return Error(ErrorCode::closed, "another rank has failed");
            return {};
        };
        if (auto done = join(*comm_, alive); !done) {
            cut_now();
            return done;
        }
        NcclWatch::Group watched{rank(),
                                 size(),
                                 gpu_,
                                 timeout(),
                                 [this] { return comm_->async_error(); },
                                 [this] { cut_now(); },
                                 [this](const Error& error) { end_with(error); },
                                 [this] { return group_name(); },
                                 context().job_ranks};
        auto watch =
            NcclWatch::start(std::move(watched), std::move(*own), std::move(*neighbours), teller());
        if (!watch) {
            cut_now();
            return watch.error();
        }
        watch_ = std::move(*watch);
        return {};
    }

    Result<void> connect_to_all(const std::function<bool()>& failed_elsewhere,
                                Clock::time_point deadline) {
        return connect(
            [&](NcclComm& comm, const NcclComm::Alive& alive) {
                return comm.connect(store(), rank(), size(), deadline, alive);
            },
            failed_elsewhere, deadline);
    }

    using ProcessGroup::fail;

  protected:
    Work enqueue(const Operation& operation) override {
        // A barrier of the host: nothing is launched, and the host waits.
        if (operation.kind == Collective::monitored_barrier) {
            auto done = meet_monitored(operation);
            if (done) return Work::finished(done);
            auto flight = watch_->begin(operation);
            watch_->fail(flight, done.error());
            return Work(flight);
        }
        const GpuTurn turn(gpu_);
        const bool captured = gpu_is_captured(operation.stream);
        // A graph only describes the call, so nobody waits for its end.
        auto flight = captured ? std::make_shared<Flight>(gpu_) : watch_->begin(operation);
        auto done = turn.chosen() ? launch(operation, *flight, captured) : turn.chosen();
        if (!done && captured) flight->end(done);
        if (!done && !captured) watch_->fail(flight, done.error());
        return Work(flight);
    }

    Result<void> carry_out(const Operation& operation) override {
        return enqueue(operation).wait();
    }

    // Calls are launched in the caller's thread, so they all are before the task.
    Result<void> in_turn(const std::function<Result<void>()>& task) override { return task(); }

    // By way of the watch, which first sees to the calls under way.
    void cut() override { watch_ ? watch_->abort() : cut_now(); }

    // ncclCommSplit is a call of all ranks of the parent, also of those that join no part.
    Result<std::unique_ptr<ProcessGroup>> split_backend(const Context& place,
                                                        std::unique_ptr<Store> own,
                                                        int color) override {
        auto part =
            std::make_unique<NcclGroup>(place, std::move(own), options(), nccl_, gpu_, launching_);
        const auto join = [&](NcclComm& comm, const NcclComm::Alive& alive) {
            return comm.split_from(*comm_, color, rank(), alive);
        };
        const auto parent_failed = [this] { return watch_->ending() || story().elsewhere(); };
        const auto deadline = Clock::now() + timeout();
        if (color < 0) {
            // No part, no neighbours; but NCCL wants the call.
            const GpuTurn turn(gpu_);
            auto done = join(*part->comm_, [&]() -> Result<void> {
                if (Clock::now() > deadline)
                    return Error(ErrorCode::timed_out, "the split was not over in time");
                return watch_->ending() ? Result<void>(gone()) : Result<void>();
            });
            if (!done) return done.error();
            return std::unique_ptr<ProcessGroup>();
        }
        if (auto done = part->connect(join, parent_failed, deadline); !done) return done.error();
        return std::unique_ptr<ProcessGroup>(std::move(part));
    }

    // NCCL reads and writes only GPU memory, so numbers in host memory are copied there and back,
    // on the stream of the communicator: the program's own streams do not wait for that.
    Result<Buffer> stage(Buffer host) override {
        const GpuTurn turn(gpu_);
        auto memory = comm_->scratch(host.bytes());
        if (!memory) return memory.error();
        if (auto done = copied(*memory, host.data, host.bytes()); !done) return done.error();
        return Buffer{*memory, host.count, host.type};
    }
    GpuStream stage_stream() override { return comm_->stream(); }
    Result<void> take_back(Buffer staged, Buffer host) override {
        const GpuTurn turn(gpu_);
        return copied(host.data, staged.data, host.bytes());
    }

  private:
    static Error gone() { return Error(ErrorCode::closed, "another call of the group has failed"); }

    Result<void> copied(void* to, const void* from, std::size_t bytes) {
        if (auto done = gpu_copy(to, from, bytes, comm_->stream()); !done) return done;
        auto there = GpuEvent::record(comm_->stream());
        return there ? there->wait() : there.error();
    }

    // The GPU waits for the caller's stream here, not the host. Each call has its own events. With
    // one event for all, a bucket would also wait for kernels that backward launched after it.
    Result<void> launch(const Operation& operation, Flight& flight, bool captured) {
        const NcclComm::Alive alive = [this]() -> Result<void> {
            return watch_->ending() ? Result<void>(gone()) : Result<void>();
        };
        if (auto still = alive(); !still) return still;
        if (operation.compared && !captured)
            if (auto agreed = agree(operation); !agreed) return agreed;
        std::lock_guard one_at_a_time(*launching_);
        if (operation.stream != comm_->stream()) {
            auto before = GpuEvent::record(operation.stream);
            if (!before) return before.error();
            if (auto done = before->before(comm_->stream()); !done) return done;
        }
        if (auto done = comm_->launch(operation, alive); !done) return done;
        auto after = GpuEvent::record(comm_->stream());
        if (!after) return after.error();
        flight.launched(*after, captured);
        return {};
    }

    // Rank 0 writes which call it makes, the others compare. That takes one message for each rank.
    // A comparison of all pairs would take one for each pair. The watch ends it if it takes too
    // long.
    Result<void> agree(const Operation& operation) {
        const Opinion mine = opinion_of(operation);
        const std::string key = kCall + std::to_string(operation.sequence);
        if (rank() == 0) return store().set(key, bytes_of(mine));
        while (true) {
            auto said = store().get(key, kSlice);
            if (!said && said.error().code() != ErrorCode::timed_out) return said.error();
            if (!said && watch_->ending()) return gone();
            if (!said) continue;
            const Opinion first = opinion_in(*said);
            if (first == mine) return {};
            return Error(ErrorCode::refused,
                         disagreement(mine, first, name_rank(0, context().job_ranks)));
        }
    }

    // An abort may wait for the GPU, and so for the calls of another group, whose abort may wait
    // for this one. So each has a thread of its own, and nobody waits for it.
    void cut_now() {
        if (cut_.exchange(true)) return;
        auto abort = [comm = comm_, done = aborted_]() mutable {
            comm->abort();
            comm.reset();
            done->set_value();
        };
        if (auto thread = start_thread("an abort of NCCL", abort))
            aborter_ = std::move(*thread);
        else
            abort();
    }

    const nccl::Functions& nccl_;
    const int gpu_;
    const std::shared_ptr<NcclComm> comm_;
    const std::shared_ptr<std::mutex> launching_;
    std::atomic<bool> cut_{false};
    const std::shared_ptr<std::promise<void>> aborted_ = std::make_shared<std::promise<void>>();
    Thread aborter_;
    std::unique_ptr<NcclWatch> watch_;
};

}  // namespace

bool nccl_loads(std::string* why) {
    auto library = nccl_library();
    if (!library && why) *why = library.error().sentence();
    return static_cast<bool>(library);
}

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context& context,
                                                      std::unique_ptr<Store> store,
                                                      const GroupOptions& options,
                                                      Clock::time_point deadline) {
    // Which GPU is this worker's depends on how many of them the launcher lets it see.
    const int gpu = context.gpu_index(gpu_count());
    if (gpu < 0) return Error(ErrorCode::unavailable, "NCCL needs a GPU: " + gpu_state() + " here");
    auto nccl = nccl_library();
    if (!nccl) return nccl.error();
    // While the ranks connect, each wait also ends when another rank has failed to.
    FailureStory story(*store, context.rank.value, context.world_size, context.job_ranks);
    const auto failed_elsewhere = [&story] { return story.elsewhere(); };
    auto guarded = std::make_unique<GuardedStore>(std::move(store), failed_elsewhere);
    GuardedStore& guard = *guarded;
    auto group = std::make_unique<NcclGroup>(context, std::move(guarded), options, **nccl, gpu,
                                             std::make_shared<std::mutex>());
    if (auto done = group->connect_to_all(failed_elsewhere, deadline); !done)
        return group->fail({std::nullopt, "connecting", done.error(), -1});
    guard.release();
    return std::unique_ptr<ProcessGroup>(std::move(group));
}

}  // namespace ddprun::trainer
