// A ledger as a folder on a shared file system (ledger_folder.h), one for each job.
//
// Which folder is whose (design 4.3): a ledger whose newest entry is the end of a job is moved
// aside to `PATH-finished-MARK` by the job that begins, and a fresh one is begun at PATH; one of
// another command is left alone, for its job may be running, and this job's lies at `PATH-DIGEST`;
// one that cannot be read is refused, unless Slurm has ended the allocation that wrote it: then it
// is moved to `PATH-damaged-MARK`. A line of the log says each of these.
//
// Thread: the loop's; all that touches the file system runs on the FileThread, which must outlive
// the ledger.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/loop/file_thread.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_claim.h"

namespace ddprun::rendezvous {

class LedgerDirectory final : public Ledger {
  public:
    // The folder must exist and bear this mark (0: not looked at); open_ledger_directory() sees to
    // it.
    LedgerDirectory(std::string path, std::uint64_t mark, FileThread& files)
        : path_(std::move(path)), mark_(mark), files_(files) {}

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override { return "directory:" + path_; }
    std::uint64_t mark() const override { return mark_; }
    std::string folder() const override { return path_; }

  private:
    std::string path_;
    std::uint64_t mark_;
    FileThread& files_;
    std::shared_ptr<bool> alive_ =
        std::make_shared<bool>(true);  // answers are dropped with the ledger
};

// `opened` is called on the loop. Errors: unavailable ("ledger folder PATH: Permission denied;
// choose another with --ledger=directory:PATH"), malformed (an entry is cut or garbled: the
// sentence names the file), not_found (owner.mark is given, and no folder of this name bears it).
void open_ledger_directory(std::string path, LedgerOwner owner, FileThread& files, Log log,
                           LedgerOpened opened);

}  // namespace ddprun::rendezvous
