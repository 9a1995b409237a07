// How the gradients of a bucket travel: where a program compresses them, takes another way than the
// all-reduce, or counts what is sent. The reducer calls begin() as soon as a bucket is full, while
// backward still computes, and end() in finish(), one bucket after the other:
//
//   struct Mine final : CommunicationHook {
//       Result<Work> begin(ProcessGroup& group, std::size_t, const Buffer& bucket) override {
//           return group.begin(Operation::all_reduce(bucket, ReduceOp::avg));
//       }
//   };
//   options.hook = std::make_shared<Mine>();
//
// After end() the bucket holds the mean over ranks, the same bits on each: else their optimizers
// drift apart. All ranks have the same hook. (PyTorch's DDP communication hooks are the model.)
//
// What begin() takes counts as communication. Thread: the reducer's. A hook serves one reducer at a
// time; a second one is refused. Its errors are those of the reducer's calls.
#pragma once

#include <memory>
#include <vector>

#include "trainer/group/group_memory.h"
#include "trainer/group/process_group.h"

namespace ddprun::trainer {

class CommunicationHook {
  public:
    virtual ~CommunicationHook() = default;

    // Once, before the first bucket: what memory it needs. The buckets stay where they are.
    virtual Result<void> prepare(ProcessGroup& /*group*/, const std::vector<Buffer>& /*buckets*/) {
        return {};
    }

    // Bucket `index` is full: begins what sends it, and waits for nothing. Of several operations
    // the last one's Work: a group carries them out in the order in which they were begun.
    virtual Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket) = 0;

    // That Work has ended well: what is left to do until the mean stands in the bucket.
    virtual Result<void> end(std::size_t /*index*/, const Buffer& /*bucket*/) { return {}; }

  private:
    friend class GradientReducer;
    bool serves_ = false;
};

// The mean of the gradients as they are: what a reducer does where it is given no hook.
class AllReduceHook final : public CommunicationHook {
  public:
    Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket) override;
};

// float32 gradients travel as bfloat16, half the bytes; others as they are.
class Bfloat16Hook final : public CommunicationHook {
  public:
    Result<void> prepare(ProcessGroup& group, const std::vector<Buffer>& buckets) override;
    Result<Work> begin(ProcessGroup& group, std::size_t index, const Buffer& bucket) override;
    Result<void> end(std::size_t index, const Buffer& bucket) override;

  private:
    std::vector<GroupMemory> halves_;  // one for each bucket; empty: it travels as it is
};

}  // namespace ddprun::trainer
