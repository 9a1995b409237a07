// One NCCL communicator with its stream, where every wait is a poll of ours: a deadline, an abort
// from another thread or another rank's failure gets us out of a hung kernel.
//
// The communicator is non-blocking. Only compiled when the build has CUDA. Thread: one at a time,
// but for ask_to_abort(). Errors: unavailable, timed_out, closed, malformed; after one the
// communicator has been aborted and every call says so.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "trainer/group/operation.h"
#include "trainer/nccl/nccl_library.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class NcclComm {
  public:
    // `failed_elsewhere` is asked twice a second while something is waited for.
    NcclComm(const NcclLibrary& nccl, int gpu, std::chrono::milliseconds timeout,
             std::function<bool()> failed_elsewhere);
    ~NcclComm();
    NcclComm(const NcclComm&) = delete;
    NcclComm& operator=(const NcclComm&) = delete;

    // Meets the other ranks under NCCL's own id, which rank 0 puts into the store.
    Result<void> connect(Store& store, int rank, int size);

    // Takes part in splitting `parent`; color -1: in no part. Collective over the parent, whose
    // waiting is done here too.
    Result<void> split_from(NcclComm& parent, int color, int rank);

    // What the caller has put on its (the default) stream so far. Null on failure, which the stream
    // will tell.
    using Event = std::shared_ptr<CUevent_st>;
    static Event mark_caller();

    // After `before`. Returns when the data have arrived.
    Result<void> run(const Operation& operation, cudaEvent_t before);

    // GPU memory for `bytes`, kept between calls.
    Result<void*> scratch(std::size_t bytes);

    void ask_to_abort() { abort_asked_ = true; }

  private:
    using Clock = std::chrono::steady_clock;

    Result<void> use_gpu();
    Result<void> make_stream();
    ncclResult_t launch(const Operation& operation);
    ncclResult_t launch_pairwise(const Operation& operation);
    Result<void> settle(ncclComm_t& comm, ncclResult_t result);
    Result<void> wait_for_stream();
    Result<void> check_alive();
    Error drop(Error error);
    bool finalized();
    Error nccl_error(ncclResult_t result);

    const NcclLibrary& nccl_;
    const int gpu_;
    const std::chrono::milliseconds timeout_;
    const std::function<bool()> failed_elsewhere_;
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    void* token_ = nullptr;  // what a barrier sums
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    bool aborted_ = false;
    std::atomic<bool> abort_asked_{false};
    Clock::time_point deadline_{}, ask_again_{};
};

}  // namespace ddprun::trainer
