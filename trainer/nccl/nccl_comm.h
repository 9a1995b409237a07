// NcclComm: one NCCL communicator with its CUDA stream. Every wait is a polling loop of ours, so a
// deadline, an abort from another thread, or another rank's failure gets us out of a hung kernel.
//
// The communicator is non-blocking (NCCL's ncclConfig_t::blocking = 0). This file is compiled only
// if the build has CUDA. Threads: one at a time, except ask_to_abort(). Errors: unavailable,
// timed_out, closed, malformed. After an error the communicator is aborted, and every later call
// says so.
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
    // `gpu`: index of this worker's GPU. `failed_elsewhere`: whether another rank has failed;
    // called twice a second during a wait.
    NcclComm(const NcclLibrary& nccl, int gpu, std::chrono::milliseconds timeout,
             std::function<bool()> failed_elsewhere);
    ~NcclComm();
    NcclComm(const NcclComm&) = delete;
    NcclComm& operator=(const NcclComm&) = delete;

    // Connects to the other ranks. Rank 0 makes NCCL's id and puts it into the store.
    Result<void> connect(Store& store, int rank, int size);

    // Makes this communicator out of a part of `parent`. Color -1: this rank is in no part. All
    // ranks of the parent call it. It also waits for the parent's own share of the work.
    Result<void> split_from(NcclComm& parent, int color, int rank);

    // Marks the point that the caller's work on the default stream has reached. Null on an error;
    // run() then reports it.
    using Event = std::shared_ptr<CUevent_st>;
    static Event mark_caller();

    // Carries out the operation after the event `before`. Returns when the data have arrived.
    Result<void> run(const Operation& operation, cudaEvent_t before);

    // At least `bytes` of GPU memory. The next call returns the same memory again, or larger
    // memory.
    Result<void*> scratch(std::size_t bytes);

    // Makes the running wait, and all later ones, end with an error. Any thread.
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
    void* token_ = nullptr;  // an integer that a barrier sums
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    bool aborted_ = false;
    std::atomic<bool> abort_asked_{false};
    // When the running call times out, and when to ask failed_elsewhere_ again.
    Clock::time_point deadline_{}, ask_again_{};
};

}  // namespace ddprun::trainer
