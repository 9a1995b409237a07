// Claim and entries of a ledger folder (ledger_folder.h).
#include "rendezvous/ledger/ledger_folder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/hexadecimal.h"
#include "base/system/random_bytes.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger/ledger_allocation.h"
#include "rendezvous/ledger/ledger_files.h"
#include "rendezvous/ledger_format/ledger_json.h"
#include "rendezvous/model/secret_file.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::chrono::minutes kAbandoned{10};  // no write takes this long

std::string entry_name(EntryNumber number) {
    char name[32];
    std::snprintf(name, sizeof name, "entry-%06lld.json", static_cast<long long>(number.value));
    return name;
}

// Opens the folder if it contains this mark, else not_found.
Result<OpenFolder> open_marked(const std::string& path, std::uint64_t mark) {
    auto folder = open_folder(path);
    if (mark == 0) return folder;
    const Result<LedgerClaim> claim =
        folder ? read_claim(*folder) : Result<LedgerClaim>(folder.error());
    if (!claim && claim.error().code() != ErrorCode::not_found) return claim.error();
    if (claim && claim->mark == mark) return folder;
    return Error(ErrorCode::not_found, "ledger folder " + path +
                                           " no longer belongs to this job: it was deleted or "
                                           "replaced");
}

// The highest number of which an entry lies in the folder; kNoEntry: none.
Result<EntryNumber> highest_entry(const OpenFolder& folder) {
    const auto names = list_files(folder);
    if (!names) return names.error();
    EntryNumber highest = kNoEntry;
    for (const std::string& name : *names)
        highest = std::max(highest, entry_number(name).value_or(kNoEntry));
    return highest;
}

// Entries are never removed while a job goes on. One entry less would let a second one be written
// under a number that others have built on.
Error vanished(const OpenFolder& folder, EntryNumber number, EntryNumber highest) {
    return Error(ErrorCode::malformed, "ledger entry " + folder.path + "/" + entry_name(number) +
                                           " has vanished, but " + entry_name(highest) +
                                           " is there: somebody has removed it");
}

// Whether the entry before this number is there, and none behind it.
Result<> nothing_vanished(const OpenFolder& folder, EntryNumber number) {
    const auto highest = highest_entry(folder);
    if (!highest) return highest.error();
    if (highest->value < number.value - 1)
        return Error(ErrorCode::malformed, "ledger entry " + folder.path + "/" +
                                               entry_name(EntryNumber{number.value - 1}) +
                                               " has vanished: somebody has removed it");
    if (*highest <= number) return {};
    const auto there = read_entry(folder, number);
    if (!there && there.error().code() == ErrorCode::not_found)
        return vanished(folder, number, *highest);
    return {};
}

// "secret", "secret-DIGEST", and what a writer that died has left of them: with ".XXXXXX", the
// letters and digits of mkostemp() (base/system/private_file.cc).
bool is_secret_file(std::string_view name) {
    if (!name.starts_with(kSecretFile)) return false;
    name.remove_prefix(kSecretFile.size());
    constexpr std::size_t kRandom = 7;
    if (name.size() >= kRandom && name[name.size() - kRandom] == '.') name.remove_suffix(kRandom);
    return name.empty() ||
           (name.size() > 1 && name[0] == '-' &&
            name.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos);
}

LedgerCreated failed(LedgerEntry entry, std::string sentence) {
    return {LedgerCreated::Outcome::failed, std::move(entry), std::move(sentence)};
}

Error cannot_link(const OpenFolder& folder, int code) {
    return folder_error(folder.path,
                        " (making a hard link); choose another with --ledger=directory:PATH", code);
}

}  // namespace

Result<LedgerEntry> read_entry(const OpenFolder& folder, EntryNumber number) {
    const std::string path = folder.path + "/" + entry_name(number);
    const auto text = read_file(folder, entry_name(number));
    if (!text) return text.error();
    auto entry = from_json(*text);
    if (!entry)
        return Error(entry.error().code(), "ledger entry " + path + " " + entry.error().sentence());
    // The number inside must be that of the name: somebody may have renamed or copied the file.
    if (entry->number != number)
        return Error(ErrorCode::malformed, "ledger entry " + path + " has the number " +
                                               std::to_string(entry->number.value));
    return entry;
}

Result<LedgerClaim> read_claim(const OpenFolder& folder) {
    const auto text = read_file(folder, kClaimFile);
    if (!text) return text.error();
    auto claim = claim_from_json(*text);
    if (!claim)
        return Error(claim.error().code(), "ledger file " + folder.path + "/" + kClaimFile + " " +
                                               claim.error().sentence());
    return claim;
}

FolderEntries read_entries(const std::string& path, std::uint64_t mark, EntryNumber from) {
    FolderEntries entries;
    const auto folder = open_marked(path, mark);
    if (!folder) {
        entries.fault = folder.error();
        return entries;
    }
    for (EntryNumber number{std::max<std::int64_t>(from.value, 0)};; ++number.value) {
        auto entry = read_entry(*folder, number);
        if (!entry && entry.error().code() == ErrorCode::not_found) {
            const auto highest = highest_entry(*folder);
            if (highest && *highest <= number) return entries;
            // It may have come meanwhile, with the ones behind it.
            entry = read_entry(*folder, number);
            if (!highest)
                entries.fault = highest.error();
            else if (!entry)
                entries.fault = vanished(*folder, number, *highest);
        } else if (!entry) {
            entries.fault = entry.error();
        }
        if (!entry) return entries;
        entries.whole.push_back(std::move(*entry));
    }
}

