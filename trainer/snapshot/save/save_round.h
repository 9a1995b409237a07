// SaveRound: one snapshot on its way from memory to the disk. It goes one way: the ranks agree,
// each writes its files, rank 0 commits. save_meeting.h has the words that they exchange for it.
//
//   write() -> open()                    all ranks: they save the same, and how files are written
//           -> lead()   -> hear_all()    rank 0: all answers, and who writes which slices
//                       -> write_own()   its own files
//                       -> complete()    the files of all, and the manifest
//           -> follow() -> write_own()   the other ranks: their files, then rank 0's word
//
// Thread: one, the writer's. Errors: see snapshot_writer.h; older snapshots stay after each.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "trainer/snapshot/folder/snapshot.h"
#include "trainer/snapshot/save/save_copier.h"
#include "trainer/snapshot/save/save_job.h"
#include "trainer/snapshot/save/save_meeting.h"
#include "trainer/tensors/slice_agreement.h"

namespace ddprun::trainer {

class SaveRound {
  public:
    // What a writer keeps from round to round.
    struct Kept {
        std::set<std::string> lists;     // checksums of those that this rank has put into the store
        SliceAgreement slices;           // of all ranks; on rank 0
        std::vector<std::string> words;  // keys of rank 0 that other ranks may still read
    };

    // `memory`: this rank's files, laid out. All of them must outlive the round.
    SaveRound(const Context& context, SnapshotFolder& folder, Kept& kept, SaveMeeting meeting,
              SaveJob& job, SaveCopier::Memory& memory);

    // Writes, and learns whether the snapshot is complete. Rank 0's result is the result of all
    // ranks: otherwise some rank could report a snapshot that does not exist. `copied`: whether the
    // memory holds this rank's files. A rank without them takes part, so that nobody waits for it.
    Result<void> write(const Result<void>& copied);

  private:
    Result<WritePlan> open(const Result<void>& copied);
    Result<void> lead(const Result<void>& copied);
    Result<void> follow();
    Result<std::vector<Metadata>> hear_all(const Result<void>& copied);
    Result<std::vector<Metadata>> agree(const Result<void>& copied);
    Result<std::string> slices_word();
    Result<void> write_own();
    Result<SnapshotFile> write_file(const SaveJob::File& file, PageBuffer& pages);
    Result<void> complete(std::vector<Metadata> metadata);
    Result<SnapshotFile> hear_of(const SaveJob::File& expected);

    const Context& context_;
    SnapshotFolder& folder_;
    Kept& kept_;
    SaveMeeting meeting_;
    SaveJob& job_;
    SaveCopier::Memory& memory_;
    std::vector<std::string> files_;  // names that may be on disk
};

}  // namespace ddprun::trainer
