// CommunicationHook: how the gradients of a bucket travel between ranks. A program writes its own
// hook to compress gradients, to replace the all-reduce, or to count what is sent. (The model is
// PyTorch's DDP communication hooks.)
//
// The reducer calls begin() as soon as a bucket is full, while backward still computes. It calls
// end() in finish(), for one bucket after the other. On a GPU both work on the stream that they
// get, and do not wait: what lies before on it has written the bucket.
//
//   struct Mine final : CommunicationHook {
//       Result<Work> begin(ProcessGroup& group, std::size_t, const Buffer& bucket,
//                          GpuStream stream) override {
//           return group.begin(Operation::all_reduce(bucket, ReduceOp::avg).on(stream));
//       }
//   };
//   options.hook = std::make_shared<Mine>();
//
// After end() the bucket must hold the mean over ranks, with the same bits on every rank. Otherwise
// the parameters of the ranks drift apart. (A hook that shares buckets out leaves the mean in this
// rank's part alone, and garbage in the others.) All ranks must use the same hook.
//
// The time from begin() on counts as communication. Thread: the reducer's. A hook serves one
// reducer at a time; a second reducer refuses it. The reducer's calls return the hook's errors.
#pragma once

#include <memory>
#include <vector>

#include "trainer/group/group_memory.h"
#include "trainer/group/process_group.h"

namespace ddprun::trainer {

class CommunicationHook {
  public:
    virtual ~CommunicationHook() = default;

    // Called once, before the first bucket, so that the hook can allocate memory. The buckets stay
    // where they are.
    virtual Result<void> prepare(ProcessGroup& /*group*/, const std::vector<Buffer>& /*buckets*/) {
        return {};
    }

    // Called when bucket `index` is full. Starts what sends it and does not wait. If that takes
    // several operations, return the Work of the last one: a group carries out operations in order.
    virtual Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket,
                               GpuStream stream) = 0;

    // Called after that Work, in the order of the stream; on the host after it has succeeded. Does
    // what is left until the bucket holds the mean.
    virtual Result<void> end(std::size_t /*index*/, const Buffer& /*bucket*/,
                             GpuStream /*stream*/) {
        return {};
    }

    // Into how many parts buckets are cut, of which part `rank` is this rank's. 1: no rank has a
    // part of its own. More than one: as many as the group has ranks.
    virtual std::size_t shards() const { return 1; }

    // Called by the reducer's zero() and settle(): the hook must have done with the memory of the
    // buckets.
    virtual Result<void> release() { return {}; }

  private:
    friend class GradientReducer;
    bool serves_ = false;  // a reducer uses it
};

// Averages the gradients as they are. The default of a reducer.
class AllReduceHook final : public CommunicationHook {
  public:
    Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket,
                       GpuStream stream) override;
};

// Sends float32 gradients as bfloat16, which halves the bytes. Other types travel as they are.
class Bfloat16Hook final : public CommunicationHook {
  public:
    Result<void> prepare(ProcessGroup& group, const std::vector<Buffer>& buckets) override;
    Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket,
                       GpuStream stream) override;
    Result<void> end(std::size_t index, const Buffer& bucket, GpuStream stream) override;

  private:
    std::vector<GroupMemory> halves_;  // one for each bucket; empty: no conversion
};

}  // namespace ddprun::trainer
