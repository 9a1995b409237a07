// Translates operations to NCCL's calls and polls until they are done, time out, or fail.
#include "trainer/nccl/nccl_comm.h"

#include <cstring>
#include <thread>

namespace ddprun::trainer {
namespace {

// The key in the store, and how often a waiting rank asks the store for failures of others.
constexpr char kUniqueId[] = "nccl/unique_id";
constexpr auto kAskTheStore = std::chrono::milliseconds(500);

Error cuda_error(const char* what, cudaError_t problem) {
    return Error(ErrorCode::unavailable, std::string(what) + ": " + cudaGetErrorString(problem));
}

ncclDataType_t nccl_type(DataType type) {
    switch (type) {
        case DataType::float32:
            return ncclFloat32;
        case DataType::float64:
            return ncclFloat64;
        case DataType::float16:
            return ncclFloat16;
        case DataType::bfloat16:
            return ncclBfloat16;
        case DataType::int32:
            return ncclInt32;
        case DataType::int64:
            return ncclInt64;
        case DataType::uint64:
            return ncclUint64;
        case DataType::uint8:
            return ncclUint8;
    }
    return ncclUint8;
}

ncclRedOp_t nccl_op(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return ncclSum;
        case ReduceOp::avg:
            return ncclAvg;
        case ReduceOp::min:
            return ncclMin;
        case ReduceOp::max:
            return ncclMax;
        case ReduceOp::product:
            return ncclProd;
    }
    return ncclSum;
}

// NCCL's ranks find each other by an id of 128 bytes, which one of them makes.
Result<ncclUniqueId> unique_id(const NcclLibrary& nccl, Store& store, int rank,
                               std::chrono::milliseconds timeout) {
    ncclUniqueId id;
    if (rank == 0) {
        if (auto r = nccl.get_unique_id(&id); r != ncclSuccess)
            return Error(ErrorCode::unavailable, std::string("NCCL: ") + nccl.error_string(r));
        std::string bytes(id.internal, sizeof id.internal);
        if (auto done = store.set(kUniqueId, bytes); !done) return done.error();
        return id;
    }
    auto bytes = store.get(kUniqueId, timeout);
    if (!bytes) return bytes.error();
    if (bytes->size() != sizeof id.internal) {
        return Error(ErrorCode::malformed,
                     "NCCL's id in the store has " + std::to_string(bytes->size()) +
                         " bytes instead of " + std::to_string(sizeof id.internal));
    }
    std::memcpy(id.internal, bytes->data(), sizeof id.internal);
    return id;
}

ncclConfig_t configuration() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    // NCCL's calls then return ncclInProgress where they would block. settle() polls for the rest.
    config.blocking = 0;
    return config;
}

}  // namespace

NcclComm::NcclComm(const NcclLibrary& nccl, int gpu, std::chrono::milliseconds timeout,
                   std::function<bool()> failed_elsewhere)
    : nccl_(nccl), gpu_(gpu), timeout_(timeout), failed_elsewhere_(std::move(failed_elsewhere)) {}

// An orderly end needs all ranks. If one of them is gone, finalized() gives up at its deadline, and
// the communicator is aborted.
NcclComm::~NcclComm() {
    (void)cudaSetDevice(gpu_);
    if (comm_ && !aborted_) {
        const ncclResult_t begun = nccl_.comm_finalize(comm_);
        const bool done = (begun == ncclSuccess || begun == ncclInProgress) && finalized();
        done ? nccl_.comm_destroy(comm_) : nccl_.comm_abort(comm_);
    }
    if (scratch_) cudaFree(scratch_);
    if (token_) cudaFree(token_);
    if (stream_) cudaStreamDestroy(stream_);
}

// The current GPU is a property of the thread, and the group's own thread has not chosen one yet.
Result<void> NcclComm::use_gpu() {
    if (auto p = cudaSetDevice(gpu_)) return cuda_error("this worker's GPU", p);
    return {};
}

// Runs before connecting, so a GPU that does not work fails here, with a message of its own.
Result<void> NcclComm::make_stream() {
    if (auto used = use_gpu(); !used) return used;
    // A normal stream waits for the default stream and the other way round, so communication would
    // never overlap with computation. This one does not; events order it where that is needed.
    if (auto p = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking))
        return cuda_error("a CUDA stream", p);
    if (auto p = cudaMalloc(&token_, sizeof(int))) return cuda_error("GPU memory", p);
    if (auto p = cudaMemset(token_, 0, sizeof(int))) return cuda_error("GPU memory", p);
    return {};
}

