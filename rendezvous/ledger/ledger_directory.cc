// Finds or begins the folder of a job's ledger, and passes reads and creates to the file thread.
#include "rendezvous/ledger/ledger_directory.h"

#include <malloc.h>

#include <memory>
#include <optional>
#include <utility>

#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger/ledger_owner.h"

namespace ddprun::rendezvous {
namespace {

constexpr int kOpenTries = 20;  // other processes may move the folder at the same time
// Entries of so many generations take so much memory that it goes back to the kernel after a read.
constexpr std::size_t kMany = 100;

void give_back_memory(FileThread& files) {
    files.post([] { ::malloc_trim(0); });
}

// What the file thread found out. The notes are logged later, on the loop.
struct Opened {
    Result<LedgerClaim> claim;  // of that folder, or why it cannot be used
    std::string folder;
    std::vector<Note> notes;
    bool follows_end = false;  // a finished ledger of this command was set aside
    bool read_many = false;

    void say(std::string sentence) {
        notes.push_back({Note::Level::info, "ledger folder " + folder + " " + std::move(sentence)});
    }
    // Moves the folder aside. Returns whether the opening may go on.
    bool set_aside(const char* why, const std::string& reason) {
        const auto aside = move_aside(folder, why, claim->mark);
        if (!aside) claim = aside.error();
        if (aside && *aside)
            say(reason + "; it was moved to " + **aside + ", and a new one begins");
        return aside.has_value();
    }
};

std::string folder_of_command(const std::string& path, const LedgerOwner& owner) {
    return path + "-" + owner.command_digest;
}

// The error with what the user can do about it.
Error with_fix(const Error& fault) {
    return Error(fault.code(), fault.sentence() +
                                   "; move its folder away if no job needs it, or choose another "
                                   "with --ledger=directory:PATH");
}

// One attempt to open the folder in `opened`. True: it is ours and open. False with an error in the
// claim: give up. False without: the folder has changed, look again.
bool take(Opened& opened, const std::string& path, const LedgerOwner& owner) {
    // The order matters. The claim says whose the folder is before any entry in it counts.
    if (const auto made = make_folder(opened.folder); !made) {
        opened.claim = made.error();
        return false;
    }
    opened.claim = claim_folder(opened.folder, owner.command_digest);
    if (!opened.claim) {
        if (opened.claim.error().code() == ErrorCode::malformed)
            opened.claim = with_fix(opened.claim.error());
        return false;
    }
    const FolderEntries entries = read_entries(opened.folder, opened.claim->mark, EntryNumber{0});
    opened.read_many |= entries.whole.size() > kMany;
    // Moved away just now.
    if (entries.fault && entries.fault->code() == ErrorCode::not_found) return false;
    switch (decide_use(*opened.claim, entries.whole, entries.fault.has_value(), owner)) {
        case LedgerUse::ours:
            if (!entries.whole.empty()) opened.say(goes_on(entries.whole.back()));
            return true;
        case LedgerUse::finished:
            opened.follows_end = opened.set_aside("finished", "belongs to a job that has ended") &&
                                 entries.whole.front().command_digest == owner.command_digest;
            return false;
        case LedgerUse::unreadable:
            opened.claim = with_fix(*entries.fault);
            return false;
        case LedgerUse::foreign:
            break;
    }
    const std::string own = folder_of_command(path, owner);
    // Even the folder for this very command belongs to another one: two digests are equal, or
    // somebody copied it.
    if (opened.folder == own) {
        opened.claim =
            Error(ErrorCode::unavailable,
                  "ledger folder " + own +
                      " belongs to another command; choose another with --ledger=directory:PATH");
        return false;
    }
    opened.say("belongs to another command with this run id; this job uses " + own);
    opened.folder = own;
    opened.follows_end = false;
    return false;
}

// Opens the ledger of a job that begins, or that goes on after a requeue. All nodes of the job, or
// two jobs, may do this at once; then each looks again until the folder stays the same.
Opened begin_folder(const std::string& path, const LedgerOwner& owner) {
    Opened opened{LedgerClaim{}, path, {}};
    for (int tries = 0; tries < kOpenTries; ++tries) {
        const bool taken = take(opened, path, owner);
        if (taken) remove_temporaries(opened.folder);
        const auto writable = taken ? try_writing(opened.folder) : Result<>();
        if (!writable) opened.claim = writable.error();
        if (taken && writable) return opened;
        // not_found means that another process moved the folder between two steps. Any other error
        // is final.
        if (!opened.claim && opened.claim.error().code() != ErrorCode::not_found) return opened;
    }
    // All attempts failed: the folder cannot be made, or it is moved away each time.
    opened.claim =
        Error(ErrorCode::unavailable, opened.claim ? "ledger folder " + opened.folder +
                                                         " is moved away each time it is opened"
                                                   : opened.claim.error().sentence());
    return opened;
}

// Finds the folder of a running job; else not_found. It lies at PATH-DIGEST if PATH belongs to
// another job. DIGEST is that of the leader's command, which may differ from ours; so with a known
// mark all folders beside PATH are looked at.
Opened find_folder(const std::string& path, const LedgerOwner& owner) {
    Opened opened{Error(), path, {}};
    std::vector<std::string> folders{folder_of_command(path, owner)};
    if (owner.mark != kAnyMark) folders = folders_beside(path);
    folders.insert(folders.begin(), path);
    for (const std::string& folder : folders) {
        opened.folder = folder;
        opened.claim = read_claim(folder);
        if (opened.claim && is_sought(*opened.claim, owner)) return opened;
    }
    opened.claim = Error(
        ErrorCode::not_found,
        "ledger folder " + path +
            " does not belong to the running job; put it on a file system that all nodes share");
    return opened;
}

// Runs `work` on the file thread and hands its result to `done` on the loop.
template <class T>
void ask(FileThread& files, std::function<T()> work, std::function<void(T&)> done) {
    const auto result = std::make_shared<std::optional<T>>();
    files.post([result, work = std::move(work)] { result->emplace(work()); },
               [result, done = std::move(done)] { done(**result); });
}

}  // namespace

void LedgerDirectory::read(EntryNumber from, ReadDone done) {
    using Entries = Result<std::vector<LedgerEntry>>;
    ask<Entries>(
        files_,
        [path = path_, mark = mark_, from]() -> Entries {
            FolderEntries entries = read_entries(path, mark, from);
            if (entries.fault) return *entries.fault;
            return std::move(entries.whole);
        },
        [this, alive = std::weak_ptr(alive_), done = std::move(done)](Entries& entries) {
            if (alive.expired()) return;
            const bool many = entries && entries->size() > kMany;
            done(std::move(entries));
            // The next read comes when another leader is lost, perhaps in weeks.
            if (many && !alive.expired()) give_back_memory(files_);
        });
}

void LedgerDirectory::create(LedgerEntry entry, CreateDone done) {
    ask<LedgerCreated>(
        files_,
        [path = path_, mark = mark_, entry = std::move(entry)] {
            return create_entry(path, mark, entry);
        },
        [alive = std::weak_ptr(alive_), done = std::move(done)](LedgerCreated& created) {
            if (!alive.expired()) done(std::move(created));
        });
}

void LedgerDirectory::look(EntryNumber, LookDone done) {
    ask<Result<int>>(
        files_, [path = path_, mark = mark_] { return newest_allocation(path, mark); },
        [alive = std::weak_ptr(alive_), done = std::move(done)](Result<int>& newest) {
            if (!alive.expired()) done(std::move(newest));
        });
}

void open_ledger_directory(std::string path, LedgerOwner owner, FileThread& files, Log log,
                           LedgerOpened opened) {
    // A slash at the end would put "PATH/-DIGEST" into the folder instead of beside it.
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    ask<Opened>(
        files,
        [path, owner = std::move(owner)] {
            return owner.mark ? find_folder(path, owner) : begin_folder(path, owner);
        },
        [&files, log = std::move(log), done = std::move(opened)](Opened& result) {
            for (const Note& note : result.notes) log(note);
            if (result.read_many) give_back_memory(files);
            if (!result.claim) return done(result.claim.error());
            done(std::unique_ptr<Ledger>(std::make_unique<LedgerDirectory>(
                result.folder, result.claim->mark, files, result.follows_end)));
        });
}

}  // namespace ddprun::rendezvous
