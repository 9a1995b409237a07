// Translates operations to NCCL's calls and polls until NCCL has accepted them.
#include "trainer/nccl/nccl_comm.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "trainer/group/left_until.h"

namespace ddprun::trainer {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The key in the store.
constexpr char kUniqueId[] = "nccl/unique_id";
// How long an abort waits for a thread that is inside NCCL.
constexpr auto kOtherThread = milliseconds(500);
// How often a call is asked for without a sleep, which takes longer than most calls.
constexpr int kQuickPolls = 200;

nccl::Type nccl_type(DataType type) {
    switch (type) {
        case DataType::float32:
            return nccl::float32;
        case DataType::float64:
            return nccl::float64;
        case DataType::float16:
            return nccl::float16;
        case DataType::bfloat16:
            return nccl::bfloat16;
        case DataType::int32:
            return nccl::int32;
        case DataType::int64:
            return nccl::int64;
        case DataType::uint64:
            return nccl::uint64;
        case DataType::uint8:
            return nccl::uint8;
    }
    return nccl::uint8;
}

nccl::Op nccl_op(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return nccl::sum;
        case ReduceOp::avg:
            return nccl::avg;
        case ReduceOp::min:
            return nccl::min;
        case ReduceOp::max:
            return nccl::max;
        case ReduceOp::product:
            return nccl::prod;
    }
    return nccl::sum;
}

Error closed() { return Error(ErrorCode::closed, "the communicator was aborted"); }

// NCCL's ranks find each other by an id of 128 bytes, which one of them makes.
Result<nccl::UniqueId> unique_id(const nccl::Functions& nccl, Store& store, int rank,
                                 Clock::time_point deadline) {
    nccl::UniqueId id;
    if (rank == 0) {
        if (auto r = nccl.GetUniqueId(&id); r != nccl::success)
            return Error(ErrorCode::unavailable, std::string("NCCL: ") + nccl.GetErrorString(r));
        std::string bytes(id.internal, sizeof id.internal);
        if (auto done = store.set(kUniqueId, bytes); !done) return done.error();
        return id;
    }
    auto bytes = store.get(kUniqueId, left_until(deadline));
    if (!bytes)
        return Error(bytes.error().code(), "rank 0 gave no NCCL id: " + bytes.error().sentence());
    if (bytes->size() != sizeof id.internal) {
        return Error(ErrorCode::malformed,
                     "NCCL's id in the store has " + std::to_string(bytes->size()) +
                         " bytes instead of " + std::to_string(sizeof id.internal));
    }
    std::memcpy(id.internal, bytes->data(), sizeof id.internal);
    return id;
}

nccl::Config configuration() {
    nccl::Config config;
    // NCCL's calls then return in_progress where they would block. settle() polls for the rest.
    config.blocking = 0;
    return config;
}

}  // namespace

NcclComm::NcclComm(const nccl::Functions& nccl, int gpu) : nccl_(nccl), gpu_(gpu) {}

// If one of the ranks is gone, finalized() gives up at its deadline, and the communicator is
// aborted.
NcclComm::~NcclComm() {
    const GpuTurn turn(gpu_);
    if (comm_ && !aborted_) {
        const nccl::ResultCode begun = nccl_.CommFinalize(comm_);
        const bool done = (begun == nccl::success || begun == nccl::in_progress) && finalized();
        done ? nccl_.CommDestroy(comm_) : nccl_.CommAbort(comm_);
    }
    // Freed while the GPU is this thread's.
    token_ = {};
    scratch_ = {};
    stream_ = {};
}

Result<void> NcclComm::prepare(GpuPriority priority) {
    // A normal stream waits for the default stream and the other way round, so communication would
    // never overlap with computation. This one does not; events order it where that is needed.
    auto stream = OwnGpuStream::make(priority);
    if (!stream) return stream.error();
    stream_ = std::move(*stream);
    auto token = GroupMemory::make(Memory::gpu, sizeof(int));
    if (!token) return token.error();
    token_ = std::move(*token);
    return {};
}

Result<void> NcclComm::connect(Store& store, int rank, int size, Clock::time_point deadline,
                               const Alive& alive) {
    auto id = unique_id(nccl_, store, rank, deadline);
    if (!id) return id.error();
    size_ = size;
    nccl::Config config = configuration();
    return settle(nccl_.CommInitRankConfig(&comm_, size, *id, rank, &config), alive);
}