Result<void> NcclComm::connect(Store& store, int rank, int size) {
    if (auto made = make_stream(); !made) return made;
    auto id = unique_id(nccl_, store, rank, timeout_);
    if (!id) return id.error();
    deadline_ = Clock::now() + timeout_;
    ncclConfig_t config = configuration();
    return settle(comm_, nccl_.comm_init(&comm_, size, *id, rank, &config));
}

Result<void> NcclComm::split_from(NcclComm& parent, int color, int rank) {
    if (auto made = make_stream(); !made) return made;
    // Both communicators are polled below, and check_alive() looks at the deadline of the one it
    // serves.
    parent.deadline_ = deadline_ = Clock::now() + timeout_;
    ncclConfig_t config = configuration();
    const ncclResult_t begun = nccl_.comm_split(
        parent.comm_, color < 0 ? NCCL_SPLIT_NOCOLOR : color, rank, &comm_, &config);
    if (auto done = parent.settle(parent.comm_, begun); !done) return done;
    // The parent's part is done. The new communicator is still being set up; with color -1 there is
    // none.
    return comm_ ? settle(comm_, ncclInProgress) : Result<void>();
}

NcclComm::Event NcclComm::mark_caller() {
    cudaEvent_t event = nullptr;
    // The event only orders streams. Without timing it is cheaper.
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) return nullptr;
    Event made(event, [](cudaEvent_t e) { (void)cudaEventDestroy(e); });
    // The legacy default stream, on which a program's kernels run unless it says otherwise.
    return cudaEventRecord(event, cudaStreamLegacy) ? nullptr : made;
}

Result<void> NcclComm::run(const Operation& operation, cudaEvent_t before) {
    if (aborted_) return Error(ErrorCode::closed, "the communicator was aborted");
    if (auto used = use_gpu(); !used) return used;
    deadline_ = Clock::now() + timeout_;
    if (!before) return drop(cuda_error("a CUDA event", cudaGetLastError()));
    // The GPU waits here, not the host: the collective may read the buffer only after the kernels
    // that fill it.
    if (auto p = cudaStreamWaitEvent(stream_, before, 0)) return drop(cuda_error("a stream", p));
    if (auto begun = settle(comm_, launch(operation)); !begun) return begun;
    return wait_for_stream();
}

Result<void*> NcclComm::scratch(std::size_t bytes) {
    if (auto used = use_gpu(); !used) return used.error();
    // The memory only grows. Allocating it anew for each call would wait for the GPU each time.
    if (bytes > scratch_bytes_) {
        if (scratch_) cudaFree(scratch_);
        scratch_ = nullptr;
        scratch_bytes_ = 0;
        if (auto p = cudaMalloc(&scratch_, bytes)) return cuda_error("GPU memory", p);
        scratch_bytes_ = bytes;
    }
    return scratch_;
}

// A barrier is the sum of one integer, because NCCL has none: it ends after all ranks have begun. A
// call without elements becomes a barrier too.
ncclResult_t NcclComm::launch(const Operation& o) {
    if (!o.is_collective()) return launch_pairwise(o);
    if (o.kind == Collective::barrier || o.count() == 0)
        return nccl_.all_reduce(token_, token_, 1, ncclInt32, ncclSum, comm_, stream_);
    const auto type = nccl_type(o.type());
    const auto op = nccl_op(o.op);
    const std::size_t count = o.count();
    switch (o.kind) {
        case Collective::all_reduce:
            return nccl_.all_reduce(o.in.data, o.out.data, count, type, op, comm_, stream_);
        case Collective::broadcast:
            return nccl_.broadcast(o.in.data, o.out.data, count, type, o.root, comm_, stream_);
        case Collective::reduce:
            return nccl_.reduce(o.in.data, o.out.data, count, type, op, o.root, comm_, stream_);
        case Collective::all_gather:
            return nccl_.all_gather(o.in.data, o.out.data, count, type, comm_, stream_);
        case Collective::reduce_scatter:
            return nccl_.reduce_scatter(o.in.data, o.out.data, count, type, op, comm_, stream_);
        case Collective::gather:
            return nccl_.gather(o.in.data, o.out.data, count, type, o.root, comm_, stream_);
        case Collective::scatter:
            return nccl_.scatter(o.in.data, o.out.data, count, type, o.root, comm_, stream_);
        default: {
            int size = 1;
            // ncclAlltoAll counts the elements for one rank, an operation counts all.
            nccl_.comm_count(comm_, &size);
            return nccl_.all_to_all(o.in.data, o.out.data, count / static_cast<std::size_t>(size),
                                    type, comm_, stream_);
        }
    }
}

