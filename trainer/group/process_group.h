// ProcessGroup: collective operations between the workers of one generation. There is one interface
// and two backends: Gloo on CPUs, NCCL on GPUs. operation.h describes each operation and its
// buffers.
//
// Order: every rank makes the same calls in the same order. A call blocks until this rank's part is
// done, fails, or exceeds the group's timeout. Nothing waits forever. begin() returns at once
// instead. Operations that were begun run in order on the group's own thread (on GPUs also on its
// own stream), while the program computes. Gloo sends the first messages of an all-reduce already
// in begin(), so that the network has work while that thread waits for a core. A buffer belongs to
// the group until its Work::wait() has returned.
//
// Failure: after the first failed call the group is over. Every later call returns the same error,
// and the sockets (or the NCCL communicator) are shut down. The program should then end, and the
// launcher restarts it. All ranks notice within milliseconds (NCCL: half a second), also a rank
// that waits for a third rank which hangs. The error names the operation, its number and size, the
// ranks that did not reach it, and the first failure that any rank saw.
//
// Results: all ranks get the same bits. Another run with the same world size gets the same bits
// too, because the additions follow the order of the ring (NCCL: only with fixed NCCL_ALGO and
// NCCL_PROTO).
//
// End: destroy the group on all ranks at about the same time. A rank that ends without destroying
// it (or by _exit) while another rank still works looks like a dead rank.
//
// Threads: one at a time, except abort(), which any thread may call.
//
// Errors: usage (a wrong argument; the group stays usable), refused (the ranks do not agree on the
// call), timed_out, closed (a rank is gone), unavailable (the GPU or the network failed).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/group/call_teller.h"
#include "trainer/group/operation.h"
#include "trainer/group/work_queue.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

// Where the buffers of a group lie.
enum class Memory {
    host,
    gpu,  // memory of the worker's own GPU
};

enum class Backend {
    automatic,  // NCCL if every worker has its own GPU and the build has CUDA, else Gloo
    gloo,
    nccl,  // error `refused` if a worker has no GPU or shares one
};

struct GroupOptions {
    Backend backend = Backend::automatic;
    // Limits connecting, and each call.
    std::chrono::milliseconds timeout = std::chrono::minutes(5);
    std::function<void(const std::string&)> note;  // gets remarks, e.g. why Gloo was chosen
    // The ranks compare this many first calls before data moves (about 0.1 ms each). Later calls
    // are compared only if their shape is new (Gloo), or not at all (NCCL).
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
    // The kind of memory that all buffers of this group must have.
    virtual Memory memory() const = 0;

    // Starts an operation and returns at once. An error comes from the Work.
    Work begin(const Operation& operation);
    // Carries out an operation and waits for it. The functions below are short forms of this one.
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

    // All-reduces a few numbers in host memory. On a GPU group it copies them to the GPU and back.
    Result<void> all_reduce_values(std::span<double> values, ReduceOp op = ReduceOp::sum);

    // Splits the group. Ranks with the same color (0 or more) form a new group, in the order of
    // their old ranks, and count from 0. A rank with color -1 gets a null pointer. All ranks of
    // this group call it.
    Result<std::unique_ptr<ProcessGroup>> split(int color);

    // Ends the running call, here and soon on the other ranks, and makes all later calls fail. Any
    // thread may call it, any number of times.
    virtual void abort() = 0;

  protected:
    // `store` belongs to this group alone. Only the thread that carries out an operation uses it.
    ProcessGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options);

    // What a backend did for an operation before its turn. The object lives until the operation is
    // done or refused. It is destroyed before the operation's Work reports the end.
    struct Started {
        virtual ~Started() = default;
    };

    // Does what is possible before the operation's turn. Runs in the caller's thread.
    // `caller_waits`: the call blocks (call()); false for begin(). Null if there is nothing to do
    // ahead.
    virtual std::shared_ptr<Started> start(const Operation& operation, bool caller_waits) = 0;

    // Moves the data. Any error ends the group, whatever its code. `started` is what start()
    // returned; it may be null.
    virtual Result<void> run(const Operation& operation, Started* started) = 0;

    // Makes a group of the same backend for the ranks of `context`, which meet in `store`. All
    // ranks of this group call it. A rank that joins no new group passes color -1 and gets a null
    // pointer.
    virtual Result<std::unique_ptr<ProcessGroup>> split_backend(const Context& context,
                                                                std::unique_ptr<Store> store,
                                                                int color) = 0;

    // Copies numbers from host memory to memory that this group can use; take_back() copies the
    // result back. The default is for groups on host memory, which use the numbers where they are.
    virtual Result<Buffer> stage(Buffer host) { return host; }
    virtual Result<void> take_back(Buffer, Buffer) { return {}; }

    // After this no operation is running and none will start. A backend's destructor calls it
    // first.
    void stop() { queue_.stop(); }

    Store& store() { return *store_; }
    const Context& context() const { return context_; }
    const GroupOptions& options() const { return options_; }
    bool failed() const { return failed_.has_value(); }

    // A backend that knows it reports here which rank's connection closed first.
    void lose(int rank) { lost_ = rank; }

    // Whether another rank has written to the store that its group failed.
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
    std::uint64_t sequence_ = 0;   // number of the last call that all ranks make
    std::uint64_t pairwise_ = 0;   // number of the last call between two ranks
    std::uint64_t splits_ = 0;     // each split meets in its own part of the store
    std::optional<Error> failed_;  // the error that ended the group
    int lost_ = -1;                // set by lose(); -1: unknown
    CallTeller teller_;
    WorkQueue queue_;
};

}  // namespace ddprun::trainer