Result<void> NcclComm::split_from(NcclComm& parent, int color, int rank, const Alive& alive) {
    nccl::Config config = configuration();
    nccl::ResultCode begun = nccl::success;
    {
        std::lock_guard inside(parent.mutex_);
        if (parent.aborted_) return closed();
        begun = nccl_.CommSplit(parent.comm_, color < 0 ? nccl::kNoColor : color, rank, &comm_,
                                &config);
    }
    if (auto done = parent.settle(begun, alive); !done) return done;
    // With color -1 there is none.
    return comm_ ? settle(begun, alive) : Result<void>();
}

Result<void> NcclComm::launch(const Operation& operation, const Alive& alive) {
    nccl::ResultCode begun = nccl::success;
    {
        std::lock_guard inside(mutex_);
        if (aborted_) return closed();
        begun = call(operation);
    }
    // What NCCL has accepted at once did not fail here: an error that it tells now is one of an
    // earlier call, which the watch finds and names.
    return begun == nccl::success ? Result<void>() : settle(begun, alive);
}

Result<void*> NcclComm::scratch(std::size_t bytes) {
    // The memory only grows. Allocating it anew for each call would wait for the GPU each time.
    if (bytes > scratch_bytes_) {
        auto made = GroupMemory::make(Memory::gpu, bytes);
        if (!made) return made.error();
        scratch_ = std::move(*made);
        scratch_bytes_ = bytes;
    }
    return scratch_.data();
}

Result<GroupMemory> NcclComm::allocate(std::size_t bytes) {
    bytes = std::max<std::size_t>(bytes, 1);
    void* memory = nullptr;
    if (!nccl_.MemAlloc || !nccl_.MemFree || nccl_.MemAlloc(&memory, bytes) != nccl::success)
        return GroupMemory::make(Memory::gpu, bytes);
    auto zeroed = gpu_zero(memory, bytes, stream());
    auto there = zeroed ? GpuEvent::record(stream()) : zeroed.error();
    if (there) zeroed = there->wait();
    auto made = GroupMemory::own(
        Memory::gpu, memory,
        [free = nccl_.MemFree, registration = registered(memory, bytes)](void* m) mutable {
            registration.reset();
            (void)free(m);
        });
    if (!zeroed) return zeroed.error();
    return made;
}

// The registration ends with the communicator, if that comes first.
std::shared_ptr<void> NcclComm::registered(void* memory, std::size_t bytes) {
    void* handle = nullptr;
    if (!nccl_.CommRegister || !nccl_.CommDeregister) return nullptr;
    std::lock_guard inside(mutex_);
    if (aborted_ || nccl_.CommRegister(comm_, memory, bytes, &handle) != nccl::success || !handle)
        return nullptr;
    return std::shared_ptr<void>(handle, [owner = weak_from_this()](void* h) {
        const auto comm = owner.lock();
        if (!comm) return;
        std::lock_guard inside(comm->mutex_);
        if (!comm->aborted_) (void)comm->nccl_.CommDeregister(comm->comm_, h);
    });
}

// A barrier is the sum of one integer, because NCCL has none: it ends after all ranks have begun. A
// call without elements becomes a barrier too.
nccl::ResultCode NcclComm::call(const Operation& o) {
    if (!o.is_collective()) return call_pairwise(o);
    const GpuStream stream = stream_.get();
    if (o.kind == Collective::barrier || o.count() == 0)
        return nccl_.AllReduce(token_.data(), token_.data(), 1, nccl::int32, nccl::sum, comm_,
                               stream);
    const auto type = nccl_type(o.type());
    const auto op = nccl_op(o.op);
    const std::size_t count = o.count();
    switch (o.kind) {
        case Collective::all_reduce:
            return nccl_.AllReduce(o.in.data, o.out.data, count, type, op, comm_, stream);
        case Collective::broadcast:
            return nccl_.Broadcast(o.in.data, o.out.data, count, type, o.root, comm_, stream);
        case Collective::reduce:
            return nccl_.Reduce(o.in.data, o.out.data, count, type, op, o.root, comm_, stream);
        case Collective::all_gather:
            return nccl_.AllGather(o.in.data, o.out.data, count, type, comm_, stream);
        case Collective::reduce_scatter:
            return nccl_.ReduceScatter(o.in.data, o.out.data, count, type, op, comm_, stream);
        case Collective::gather:
            return nccl_.Gather(o.in.data, o.out.data, count, type, o.root, comm_, stream);
        case Collective::scatter:
            return nccl_.Scatter(o.in.data, o.out.data, count, type, o.root, comm_, stream);
        default:
            // ncclAlltoAll counts the elements for one rank, an operation counts all.
            return nccl_.AlltoAll(o.in.data, o.out.data, count / static_cast<std::size_t>(size_),
                                  type, comm_, stream);
    }
}

