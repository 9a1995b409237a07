// A ledger in a folder on a shared file system (ledger_folder.h), one folder for each job.
//
// Which folder belongs to which job (rendezvous/PROTOCOL.md, rule 25):
//
// - If the ledger at PATH ends with the end of a job, the new job moves it to `PATH-finished-MARK`
//   and begins a new one at PATH.
// - If it belongs to another command, that job may be running. It is left alone, and this job's
//   ledger lies at `PATH-DIGEST`.
// - If it cannot be read, it is refused: somebody may rely on it.
//
// A log line reports each of these.
//
// Thread: the loop's. Everything that touches the file system runs on the FileThread, which must
// outlive the ledger.
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
    // The folder must exist and contain this mark (0: not checked); open_ledger_directory() sees to
    // that.
    LedgerDirectory(std::string path, std::uint64_t mark, FileThread& files,
                    bool follows_end = false)
        : path_(std::move(path)), mark_(mark), files_(files), follows_end_(follows_end) {}

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override { return "directory:" + path_; }
    std::uint64_t mark() const override { return mark_; }
    std::string folder() const override { return path_; }
    bool follows_end() const override { return follows_end_; }

  private:
    std::string path_;
    std::uint64_t mark_;
    FileThread& files_;
    bool follows_end_;
    // Expires with the ledger; answers that come later are dropped.
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// `opened` is called on the loop. Possible errors: unavailable ("ledger folder PATH: Permission
// denied; choose another with --ledger=directory:PATH"), malformed (an entry is cut or garbled; the
// sentence names the file), not_found (owner.mark is given, and no folder of this name contains
// it).
void open_ledger_directory(std::string path, LedgerOwner owner, FileThread& files, Log log,
                           LedgerOpened opened);

}  // namespace ddprun::rendezvous
