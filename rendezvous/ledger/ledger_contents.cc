// Looks into a ledger folder, and removes one (ledger_contents.h).
#include "rendezvous/ledger/ledger_contents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/hexadecimal.h"
#include "rendezvous/ledger/ledger_files.h"
#include "rendezvous/ledger/ledger_folder.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::int64_t kDiskBlock = 512;  // the unit of st_blocks; stat(2)

Error is_a_link(const std::string& folder) {
    return Error(ErrorCode::refused, "ledger folder " + folder + " is a symbolic link");
}

// A link to another folder is somebody's own, and not the name that a job gave.
Result<OpenFolder> open_no_link(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) return is_a_link(path);
    return open_folder(path);
}

Duration time_of(const struct stat& status) {
    return std::chrono::seconds{status.st_mtim.tv_sec} +
           std::chrono::nanoseconds{status.st_mtim.tv_nsec};
}

// Adds up all files, and finds those that are no ledger's.
Result<EntryNumber> look_at_files(const OpenFolder& folder, LedgerContents& contents) {
    const auto names = list_files(folder);
    if (!names) return names.error();
    EntryNumber newest = kNoEntry;
    for (const std::string& name : *names) {
        struct stat status {};
        if (name == "." || name == ".." ||
            ::fstatat(folder.file.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;  // removed at this moment
        contents.bytes += status.st_blocks * kDiskBlock;
        if (!is_ledger_file(name) || !S_ISREG(status.st_mode)) contents.strangers.push_back(name);
        if (name == kClaimFile) contents.begun = time_of(status);
        const auto number = entry_number(name);
        if (!number) continue;
        ++contents.entries;
        if (*number < newest) continue;
        newest = *number;
        contents.written = time_of(status);
    }
    std::ranges::sort(contents.strangers);
    return newest;
}

Error other_files(const OpenFolder& folder, const LedgerContents& contents) {
    return Error(ErrorCode::refused,
                 "ledger folder " + folder.path +
                     " has a file that no ledger has: " + contents.strangers.front());
}

Error moved(const std::string& folder) {
    return Error(ErrorCode::exists, "ledger folder " + folder +
                                        " has just been moved or replaced: a job begins there");
}

// The claim last: until then, what is left is known as a ledger, and its newest entry tells of an
// end.
Result<> delete_files(const OpenFolder& folder) {
    auto names = list_files(folder);
    if (!names) return names.error();
    std::ranges::sort(*names, {},
                      [](const std::string& name) { return std::pair(name == kClaimFile, name); });
    for (const std::string& name : *names)
        if (is_ledger_file(name) && ::unlinkat(folder.file.get(), name.c_str(), 0) != 0 &&
            errno != ENOENT)
            return folder_error(folder.path, "", errno);
    if (::rmdir(folder.path.c_str()) == 0 || errno == ENOENT) return {};
    return folder_error(folder.path, "", errno);
}

// Whether the open folder is the ledger that is meant, and nothing but a ledger.
Result<> check_meant(const OpenFolder& folder, std::uint64_t mark) {
    LedgerContents contents;
    if (const auto seen = look_at_files(folder, contents); !seen) return seen.error();
    if (!contents.strangers.empty()) return other_files(folder, contents);
    const auto claim = read_claim(folder);
    if (!claim) return claim.error();
    if (claim->mark != mark) return moved(folder.path);
    return {};
}

}  // namespace

Result<LedgerContents> look_into(const std::string& path) {
    const auto folder = open_no_link(path);
    if (!folder) return folder.error();
    LedgerContents contents;
    const auto newest = look_at_files(*folder, contents);
    if (!newest) return newest.error();
    if (!contents.strangers.empty()) {
        contents.fault = other_files(*folder, contents);
        return contents;
    }
    auto claim = read_claim(*folder);
    if (claim)
        contents.claim = std::move(*claim);
    else if (claim.error().code() != ErrorCode::not_found)
        contents.fault = claim.error();
    if (!contents.claim || *newest == kNoEntry) return contents;
    auto entry = read_entry(*folder, *newest);
    if (entry)
        contents.newest = std::move(*entry);
    else
        contents.fault = entry.error();
    return contents;
}

Result<LedgerHistory> read_history(const std::string& path, std::uint64_t mark) {
    const auto folder = open_no_link(path);
    if (!folder) return folder.error();
    const auto names = list_files(*folder);
    if (!names) return names.error();
    std::map<EntryNumber, Duration> written;
    for (const std::string& name : *names) {
        struct stat status {};
        const auto number = entry_number(name);
        if (number &&
            ::fstatat(folder->file.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
            written[*number] = time_of(status);
    }
    LedgerHistory history;
    FolderEntries entries = read_entries(path, mark, EntryNumber{0});
    history.fault = std::move(entries.fault);
    for (LedgerEntry& entry : entries.whole) {
        const auto at = written.find(entry.number);
        if (at == written.end()) break;  // it has come since
        history.entries.push_back({std::move(entry), at->second});
    }
    return history;
}

Result<> remove_ledger(const std::string& path, std::uint64_t mark, const char* why) {
    const auto before = open_no_link(path);
    if (!before) return before.error();
    if (auto meant = check_meant(*before, mark); !meant) return meant;
    // A job has set it aside already, or an earlier removal was cut short.
    if (path.ends_with("-" + hexadecimal(mark))) return delete_files(*before);
    const auto aside = move_aside(path, why, mark);
    if (!aside) return aside.error();
    if (!*aside) return moved(path);
    // Between the check and the move another job's ledger may have come under this name.
    const auto folder = open_no_link(**aside);
    if (!folder) return folder.error();
    if (auto meant = check_meant(*folder, mark); !meant) {
        if (::rename((*aside)->c_str(), path.c_str()) != 0) return folder_error(**aside, "", errno);
        return meant;
    }
    return delete_files(*folder);
}

// Behind an end nobody writes, so the newest entry cannot change after the look.
Result<> remove_ended_ledger(const std::string& path, std::uint64_t mark, int restart) {
    const auto contents = look_into(path);
    if (!contents) return contents.error();
    const std::optional<LedgerEntry>& newest = contents->newest;
    if (newest && newest->end() && newest->requeue == restart)
        return remove_ledger(path, mark, "finished");
    return Error(ErrorCode::exists, "ledger folder " + path + " has no end of this run");
}

}  // namespace ddprun::rendezvous
