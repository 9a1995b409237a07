// Saves snapshots while the training goes on, each rank its share of the files.
//
// save() copies this rank's share into memory that was made beforehand and returns; a thread writes
// it, tells rank 0 through the store, and rank 0 writes the manifest when all files are there. Two
// snapshots may be under way: the third save() waits for the first. All ranks call save() for the
// same steps with the same tensors (their parameters are equal), and get the same answer: a
// snapshot that one rank could not write is nobody's, and its files are removed. A rank that cannot
// learn what became of it (rank 0 is gone) removes nothing: it may have been completed.
//
// Thread: one. Errors come with the next save() or wait(): unavailable (disk full, a rank that did
// not write), usage, timed_out, closed (see snapshot.h); each names the step and the rank.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/group/work_queue.h"
#include "trainer/snapshot/snapshot.h"

namespace ddprun::trainer {

struct WriterOptions {
    std::uint64_t file_bytes = SnapshotFolder::kFileBytes;         // see plan_files
    std::chrono::milliseconds timeout = std::chrono::minutes(10);  // for the other ranks' files
    CopyTensor copy;  // empty: memcpy; tensors on a GPU: copy_from_gpu()
};

CopyTensor copy_from_gpu();

class SnapshotWriter {
  public:
    struct Newest {
        std::int64_t step = -1;                 // of the newest complete one; -1: none yet
        std::chrono::milliseconds duration{0};  // from save() to the manifest on disk
    };

    // The folder was opened on every rank; the writer has its own connection to the store.
    static Result<std::unique_ptr<SnapshotWriter>> make(const Context& context, const Store& store,
                                                        SnapshotFolder folder,
                                                        WriterOptions options = {});
    ~SnapshotWriter();
    SnapshotWriter(const SnapshotWriter&) = delete;
    SnapshotWriter& operator=(const SnapshotWriter&) = delete;

    // Makes the memory for such tensors, in the background.
    void prepare(const std::vector<TensorView>& tensors);

    Result<void> save(std::int64_t step, const std::vector<TensorView>& tensors,
                      const Metadata& metadata);

    // Until all that was saved is on disk. The first failure since the last call.
    Result<void> wait();

    // Any thread.
    Newest newest() const;

  private:
    struct Slot;
    struct Job;
    SnapshotWriter(const Context& context, std::unique_ptr<Store> store, SnapshotFolder folder,
                   WriterOptions options);
    std::vector<std::size_t> own_files(std::size_t files) const;
    Result<void> take_in(Slot& slot, const std::vector<TensorView>& tensors, const Job& job);
    Result<void> write(const Slot& slot, Job& job, const Result<void>& copied);
    Result<void> write_and_agree(const Slot& slot, Job& job, const Result<void>& copied);
    Result<int> edition_of(const Job& job);
    Result<void> write_own(const Slot& slot, const Job& job, const Result<void>& copied,
                           std::vector<std::string>& written);
    Result<void> complete(const Job& job);
    Result<void> await(Slot& slot);

    const Context context_;
    const std::unique_ptr<Store> store_;
    SnapshotFolder folder_;
    const WriterOptions options_;
    std::array<std::unique_ptr<Slot>, 2> slots_;
    std::int64_t saves_ = 0;
    Result<void> failed_;
    mutable std::mutex mutex_;  // of newest_
    Newest newest_;
    WorkQueue queue_;
};

}  // namespace ddprun::trainer
