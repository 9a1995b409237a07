// Collective operations between the workers of one generation: one interface, Gloo on CPUs and NCCL
// on GPUs.
//
// Every rank makes the same calls in the same order. A call blocks until this rank's part is done,
// fails, or the group's time-out passes; nothing waits for ever. After a failure the group is over:
// every later call returns the same error, the sockets (or the NCCL communicator) are cut, and the
// program should end: the launcher restarts it. A rank that waits for the failed one notices within
// milliseconds (NCCL: half a second). With Gloo, one that at that moment waits for a third rank,
// which hangs, notices only at its time-out, or when the launcher stops it.
//
// Results are the same bits on all ranks, and (Gloo; NCCL with NCCL_ALGO and NCCL_PROTO fixed) the
// same bits in each run of the same world size: the order of the additions is that of the ring.
//
// Thread: one at a time, but for abort(), which any thread may call. The store that made the group
// must outlive it. Errors: usage (a wrong argument; the group lives on), refused (ranks do not
// agree on the call), timed_out, closed (a rank is gone), unavailable (the GPU or the network
// failed).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "proto/error.h"
#include "trainer/context.h"
#include "trainer/data_type.h"
#include "trainer/store.h"

namespace ddprun::trainer {

enum class ReduceOp {
    sum,
    avg,  // the sum divided by the number of ranks; not for integers
    min,
    max,
};

enum class Memory {
    host,
    gpu,  // of the worker's own GPU
};

// What a call works on, in place. The memory is the caller's and must be of the group's kind.
struct Buffer {
    void* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::float32;
};

template <class T>
Buffer buffer_of(std::span<T> values) {
    return {values.data(), values.size(), data_type<T>()};
}

enum class Backend {
    automatic,  // NCCL when every worker has a GPU of its own and the build has CUDA, else Gloo
    gloo,
    nccl,  // refused when a worker has no GPU or shares one
};

struct GroupOptions {
    Backend backend = Backend::automatic;
    std::chrono::milliseconds timeout = std::chrono::minutes(5);  // of meeting, and of each call
    std::function<void(const std::string&)> note;                 // e.g. why Gloo was chosen
};

class ProcessGroup {
  public:
    virtual ~ProcessGroup() = default;
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    virtual const char* backend() const = 0;  // "gloo" or "nccl"
    virtual Memory memory() const = 0;

    // Each rank's buffer becomes the reduction of all. fp32, fp64, int32, int64.
    Result<void> all_reduce(Buffer buffer, ReduceOp op = ReduceOp::sum);

    // Each rank's buffer becomes that of `root`.
    Result<void> broadcast(Buffer buffer, int root = 0);

    // Returns once all ranks have called it.
    Result<void> barrier();

    // Ends the call in progress, here and soon on the other ranks, and all later ones. Any thread,
    // any number of times.
    virtual void abort() = 0;

  protected:
    enum class Kind : std::uint32_t { all_reduce, broadcast, barrier };

    // One call, as all ranks must agree on it.
    struct Call {
        Kind kind;
        Buffer buffer;
        ReduceOp op = ReduceOp::sum;
        int root = 0;
        std::uint64_t sequence = 0;  // 1 for the group's first call
    };

    ProcessGroup(const Context& context, Store& store, std::chrono::milliseconds timeout);

    // Moves the data. An error ends the group, whatever its code.
    virtual Result<void> run(const Call& call) = 0;

    static std::string describe(const Call& call);
    Store& store() { return store_; }
    std::chrono::milliseconds timeout() const { return timeout_; }

    // Whether another rank has said in the store that its group failed.
    bool failed_elsewhere();

  private:
    Result<void> start(Call call);
    Error fail(const Call& call, const Error& reason);
    std::string first_failure(const std::string& mine);

    const int rank_;
    const int size_;
    Store& store_;
    const std::chrono::milliseconds timeout_;
    std::uint64_t sequence_ = 0;
    std::optional<Error> failed_;
};

// Meets the others in the store and connects. All ranks agree on the backend first.
Result<std::unique_ptr<ProcessGroup>> make_process_group(const Context& context, Store& store,
                                                         const GroupOptions& options = {});

// The two backends themselves; make_process_group is the usual way to them.
Result<std::unique_ptr<ProcessGroup>> make_gloo_group(const Context& context, Store& store,
                                                      std::chrono::milliseconds timeout);
Result<std::unique_ptr<ProcessGroup>> make_nccl_group(const Context& context, Store& store,
                                                      std::chrono::milliseconds timeout);

}  // namespace ddprun::trainer