// Send, receive, or both in one NCCL group. Outside of a group the two halves of an exchange would
// wait for each other.
ncclResult_t NcclComm::launch_pairwise(const Operation& o) {
    ncclResult_t first = nccl_.group_start();
    if (first == ncclSuccess && o.kind != Collective::receive)
        first = nccl_.send(o.in.data, o.in.count, nccl_type(o.in.type), o.root, comm_, stream_);
    if ((first == ncclSuccess || first == ncclInProgress) && o.kind != Collective::send)
        first =
            nccl_.receive(o.out.data, o.out.count, nccl_type(o.out.type), o.source, comm_, stream_);
    // Also after a failure: a group that was started must be ended.
    const ncclResult_t end = nccl_.group_end();
    return first == ncclSuccess || first == ncclInProgress ? end : first;
}

// Polls until NCCL has accepted its last call on `comm`. The data may still be on their way.
Result<void> NcclComm::settle(ncclComm_t& comm, ncclResult_t result) {
    while (result == ncclInProgress) {
        if (auto alive = check_alive(); !alive) return alive;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        if (nccl_.comm_async_error(comm, &result) != ncclSuccess) result = ncclInternalError;
    }
    if (result != ncclSuccess) return drop(nccl_error(result));
    return {};
}

// Polls until the GPU has finished the collective.
Result<void> NcclComm::wait_for_stream() {
    for (unsigned polls = 0;; ++polls) {
        const cudaError_t state = cudaStreamQuery(stream_);
        if (state == cudaSuccess) return {};
        if (state != cudaErrorNotReady) return drop(cuda_error("the collective's stream", state));
        // Most calls take far less than a millisecond. So it spins first, and then leaves the core
        // to others.
        if (polls < 2000) continue;
        ncclResult_t result = ncclSuccess;
        nccl_.comm_async_error(comm_, &result);
        if (result != ncclSuccess && result != ncclInProgress) return drop(nccl_error(result));
        if (auto alive = check_alive(); !alive) return alive;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

// Whether there is still a reason to wait. Aborts the communicator if there is none.
Result<void> NcclComm::check_alive() {
    const auto now = Clock::now();
    if (abort_asked_) return drop(Error(ErrorCode::closed, "the group was aborted"));
    if (now > deadline_) {
        return drop(Error(ErrorCode::timed_out,
                          "timed out after " + std::to_string(timeout_.count()) + " ms"));
    }
    // The question goes over the network, so it is asked only twice a second.
    if (now < ask_again_) return {};
    ask_again_ = now + kAskTheStore;
    if (failed_elsewhere_()) return drop(Error(ErrorCode::closed, "another rank has failed"));
    return {};
}

// ncclCommAbort is the only way out of a kernel that waits for a dead rank.
Error NcclComm::drop(Error error) {
    if (comm_ && !aborted_) nccl_.comm_abort(comm_);
    aborted_ = true;
    return error;
}

// Polls for the end of ncclCommFinalize. At most 5 seconds: a process that ends should not wait for
// its whole timeout because another rank is gone.
bool NcclComm::finalized() {
    const auto deadline = Clock::now() + std::min(timeout_, std::chrono::milliseconds(5000));
    ncclResult_t result = ncclInProgress;
    while (nccl_.comm_async_error(comm_, &result) == ncclSuccess && result == ncclInProgress) {
        if (Clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return result == ncclSuccess;
}

Error NcclComm::nccl_error(ncclResult_t result) {
    const char* detail = nccl_.last_error(comm_);
    std::string sentence = std::string("NCCL: ") + nccl_.error_string(result);
    if (detail && *detail) sentence += std::string(" (") + detail + ")";
    // ncclRemoteError: the failure is another rank's or the network's.
    return Error(result == ncclRemoteError ? ErrorCode::closed : ErrorCode::unavailable, sentence);
}

}  // namespace ddprun::trainer
