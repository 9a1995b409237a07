// NCCL, the GPU backend: one communicator, one stream. The communicator is non-blocking and every
// wait is a poll of ours, so that a deadline, abort() or another rank's word of failure in the
// store gets us out of a hung kernel.
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include "trainer/gpu.h"
#include "trainer/nccl_library.h"
#include "trainer/process_group.h"

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;

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
    }
    return ncclSum;
}

class NcclGroup final : public ProcessGroup {
  public:
    NcclGroup(const Context& context, Store& store, std::chrono::milliseconds timeout,
              const NcclLibrary& nccl)
        : ProcessGroup(context, store, timeout), nccl_(nccl) {}

    // The orderly end needs all ranks; when one is gone the deadline turns it into an abort.
    ~NcclGroup() override {
        if (comm_ && !aborted_) {
            const ncclResult_t begun = nccl_.comm_finalize(comm_);
            const bool done = (begun == ncclSuccess || begun == ncclInProgress) && finalized();
            done ? nccl_.comm_destroy(comm_) : nccl_.comm_abort(comm_);
        }
        if (token_) cudaFree(token_);
        if (stream_) cudaStreamDestroy(stream_);
    }

    const char* backend() const override { return "nccl"; }
    Memory memory() const override { return Memory::gpu; }

    // Only a flag: one thread at a time may touch the communicator, and that is the one which
    // polls.
    void abort() override { abort_asked_ = true; }

    Result<void> connect(int gpu) {
        if (auto p = cudaSetDevice(gpu)) return cuda_error("this worker's GPU", p);
        // A blocking stream: it waits for what the caller put on the default stream, and that for
        // us.
        if (auto p = cudaStreamCreate(&stream_)) return cuda_error("a CUDA stream", p);
        if (auto p = cudaMalloc(&token_, sizeof(int))) return cuda_error("GPU memory", p);
        if (auto p = cudaMemset(token_, 0, sizeof(int))) return cuda_error("GPU memory", p);
        auto id = unique_id();
        if (!id) return id.error();
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        return settle(nccl_.comm_init(&comm_, size(), *id, rank(), &config),
                      Clock::now() + timeout());
    }

  protected:
    Result<void> run(const Call& call) override {
        const auto deadline = Clock::now() + timeout();
        if (auto begun = settle(launch(call), deadline); !begun) return begun;
        return wait_for_stream(deadline);
    }

  private:
    Result<ncclUniqueId> unique_id() {
        ncclUniqueId id;
        if (rank() == 0) {
            if (auto r = nccl_.get_unique_id(&id); r != ncclSuccess) return nccl_error(r);
            std::string bytes(id.internal, sizeof id.internal);
            if (auto done = store().set(kUniqueId, bytes); !done) return done.error();
            return id;
        }
        auto bytes = store().get(kUniqueId, timeout());
        if (!bytes) return bytes.error();
        if (bytes->size() != sizeof id.internal) {
            return Error(ErrorCode::malformed,
                         "NCCL's id in the store has " + std::to_string(bytes->size()) +
                             " bytes instead of " + std::to_string(sizeof id.internal));
        }
        std::memcpy(id.internal, bytes->data(), sizeof id.internal);
        return id;
    }

    // A barrier is the sum of one integer: it ends when all have begun.
    ncclResult_t launch(const Call& call) {
        if (call.kind == Kind::barrier || call.buffer.count == 0) {
            return nccl_.all_reduce(token_, token_, 1, ncclInt32, ncclSum, comm_, stream_);
        }
        void* data = call.buffer.data;
        const auto type = nccl_type(call.buffer.type);
        if (call.kind == Kind::broadcast) {
            return nccl_.broadcast(data, data, call.buffer.count, type, call.root, comm_, stream_);
        }
        return nccl_.all_reduce(data, data, call.buffer.count, type, nccl_op(call.op), comm_,
                                stream_);
    }

    Result<void> settle(ncclResult_t result, Clock::time_point deadline) {
        while (result == ncclInProgress) {
            if (auto alive = check(deadline); !alive) return alive;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            if (nccl_.comm_async_error(comm_, &result) != ncclSuccess) result = ncclInternalError;
        }
        if (result != ncclSuccess) return drop(nccl_error(result));
        return {};
    }

    Result<void> wait_for_stream(Clock::time_point deadline) {
        for (unsigned polls = 0;; ++polls) {
            const cudaError_t state = cudaStreamQuery(stream_);
            if (state == cudaSuccess) return {};
            if (state != cudaErrorNotReady)
                return drop(cuda_error("the collective's stream", state));
            // Most calls take well under a millisecond: spin first, then leave the core to others.
            if (polls < 2000) continue;
            ncclResult_t result = ncclSuccess;
            nccl_.comm_async_error(comm_, &result);
            if (result != ncclSuccess && result != ncclInProgress) return drop(nccl_error(result));
            if (auto alive = check(deadline); !alive) return alive;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    // Whether there is still a point in waiting; aborts the communicator when there is none.
    Result<void> check(Clock::time_point deadline) {
        const auto now = Clock::now();
        if (abort_asked_) return drop(Error(ErrorCode::closed, "the group was aborted"));
        if (now > deadline) {
            return drop(Error(ErrorCode::timed_out,
                              "timed out after " + std::to_string(timeout().count()) + " ms"));
        }
        if (now < ask_again_) return {};
        ask_again_ = now + kAskTheStore;
        if (failed_elsewhere()) return drop(Error(ErrorCode::closed, "another rank has failed"));
        return {};
    }

    // ncclCommAbort is the only way out of a kernel that waits for a dead rank.
    Error drop(Error error) {
        if (comm_ && !aborted_) nccl_.comm_abort(comm_);
        aborted_ = true;
        return error;
    }

    bool finalized() {
        const auto deadline = Clock::now() + std::min(timeout(), std::chrono::milliseconds(5000));
        ncclResult_t result = ncclInProgress;
        while (nccl_.comm_async_error(comm_, &result) == ncclSuccess && result == ncclInProgress) {
            if (Clock::now() > deadline) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        return result == ncclSuccess;
    }

    Error nccl_error(ncclResult_t result) {
        const char* detail = nccl_.last_error(comm_);
        std::string sentence = std::string("NCCL: ") + nccl_.error_string(result);
        if (detail && *detail) sentence += std::string(" (") + detail + ")";
        return Error(result == ncclRemoteError ? ErrorCode::closed : ErrorCode::unavailable,
                     sentence);
    }

    const NcclLibrary& nccl_;
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    void* token_ = nullptr;
    bool aborted_ = false;
    std::atomic<bool> abort_asked_{false};
    Clock::time_point ask_again_ = Clock::now() + kAskTheStore;
};

}  // namespace

Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context& context, Store& store,
                                                      std::chrono::milliseconds timeout) {
    auto nccl = nccl_library();
    if (!nccl) return nccl.error();
    const int gpu = context.gpu_index(gpu_count());
    if (gpu < 0) return Error(ErrorCode::unavailable, "NCCL needs a GPU: " + gpu_state() + " here");
    auto group = std::make_unique<NcclGroup>(context, store, timeout, **nccl);
    if (auto done = group->connect(gpu); !done) {
        return Error(done.error().code(), "rank " + std::to_string(context.rank.value) + " of " +
                                              std::to_string(context.world_size) +
                                              " cannot connect: " + done.error().sentence());
    }
    return std::unique_ptr<ProcessGroup>(std::move(group));
}

}  // namespace ddprun::trainer
