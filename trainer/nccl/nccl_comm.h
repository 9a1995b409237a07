// NcclComm: one NCCL communicator with its stream.
//
// The communicator is non-blocking (ncclConfig_t::blocking = 0), and every wait is a polling loop
// of ours: between two polls it asks `alive`, whose error ends it. No function waits for the data.
//
// Threads: one at a time, except async_error() and abort(), which any thread may call. Errors:
// unavailable, closed, malformed, those of the store and of `alive`.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "trainer/gpu/gpu_stream.h"
#include "trainer/group/group_memory.h"
#include "trainer/group/operation.h"
#include "trainer/nccl/nccl_library.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class NcclComm : public std::enable_shared_from_this<NcclComm> {
  public:
    using Alive = std::function<Result<void>()>;

    NcclComm(const nccl::Functions& nccl, int gpu);
    // Ends the communicator in order, which takes all ranks. After 5 seconds it is aborted. The
    // work on its stream must be done.
    ~NcclComm();
    NcclComm(const NcclComm&) = delete;
    NcclComm& operator=(const NcclComm&) = delete;

    // The GPU's memory and the stream. Comes before connect() and split_from(), so a GPU that does
    // not work fails here, with a message of its own.
    Result<void> prepare(GpuPriority priority);

    // Connects to the other ranks. Rank 0 makes NCCL's id and puts it into the store, where the
    // others wait for it until `deadline`.
    Result<void> connect(Store& store, int rank, int size,
                         std::chrono::steady_clock::time_point deadline, const Alive& alive);

    // Makes this communicator out of a part of `parent`. Color -1: this rank is in no part. All
    // ranks of the parent call it.
    Result<void> split_from(NcclComm& parent, int color, int rank, const Alive& alive);

    // Gives the operation to the stream. Returns when NCCL has accepted it.
    Result<void> launch(const Operation& operation, const Alive& alive);

    // On which the operations are.
    GpuStream stream() const { return stream_.get(); }

    // An error that NCCL has found meanwhile. None while another thread is inside NCCL.
    std::optional<Error> async_error();

    // Ends what runs on the GPU. May take long, or never return: it waits for the GPU, also for
    // what other communicators do there.
    void abort();

    // At least `bytes` of GPU memory. The next call returns the same memory again, or larger
    // memory.
    Result<void*> scratch(std::size_t bytes);

    // Zeroed memory that NCCL reads fastest, and the registration of memory of the program; null
    // where NCCL has none.
    Result<GroupMemory> allocate(std::size_t bytes);
    std::shared_ptr<void> registered(void* memory, std::size_t bytes);

  private:
    nccl::ResultCode call(const Operation& operation);
    nccl::ResultCode call_pairwise(const Operation& operation);
    Result<void> settle(nccl::ResultCode begun, const Alive& alive);
    bool finalized();
    Error error_of(nccl::ResultCode result) const;

    const nccl::Functions& nccl_;
    const int gpu_;
    int size_ = 1;
    // Held inside NCCL: one thread at a time may use the communicator.
    std::timed_mutex mutex_;
    nccl::CommHandle comm_ = nullptr;
    std::atomic<bool> aborted_{false};
    OwnGpuStream stream_;
    GroupMemory token_;  // an integer that a barrier sums
    GroupMemory scratch_;
    std::size_t scratch_bytes_ = 0;
};

}  // namespace ddprun::trainer
