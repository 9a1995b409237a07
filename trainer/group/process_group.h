// Collective operations between the workers of one generation: one interface, Gloo on CPUs and NCCL
// on GPUs. What each operation does, and what it wants of its buffers, is in operation.h.
//
// Every rank makes the same calls in the same order. A call blocks until this rank's part is done,
// fails, or the group's time-out passes; nothing waits for ever. begin() returns at once instead:
// operations that were begun are carried out one after the other, on the group's own thread (and,
// on GPUs, its own stream), while the program computes. (Gloo sends the first messages of an
// all-reduce already in begin(), so that the link has work while that thread waits for a core.) A
// buffer belongs to the group until its Work is waited for.
//
// After a failure the group is over: every later call returns the same error, the sockets (or the
// NCCL communicator) are cut, and the program should end: the launcher restarts it. All ranks
// notice within milliseconds (NCCL: half a second), also those that wait for a third rank which
// hangs. The error names the operation, its number and size, the ranks that did not get as far, and
// the first failure that any rank saw.
//
// Results are the same bits on all ranks, and (Gloo; NCCL with NCCL_ALGO and NCCL_PROTO fixed) the
// same bits in each run of the same world size: the order of the additions is that of the ring.
//
// Destroy a group on all ranks at about the same time: who ends without doing so (or by _exit)
// while another still works looks like one that has died.
//
// Thread: one at a time, but for abort(), which any thread may call. Errors: usage (a wrong
// argument; the group lives on), refused (ranks do not agree on the call), timed_out, closed (a
// rank is gone), unavailable (the GPU or the network failed).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/operation.h"
#include "trainer/group/work_queue.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

enum class Memory {
    host,
    gpu,  // of the worker's own GPU
};

enum class Backend {
    automatic,  // NCCL when every worker has a GPU of its own and the build has CUDA, else Gloo
    gloo,
    nccl,  // refused when a worker has no GPU or shares one
};

struct GroupOptions {
    Backend backend = Backend::automatic;
    std::chrono::milliseconds timeout = std::chrono::minutes(5);  // of meeting, and of each call
    std::function<void(const std::string&)> note;                 // e.g. why Gloo was chosen
    // So many first calls are compared between the ranks before their data move (about 0.1 ms
    // each); later ones only when their shape is new (Gloo), or not at all (NCCL).
    std::uint64_t checked_calls = 64;
};

class ProcessGroup {
  public:
    virtual ~ProcessGroup() = default;
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    int rank() const { return context_.rank.value; }
    int size() const { return context_.world_size; }
    std::chrono::milliseconds timeout() const { return options_.timeout; }
    virtual const char* backend() const = 0;  // "gloo" or "nccl"
    virtual Memory memory() const = 0;

    Work begin(const Operation& operation);
    Result<void> call(const Operation& operation);

    Result<void> all_reduce(Buffer buffer, ReduceOp op = ReduceOp::sum) {
        return call(Operation::all_reduce(buffer, op));
    }
    Result<void> broadcast(Buffer buffer, int root = 0) {
        return call(Operation::broadcast(buffer, root));
    }
    Result<void> reduce(Buffer buffer, ReduceOp op = ReduceOp::sum, int root = 0) {
        return call(Operation::reduce(buffer, op, root));
    }
    Result<void> all_gather(Buffer in, Buffer out) { return call(Operation::all_gather(in, out)); }
    Result<void> reduce_scatter(Buffer in, Buffer out, ReduceOp op = ReduceOp::sum) {
        return call(Operation::reduce_scatter(in, out, op));
    }
    Result<void> gather(Buffer in, Buffer out, int root = 0) {
        return call(Operation::gather(in, out, root));
    }
    Result<void> scatter(Buffer in, Buffer out, int root = 0) {
        return call(Operation::scatter(in, out, root));
    }
    Result<void> all_to_all(Buffer in, Buffer out) { return call(Operation::all_to_all(in, out)); }
    Result<void> send(Buffer buffer, int to) { return call(Operation::send(buffer, to)); }
    Result<void> receive(Buffer buffer, int from) { return call(Operation::receive(buffer, from)); }
    Result<void> exchange(Buffer out_going, int to, Buffer in_coming, int from) {
        return call(Operation::exchange(out_going, to, in_coming, from));
    }
    Result<void> barrier() { return call(Operation::barrier()); }
    Result<void> monitored_barrier() { return call(Operation::monitored_barrier()); }

    // All-reduces a few numbers that lie in the host's memory, whatever the group's kind.
    Result<void> all_reduce_values(std::span<double> values, ReduceOp op = ReduceOp::sum);

    // A group of those ranks that say the same colour (0 or more), in the order of their ranks; a
    // null pointer for who says -1. All ranks of this group call it. Its ranks count from 0.
    Result<std::unique_ptr<ProcessGroup>> split(int color);

    // Ends the call in progress, here and soon on the other ranks, and all later ones. Any thread,
    // any number of times.
    virtual void abort() = 0;

  protected:
    // `store` is the group's own: of one thread at a time, which is the one that works.
    ProcessGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options);

    // What a backend has done of an operation ahead of its turn. Lives until the operation is done
    // or refused, and ends before its Work says so.
    struct Started {
        virtual ~Started() = default;
    };

    // In the caller's thread, who waits (call()) or goes on (begin()); null when there is nothing to
    // do ahead.
    virtual std::shared_ptr<Started> start(const Operation& operation, bool caller_waits) = 0;

    // Moves the data. An error ends the group, whatever its code. `started`: what start() gave, or
    // null.
    virtual Result<void> run(const Operation& operation, Started* started) = 0;

    // The same backend between the ranks of `context`, met in `store`. Collective over this group:
    // who is in none of the new groups calls it too, with color -1, and gets nothing.
    virtual Result<std::unique_ptr<ProcessGroup>> split_backend(const Context& context,
                                                                std::unique_ptr<Store> store,
                                                                int color) = 0;

    // Host memory where the group's calls can use it; `take_back` copies the result.
    virtual Result<Buffer> stage(Buffer host) { return host; }
    virtual Result<void> take_back(Buffer, Buffer) { return {}; }

    // No operation is in progress after this, and none will be; destructors of backends begin here.
    void stop() { queue_.stop(); }

    Store& store() { return *store_; }
    const Context& context() const { return context_; }
    const GroupOptions& options() const { return options_; }
    bool failed() const { return failed_.has_value(); }

    // A backend that knows says which rank's connection was the first to close.
    void lose(int rank) { lost_ = rank; }

    // Whether another rank has said in the store that its group failed.
    bool failed_elsewhere();

  private:
    Result<Operation> numbered(const Operation& operation);
    Result<void> work(const Operation& operation, Started* started);
    Result<void> meet_monitored(const Operation& operation);
    Error fail(const Operation& operation, const Error& reason);
    std::optional<Error> first_failure(const Error& mine);
    std::string others_at(const Operation& operation, bool refused);
    bool has_died(int other);

    const Context context_;
    const GroupOptions options_;
    std::unique_ptr<Store> store_;
    std::uint64_t sequence_ = 0;  // of the calls that all ranks make
    std::uint64_t pairwise_ = 0;  // of those between two
    std::uint64_t splits_ = 0;
    std::optional<Error> failed_;
    int lost_ = -1;  // lose()
    WorkQueue queue_;
};

}  // namespace ddprun::trainer
