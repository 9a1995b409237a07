// SaveMeeting: what the ranks tell each other about one snapshot, through the store.
//
//   begin       rank 0 → all   what rank 0 believes about this save, the edition to write, and
//                              whether files are read back; or why there will be no snapshot
//   answer/R    rank R → 0     agreed, with the checksum of its list of slices and the rank's own
//                              metadata; or in what rank R differs; or the hashes of its tensors,
//                              if they do not hold what rank 0's do
//   writes/R    rank 0 → R     the checksum of the list of those slices that rank R writes: all of
//                              its own, or fewer where other ranks have them, too
//   0, 1, …     a rank → 0     a file is on disk, with its size and checksum; or why it is not
//   slices/R    rank R → 0     the same for the file of its slices, with the blocks' checksums
//   done        rank 0 → all   whether the snapshot is complete
//
// Rank 0 reads all answers before it believes in any file. A rank that differs writes nothing, and
// a rank with slices nothing before it knows which of them it writes. The list of tensors travels
// only if two ranks differ, a list of slices only when one has changed, and each lies in the store
// once for each different list of a writer. All else is removed: by each rank what it has said,
// when it has heard that rank 0 is done, and by rank 0 its words of a save that is over, when all
// ranks have come to the next one.
//
// Thread: one. Errors: those of the store; refused, if two ranks differ; those of another rank,
// which the sentence names.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/snapshot/folder/write_plan.h"
#include "trainer/snapshot/format/snapshot_manifest.h"
#include "trainer/snapshot/save/save_opinion.h"
#include "trainer/worker/context.h"
#include "trainer/worker/store.h"

namespace ddprun::trainer {

// What a rank answers.
struct SaveAnswer {
    Metadata metadata;
    std::string slices;    // checksum of write_slices(); empty: it brings none
    std::string contents;  // contents_of(); empty: not compared
};

// A rank that does not call save() for a snapshot for which others do.
struct Absence {
    // Gets one sentence when it has not come for five seconds: it may still come.
    std::function<void(const std::string&)> warn;
    // Whether it is certain by now that it will not.
    std::function<bool()> certain;
};

class SaveMeeting {
  public:
    // `prefix`: of the keys of this snapshot; the same on all ranks. `timeout`: for all that rank 0
    // waits for, together; the other ranks wait a little longer for rank 0.
    SaveMeeting(const Context& context, Store& store, std::string prefix,
                std::chrono::milliseconds timeout, Absence absence = {});

    // Rank 0: keys that answers() removes, and to which end() adds. It must outlive this object.
    void remove_later(std::vector<std::string>& keys) { later_ = &keys; }

    // Puts a list into the store, unless this rank has. Returns its checksum. `lists`: those that
    // this writer has put there before.
    Result<std::string> publish(const std::string& list, std::set<std::string>& lists);
    // The list with this checksum, of whatever rank.
    Result<std::string> published(const std::string& checksum);

    // Rank 0: opens the meeting.
    Result<void> begin(const SaveOpinion& mine, const std::string& tensors, const WritePlan& plan,
                       std::set<std::string>& lists);
    Result<void> call_off(const Error& reason);
    // Rank 0: tells another rank which slices it writes, or why there will be no snapshot.
    Result<void> assign(int rank, const Result<std::string>& list, std::set<std::string>& lists);
    // Rank 0: waits for every other rank. The answers of all ranks, in their order; `own` is that
    // of rank 0. `names`: of the tensors that all ranks have.
    Result<std::vector<SaveAnswer>> answers(const SaveAnswer& own,
                                            const std::set<std::string>& names);
    // Rank 0: waits for the report under `key` of a file, which rank `rank` writes as `name`.
    Result<SnapshotFile> file(const std::string& key, const std::string& name, int rank);
    // Rank 0: tells the result of all.
    void end(const Result<void>& result);

    // The other ranks: learn what rank 0 begins, and answer. `copied`: whether this rank has its
    // share. An error ends this rank's part of the snapshot; outcome() then has the same one, or
    // rank 0's.
    Result<WritePlan> join(const SaveOpinion& mine, const std::string& tensors,
                           const SaveAnswer& own, const Result<void>& copied);
    // Waits for the list of the slices that this rank writes. `own`: the list of those it brings.
    Result<std::string> assigned(const std::string& own);
    // Waits for rank 0's result. `unknown` is set if rank 0 did not say one.
    Result<void> outcome(bool& unknown);

    // All ranks: a file is written, or could not be.
    Result<void> report(const std::string& key, const Result<SnapshotFile>& file);

    // In place of all that: this rank has called save() so many times and calls it no more.
    void leave(std::int64_t saves);

  private:
    using Clock = std::chrono::steady_clock;
    Result<std::string> first_word(const std::string& key, int rank);
    Result<void> say(const std::string& key, const std::string& word);
    void remove_own();
    std::chrono::milliseconds left() const;
    Result<void> compare(const SaveOpinion& first, const SaveOpinion& mine,
                         const std::string& tensors);
    Error send_contents(const std::string& contents);

    const Context& context_;
    Store& store_;
    const std::string prefix_;
    const std::chrono::milliseconds timeout_;
    const Clock::time_point begun_ = Clock::now(), deadline_;
    const Absence absence_;
    std::vector<std::string> said_;  // keys of this rank alone
    std::vector<std::string>* later_ = nullptr;
};

}  // namespace ddprun::trainer
