// ProcessGroup: collective operations between the workers of one generation. There is one interface
// and two backends: Gloo on CPUs, NCCL on GPUs. operation.h describes each operation and its
// buffers.
//
// Order: every rank makes the same calls in the same order, those of a group and of its splits
// together; GroupOptions::checked_launches finds who does not. A call blocks until this rank's part
// is done, fails, or exceeds the group's timeout. Nothing waits forever. begin() does not wait for
// the operation. Operations that were begun run in order while the program computes: on GPUs on a
// stream of the group's own, on CPUs on a thread of its own. Gloo sends the first messages of an
// all-reduce already in begin(), so that the network has work while that thread waits for a core. A
// buffer belongs to the group until its Work::wait() has returned, or for a stream from its
// Work::wait(stream) on.
//
// On GPUs begin() gives the call to the GPU, after the work that Operation::stream has been given,
// and returns. Only while the ranks compare the call first (GroupOptions::checked_calls) it waits
// for rank 0. Calls may be captured into a CUDA graph, from a stream that is being captured: then
// use Work::wait(stream). Replays are not compared and have no time-out of their own, but the loss
// of a rank and NCCL's errors end them.
//
// Failure: after the first failed call, and after abort(), the group is over. Every later call
// returns an error, and the sockets (or the NCCL communicator) are shut down. The program should
// then end, and the launcher restarts it. All ranks notice within milliseconds (NCCL: half a
// second), also a rank that waits for a third rank which hangs. The error names the operation, its
// number and size, the ranks that did not reach it, and the first failure that any rank saw. Calls
// behind the failed one have its error, and say that they were not carried out.
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

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "trainer/gpu/gpu_stream.h"
#include "trainer/group/call_teller.h"
#include "trainer/group/failure_story.h"
#include "trainer/group/group_memory.h"
#include "trainer/group/launch_order.h"
#include "trainer/group/operation.h"
#include "trainer/group/work.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

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
    // The ranks compare this many first calls of each shape and caller (Operation::of) before data
    // move, at least one. Each costs about 0.1 ms. A call that waits for a second is compared too,
    // so that ranks which wait for each other in different calls end before the time-out.
    std::uint64_t checked_calls = 3;
    // A debug check for programs that split groups: so many launches of each pair of ranks are
    // compared over all groups that both are in (launch_order.h). Each costs two requests to the
    // store for each other rank of its group. The whole group's options count. 0: none.
    std::uint64_t checked_launches = 0;
    // On CPUs: ranks that share a host read large buffers from each other's memory, where the
    // kernel lets them (trainer/gloo/peer_memory.h). false on one rank keeps all ranks from it.
    bool shares_memory = true;
    // On GPUs: whether the group's stream goes before the program's where both have work.
    GpuPriority priority = GpuPriority::high;
};

class ProcessGroup {
  public:
    virtual ~ProcessGroup() = default;
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    int rank() const { return context_.rank.value; }
    int size() const { return context_.world_size; }
    std::chrono::milliseconds timeout() const { return options_.timeout; }
    virtual const char* backend() const = 0;  // "gloo", "nccl" or "mpi"
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
    // `caller`: as for Operation::of.
    Result<void> all_reduce_values(std::span<double> values, ReduceOp op = ReduceOp::sum,
                                   const char* caller = "");

    // Splits the group. Ranks with the same color (0 or more) form a new group, in the order of
    // their old ranks, and count from 0. A rank with color -1 gets a null pointer. All ranks of
    // this group call it.
    Result<std::unique_ptr<ProcessGroup>> split(int color);

    // Zeroed memory of the group's kind, aligned to 256 bytes, that its network reads fastest: with
    // NCCL memory of ncclMemAlloc, registered, where the library has them. It must not outlive the
    // group. Errors: unavailable.
    virtual Result<GroupMemory> allocate(std::size_t bytes);

    // Tells the network about memory of the program that calls will use again and again. The object
    // ends that, before the memory goes and before the group does; it may be null.
    virtual std::shared_ptr<void> registered(void* memory, std::size_t bytes);

    // Ends the running call, here and soon on the other ranks, and forbids all later calls. Any
    // thread may call it, any number of times.
    void abort();

  protected:
    // `store` belongs to this group alone. Only the thread that carries out an operation uses it.
    ProcessGroup(const Context& context, std::unique_ptr<Store> store, const GroupOptions& options);

    // Carry out a call that has its number: at once or later, or until it is done. They say what
    // became of it by fail() or their own way.
    virtual Work enqueue(const Operation& operation) = 0;
    virtual Result<void> carry_out(const Operation& operation) = 0;
    // Runs a task after all calls so far that use the backend on the host.
    virtual Result<void> in_turn(const std::function<Result<void>()>& task) = 0;

    // Ends what runs, and wakes the other ranks. Any thread, any number of times.
    virtual void cut() = 0;

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
    // The stream on which staged numbers lie.
    virtual GpuStream stage_stream() { return nullptr; }

    // The barrier through the store.
    Result<void> meet_monitored(const Operation& operation);

    // Ends the group by a failure on this rank. Uses store(), so it is for the thread that does.
    Error fail(const FailureStory::Failure& failure);

    // Why the group is over, if it is. The first reason stays. Any thread.
    std::optional<Error> over() const;
    void end_with(const Error& error);

    Store& store() { return *store_; }
    const Context& context() const { return context_; }
    const GroupOptions& options() const { return options_; }
    FailureStory& story() { return story_; }
    const std::string& group_name() const { return name_; }
    CallTeller& teller() { return teller_; }

  private:
    Result<Operation> numbered(const Operation& operation);
    Result<void> check_launch(const Operation& operation);
    Result<std::vector<int>> members_of(int color);
    std::string name_of_part(int color) const;
    Context place_among(const std::vector<int>& members) const;
    Result<void> watch_order();
    Result<void> watch_part(ProcessGroup& part, const std::vector<int>& members) const;
    Result<void> confirm_split(const Result<void>& made, std::uint64_t number);

    const Context context_;
    const GroupOptions options_;
    std::unique_ptr<Store> store_;
    std::uint64_t sequence_ = 0;  // number of the last call that all ranks make
    std::uint64_t pairwise_ = 0;  // number of the last call between two ranks
    std::uint64_t splits_ = 0;    // each split meets in its own part of the store
    // How often each shape of each caller came.
    using Shape = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t,
                             std::uint32_t, std::string>;
    std::map<Shape, std::uint64_t> calls_;
    // Shared with all splits; null before the first split, and without checked_launches.
    std::shared_ptr<LaunchOrder> order_;
    std::size_t place_in_order_ = 0;
    std::string name_ = "the whole group";
    FailureStory story_;
    CallTeller teller_;
    std::atomic<bool> is_over_{false};  // whether over_ has a value
    mutable std::mutex over_mutex_;
    std::optional<Error> over_;
};

}  // namespace ddprun::trainer
