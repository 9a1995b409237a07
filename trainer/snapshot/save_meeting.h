// SaveMeeting: what the ranks tell each other about one snapshot, through the store.
//
//   begin       rank 0 → all   what rank 0 believes about this save, the edition to write, and
//                              whether files are read back; or why there will be no snapshot
//   answer/R    rank R → 0     agreed, with the rank's own metadata; or in what rank R differs
//   0, 1, …     a rank → 0     a file is on disk, with its size and checksum; or why it is not
//   done        rank 0 → all   whether the snapshot is complete
//
// Rank 0 reads all answers before it believes in any file. A rank that differs writes nothing. The
// list of tensors travels only if two ranks differ, and lies in the store once for each different
// list of a writer.
//
// Thread: one. Errors: those of the store; refused, if two ranks differ; those of another rank,
// which the sentence names.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/snapshot/save_opinion.h"
#include "trainer/snapshot/snapshot_manifest.h"
#include "trainer/snapshot/write_plan.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

class SaveMeeting {
  public:
    // `prefix`: of the keys of this snapshot; the same on all ranks. `timeout`: for all that rank 0
    // waits for, together; the other ranks wait a little longer for rank 0.
    SaveMeeting(const Context& context, Store& store, std::string prefix,
                std::chrono::milliseconds timeout);

    // Rank 0: opens the meeting. `lists` are the checksums of the lists that this writer has put
    // into the store before.
    Result<void> begin(const SaveOpinion& mine, const std::string& tensors, const WritePlan& plan,
                       std::set<std::string>& lists);
    Result<void> call_off(const Error& reason);
    // Rank 0: waits for every other rank. The metadata of all ranks, in their order; `own` is that
    // of rank 0.
    Result<std::vector<Metadata>> answers(const Metadata& own);
    // Rank 0: waits for the report of file `index`, which rank `rank` writes as `name`.
    Result<SnapshotFile> file(std::size_t index, const std::string& name, int rank);
    // Rank 0: tells the result of all.
    void end(const Result<void>& result);

    // The other ranks: learn what rank 0 begins, and answer. An error ends this rank's part of the
    // snapshot; outcome() then has the same one, or rank 0's.
    Result<WritePlan> join(const SaveOpinion& mine, const std::string& tensors,
                           const Metadata& own);
    // Waits for rank 0's result. `unknown` is set if rank 0 did not say one.
    Result<void> outcome(bool& unknown);

    // All ranks: a file is written, or could not be.
    Result<void> report(std::size_t index, const Result<SnapshotFile>& file);

  private:
    using Clock = std::chrono::steady_clock;
    std::chrono::milliseconds left() const;
    Result<void> compare(const SaveOpinion& first, const SaveOpinion& mine,
                         const std::string& tensors);

    const Context& context_;
    Store& store_;
    const std::string prefix_;
    const std::chrono::milliseconds timeout_;
    const Clock::time_point deadline_;
};

}  // namespace ddprun::trainer
