// A ledger as a folder on a shared file system: one file `entry-000001.json` an entry, readable by
// people, with a format line and a checksum. An entry is whole or absent: written under a temporary
// name, flushed, then link()ed to its final name, which fails if that exists.
//
// Which folder is whose (design 4.3): a ledger whose newest entry is the end of the job is moved
// aside to `PATH-finished-N` when it is opened, one of another command line to `PATH-other-N`; a
// fresh one is begun at PATH, and a line of the log says so. Only a leader opens it so.
//
// Thread: the loop's; all that touches the file system runs on the FileThread, which must outlive
// the ledger.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rendezvous/file_thread.h"
#include "rendezvous/ledger.h"
#include "rendezvous/log.h"

namespace ddprun::rendezvous {

class LedgerDirectory final : public Ledger {
  public:
    // The folder must exist; open_ledger_directory() sees to it.
    LedgerDirectory(std::string path, FileThread& files) : path_(std::move(path)), files_(files) {}

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override { return "directory:" + path_; }

  private:
    std::string path_;
    FileThread& files_;
    std::shared_ptr<bool> alive_ =
        std::make_shared<bool>(true);  // answers are dropped with the ledger
};

using LedgerOpened = std::function<void(Result<std::unique_ptr<Ledger>>)>;

// Makes the folder (and those above it) where it is missing, sets a finished or foreign ledger
// aside, and proves that entries can be written: `opened` is called on the loop. Errors:
// unavailable ("ledger folder PATH: Permission denied; choose another with
// --ledger=directory:PATH"), malformed (an entry is cut or garbled: the sentence names the file).
void open_ledger_directory(std::string path, std::string command_digest, FileThread& files, Log log,
                           LedgerOpened opened);

}  // namespace ddprun::rendezvous