// Send, receive, or both in one NCCL group. Outside of a group the two halves of an exchange would
// wait for each other.
nccl::ResultCode NcclComm::call_pairwise(const Operation& o) {
    const auto good = [](nccl::ResultCode r) {
        return r == nccl::success || r == nccl::in_progress;
    };
    const GpuStream stream = stream_.get();
    nccl::ResultCode first = nccl_.GroupStart();
    if (first == nccl::success && o.kind != Collective::receive)
        first = nccl_.Send(o.in.data, o.in.count, nccl_type(o.in.type), o.root, comm_, stream);
    if (good(first) && o.kind != Collective::send)
        first = nccl_.Recv(o.out.data, o.out.count, nccl_type(o.out.type), o.source, comm_, stream);
    // Also after a failure: a group that was started must be ended.
    const nccl::ResultCode end = nccl_.GroupEnd();
    return good(first) ? end : first;
}

// Polls until NCCL has accepted its last call. The data may still be on their way. What the call
// returned does not tell: ncclCommSplit returns the state of the new communicator, and the parent
// refuses its next call until its own state says that the split is over.
Result<void> NcclComm::settle(nccl::ResultCode begun, const Alive& alive) {
    nccl::ResultCode state = begun;
    int polls = 0;
    while (state == nccl::success || state == nccl::in_progress) {
        {
            std::lock_guard inside(mutex_);
            if (aborted_) return closed();
            if (nccl_.CommGetAsyncError(comm_, &state) != nccl::success)
                state = nccl::internal_error;
        }
        if (state == nccl::success) return {};
        if (state != nccl::in_progress) break;
        if (auto still = alive(); !still) return still;
        // NCCL starts a thread for each call, which accepts it soon. Connecting takes long.
        ++polls < kQuickPolls ? std::this_thread::yield()
                              : std::this_thread::sleep_for(microseconds(50));
    }
    return error_of(state);
}

std::optional<Error> NcclComm::async_error() {
    std::unique_lock inside(mutex_, std::try_to_lock);
    if (!inside || aborted_ || !comm_) return std::nullopt;
    nccl::ResultCode result = nccl::success;
    if (nccl_.CommGetAsyncError(comm_, &result) != nccl::success) result = nccl::internal_error;
    if (result == nccl::success || result == nccl::in_progress) return std::nullopt;
    return error_of(result);
}

// ncclCommAbort is the only way out of a kernel that waits for a dead rank, and of a call that does
// not return. So it is called at last although the other thread is still inside: NCCL then lets
// that thread go, which finds the communicator aborted and does not touch it again.
void NcclComm::abort() {
    const GpuTurn turn(gpu_);
    if (aborted_.exchange(true)) return;
    const std::unique_lock inside(mutex_, kOtherThread);
    if (comm_) (void)nccl_.CommAbort(comm_);
}

// Polls for the end of ncclCommFinalize. At most 5 seconds: a process that ends should not wait for
// its whole timeout because another rank is gone.
bool NcclComm::finalized() {
    const auto deadline = Clock::now() + milliseconds(5000);
    nccl::ResultCode result = nccl::in_progress;
    while (nccl_.CommGetAsyncError(comm_, &result) == nccl::success &&
           result == nccl::in_progress) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(microseconds(200));
    }
    return result == nccl::success;
}

Error NcclComm::error_of(nccl::ResultCode result) const {
    const char* detail = nccl_.GetLastError(comm_);
    std::string sentence = std::string("NCCL: ") + nccl_.GetErrorString(result);
    if (detail && *detail) sentence += std::string(" (") + detail + ")";
    // remote_error: the failure is another rank's or the network's.
    return Error(result == nccl::remote_error ? ErrorCode::closed : ErrorCode::unavailable,
                 sentence);
}

}  // namespace ddprun::trainer