Result<LedgerClaim> read_claim(const std::string& path) {
    const auto folder = open_folder(path);
    if (!folder) return folder.error();
    return read_claim(*folder);
}

LedgerCreated create_entry(const std::string& path, std::uint64_t mark, const LedgerEntry& entry) {
    const auto folder = open_marked(path, mark);
    if (!folder) return failed(entry, folder.error().sentence());
    if (auto whole = nothing_vanished(*folder, entry.number); !whole)
        return failed(entry, whole.error().sentence());
    const auto code = create_file(*folder, entry_name(entry.number), to_json(entry));
    if (!code) return failed(entry, code.error().sentence());
    // The result of link() is not trusted. A network file system may repeat a request that was
    // carried out, and then report "exists" for our own entry or "failed" for one that was written.
    // What stands there decides.
    auto stands = read_entry(*folder, entry.number);
    if (!stands) {
        // Without a file, the error of link() says more than "not found".
        const bool blame_link = *code != 0 && stands.error().code() == ErrorCode::not_found;
        return failed(entry, blame_link
                                 ? folder_error(path, " (making a hard link)", *code).sentence()
                                 : stands.error().sentence());
    }
    // The allocation has begun only when others can see it. After the end of the earlier one it
    // begins with a generation. (Nobody looks for the first allocation, whose count is 0.)
    const bool begins = stands->allocation() || stands->requeue > 0;
    if (begins && stands->leader == entry.leader)
        if (auto seen = record_allocation(*folder, entry.requeue); !seen)
            return failed(entry, seen.error().sentence());
    return created(entry, std::move(*stands));
}

Result<int> newest_allocation(const std::string& path, std::uint64_t mark) {
    const auto folder = open_marked(path, mark);
    if (!folder) return folder.error();
    return newest_allocation(*folder);
}

Result<LedgerClaim> claim_folder(const std::string& path, const std::string& digest) {
    const auto folder = open_folder(path);
    if (!folder) return folder.error();
    // Before anybody can find the ledger: later a look-up might miss the file.
    if (auto made = make_allocation_file(*folder); !made) return made.error();
    if (auto claim = read_claim(*folder); claim || claim.error().code() != ErrorCode::not_found)
        return claim;
    const auto created =
        create_file(*folder, kClaimFile, to_json(LedgerClaim{digest, random_mark()}));
    if (!created) return created.error();
    // EEXIST: another process was faster. ENOENT: the folder was moved. In both cases what stands
    // there now counts.
    if (*created != 0 && *created != EEXIST && *created != ENOENT)
        return cannot_link(*folder, *created);
    return read_claim(*folder);
}

Result<> try_writing(const std::string& path) {
    const auto folder = open_folder(path);
    if (!folder) return folder.error();
    const auto first = write_temporary(*folder, "");
    if (!first) return first.error();
    // Some file systems (and some containers) do not support hard links.
    const std::string second = *first + "-link";
    const int code = add_name(*folder, *first, second);
    for (const std::string& name : {*first, second})
        ::unlinkat(folder->file.get(), name.c_str(), 0);
    if (code == 0) return {};
    return cannot_link(*folder, code);
}

std::optional<EntryNumber> entry_number(const std::string& name) {
    EntryNumber number = kNoEntry;
    const std::size_t dash = name.find('-') + 1;
    std::from_chars(name.data() + dash, name.data() + name.size(), number.value);
    return number > kNoEntry && name == entry_name(number) ? std::optional(number) : std::nullopt;
}

bool is_ledger_file(const std::string& name) {
    return name == kClaimFile || name == kAllocationFile || name.starts_with(kTemporary) ||
           entry_number(name).has_value() || is_secret_file(name);
}

void remove_temporaries(const std::string& folder) {
    std::error_code error;
    for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
         file.increment(error))
        if (file->path().filename().string().starts_with(kTemporary)) {
            std::error_code ignored;  // another process may have removed it
            const auto written = file->last_write_time(ignored);
            if (std::filesystem::file_time_type::clock::now() - written > kAbandoned)
                std::filesystem::remove(file->path(), ignored);
        }
}

// Names of folders of other commands end in their digest, which is not known here.
std::vector<std::string> folders_beside(const std::string& folder) {
    const auto parent = std::filesystem::path(folder).parent_path();
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator one(parent.empty() ? "." : parent, error), end;
         !error && one != end; one.increment(error)) {
        const std::string name = one->path().filename().string();
        if (name.starts_with(std::filesystem::path(folder).filename().string() + "-"))
            found.push_back((parent / name).string());
    }
    return found;
}

Result<std::optional<std::string>> move_aside(const std::string& folder, const char* why,
                                              std::uint64_t mark) {
    const std::string aside = folder + "-" + why + "-" + hexadecimal(mark);
    if (::rename(folder.c_str(), aside.c_str()) == 0) return aside;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) return std::nullopt;
    return cannot_use(folder, errno);
}

}  // namespace ddprun::rendezvous
