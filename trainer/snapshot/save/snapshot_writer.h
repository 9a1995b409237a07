// SnapshotWriter: saves snapshots while the training goes on. Each rank writes its share of the
// files.
//
// save() copies this rank's share into memory that was allocated before, and returns; from a GPU
// (WriterOptions::gpu) it returns while the copies go on beside the program's stream. A thread
// writes it to disk and reports to rank 0 through the store. Rank 0 writes the manifest when all
// files are on disk. Two snapshots may be in progress; the third save() waits for the first.
//
// All ranks call save() for the same steps, and get the same result. A tensor without a place is
// one that all ranks have, equal in its bits (data parallel); save() compares it
// (WriterOptions::verify_replicas). A tensor with a place is this rank's
// own: a slice, or a whole tensor that not all ranks have (slice_of(), tensor.h). The slices of all
// ranks must be whole tensors. Several ranks may bring the same slice (replicas): each copies it in
// save(), and one of them writes it, so that their shares of the bytes are about equal
// (slice_choice.h). Replicas must have one type and shape; that their bits are equal is the
// program's care, and is not looked at. Each rank writes its slices as one file, and rank 0 an
// index (snapshot_index.h). If ranks differ in the step, in the tensors that all have, or if slices
// leave a hole or overlap in part, the snapshot fails with a sentence that names tensor and ranks,
// and older snapshots stay. If one rank cannot write its share, the snapshot fails on all ranks,
// and its files are removed. A rank that cannot learn the result, because rank 0 is gone, removes
// nothing: the snapshot may be complete.
//
// The destructor finishes what was saved. Where an exception destroys the writer, or after
// training_failed(), another rank may be dead: then this rank waits for the others one second at
// most. So the restart does not wait for the time-out of a snapshot that cannot become complete.
//
// A job may have several writers, for example for its latest and its best snapshots. Each has a
// folder of its own, and all ranks make them in the same order.
//
// Thread: one, except newest(). An error is returned by the next save() or wait(): unavailable (the
// disk is full, or another rank did not write), refused (the ranks differ, or the step lies behind
// a snapshot of the folder, see SnapshotFolder::save()), usage, timed_out,
// closed (see snapshot.h). Its sentence names the step, and the rank where one is known.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/group/work_queue.h"
#include "trainer/snapshot/folder/snapshot.h"
#include "trainer/snapshot/save/folder_claim.h"
#include "trainer/snapshot/save/save_copier.h"
#include "trainer/snapshot/save/save_job.h"
#include "trainer/snapshot/save/save_meeting.h"
#include "trainer/snapshot/save/save_round.h"

namespace ddprun::trainer {

struct WriterOptions {
    std::uint64_t file_bytes = SnapshotFolder::kFileBytes;         // see plan_files
    std::chrono::milliseconds timeout = std::chrono::minutes(10);  // for other ranks' files
    CopyTensor copy;  // of tensors in host memory; empty: memcpy
    // For tensors on the GPU that is current in make(), in place of `copy`: save() returns before
    // the bytes are on the host, and their copies run at the speed of the link. GpuTensors() stands
    // for a program that computes on the default stream. A build without CUDA returns an error from
    // make().
    std::optional<GpuTensors> gpu = {};
    // save() compares the tensors that all ranks have, by hashes of at most 16 MiB, in each save of
    // others: a snapshot of replicas that have drifted apart would be a mixture. The snapshot is
    // then refused, with the tensor and the ranks. Not for tensors that `gpu` or `copy` reads.
    bool verify_replicas = true;
    // A snapshot that cannot be saved for a reason that may pass (a full disk, a folder that is
    // gone or may only be read) is a warning of rank 0's folder, one for each snapshot, and no
    // error. The training goes on, and the next save() tries again. newest() says which one is
    // complete.
    bool goes_on_unsaved = false;
};

class SnapshotWriter {
  public:
    struct Newest {
        std::int64_t step = -1;                 // of the newest complete snapshot; -1: none yet
        std::chrono::milliseconds duration{0};  // from save() to the manifest on disk
    };

    // All ranks call it, each with its own SnapshotFolder of one path. The writer opens its own
    // connection to the store. Errors: those of the store; usage, if another writer of this process
    // saves to this folder.
    static Result<std::unique_ptr<SnapshotWriter>> make(const Context& context, const Store& store,
                                                        SnapshotFolder folder,
                                                        WriterOptions options = {});
    ~SnapshotWriter();
    SnapshotWriter(const SnapshotWriter&) = delete;
    SnapshotWriter& operator=(const SnapshotWriter&) = delete;

    // Allocates the memory for such tensors, in the background. Without it the first two calls of
    // save() allocate it and take longer.
    void prepare(const std::vector<TensorView>& tensors);

    // Starts a snapshot. The tensors may change as soon as it returns; with WriterOptions::gpu by
    // what is given to its stream after that (if it goes on beside the copies: after
    // before_change()). They must not be freed before wait(). `metadata` is rank 0's;
    // those of other ranks are ignored. `own_metadata` is stored for each rank, for what differs
    // from rank to rank: metadata_of_rank(). An error is that of an earlier snapshot, or of the
    // copying.
    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata, const Metadata& own_metadata = {});

    // With WriterOptions::gpu: what is given to `stream` from now on comes behind the copies of all
    // snapshots so far. Does not wait. Errors: unavailable.
    Result<void> before_change(GpuStream stream) const { return copier_.before_change(stream); }

    // Waits until everything that was saved is on disk. Returns the first failure since the last
    // save() or wait().
    Result<void> wait();

    // For programs without exceptions: the training has failed, and what is under way gets one more
    // second. Only the destructor may follow.
    void training_failed();

    // The newest snapshot that this writer has completed. Any thread.
    Newest newest() const;

    // How long save() and wait() have kept their caller from training, in all.
    std::chrono::milliseconds held() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(held_);
    }

  private:
    struct Slot;
    SnapshotWriter(const Context& context, std::unique_ptr<Store> store, SnapshotFolder folder,
                   FolderClaim claim, WriterOptions options, SaveCopier copier);
    bool waits_no_longer() const { return std::chrono::steady_clock::now() > leave_by_.load(); }
    Result<void> write(Slot& slot, SaveJob& job, Result<void> copied);
    Result<void> await(Slot& slot);
    SaveMeeting meeting_of(const SaveJob& job);
    std::string key_of(std::int64_t save) const;
    Result<void> or_warned(const Result<void>& saved) const;

    const Context context_;
    // When the waits for other ranks end, whatever their time-outs.
    std::atomic<std::chrono::steady_clock::time_point> leave_by_{
        std::chrono::steady_clock::time_point::max()};
    const std::unique_ptr<Store> store_;  // whose waits end then
    // Since when save() waits for the snapshot before the last one; max: it does not.
    std::atomic<std::chrono::steady_clock::time_point> held_up_since_{
        std::chrono::steady_clock::time_point::max()};
    const FolderClaim claim_;
    SnapshotFolder folder_;
    const WriterOptions options_;
    SaveCopier copier_;
    std::array<std::unique_ptr<Slot>, 2> slots_;
    std::int64_t number_ = 0;  // of this writer in the job, the same on all ranks
    std::int64_t saves_ = 0;
    std::chrono::steady_clock::duration held_{};
    SaveRound::Kept kept_;
    Result<void> failed_;
    mutable std::mutex mutex_;  // of newest_
    Newest newest_;
    WorkQueue queue_;
};

}  // namespace ddprun::trainer
