// The system calls behind a ledger folder: reading, and writing so that a file is whole or absent.
#include "rendezvous/ledger/ledger_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "base/hexadecimal.h"
#include "base/system/random_bytes.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger/ledger_owner.h"
#include "rendezvous/ledger_format/ledger_json.h"

namespace ddprun::rendezvous {
namespace {

// A file above this size is no ledger entry. It is not read into memory.
constexpr std::size_t kMaxEntrySize = std::size_t{64} << 20;
constexpr std::chrono::minutes kAbandoned{10};  // no write takes this long
constexpr const char* kTemporary = ".writing-";
constexpr const char* kClaim = "ledger.json";

// A descriptor that closes itself; close() also reports the error.
class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const { return descriptor_; }
    // Checked, because a network file system may report "disk full" only at close().
    bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

  private:
    int descriptor_;
};

std::string entry_name(EntryNumber number) {
    char name[32];
    std::snprintf(name, sizeof name, "entry-%06lld.json", static_cast<long long>(number.value));
    return name;
}

Error folder_error(const std::string& folder, const char* advice, int code) {
    // ENOENT means that another process has just moved the folder or removed a temporary file.
    return Error(code == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                 "ledger folder " + folder + ": " + std::strerror(code) + advice);
}

Error cannot_use(const std::string& folder, int code) {
    return folder_error(folder, "; choose another with --ledger=directory:PATH", code);
}

// An open folder. Files are opened relative to it, so all of them lie in this very folder, even if
// it is moved and another job's folder takes its name.
struct OpenFolder {
    std::string path;  // where it was when it was opened; for sentences
    File file;
};

Result<OpenFolder> open_folder(const std::string& path) {
    // O_PATH: the descriptor is only a base for openat(), so no permission to read is needed.
    File file(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (file.get() < 0) return cannot_use(path, errno);
    if (auto ours = check_owner(file.get(), file.get(), "ledger folder " + path); !ours)
        return ours.error();
    return OpenFolder{path, std::move(file)};
}

Result<std::string> read_file(const OpenFolder& folder, const std::string& name) {
    const std::string path = folder.path + "/" + name;
    // O_NOFOLLOW: a link could lead to any file of ours.
    const File file(::openat(folder.file.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    // errno is read before anything else can change it.
    const auto failed = [&path] {
        const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable;
        return Error(code, "ledger entry " + path + ": " + std::strerror(errno));
    };
    if (file.get() < 0) return failed();
    if (auto ours = check_owner(folder.file.get(), file.get(), "ledger entry " + path); !ours)
        return ours.error();
    std::string text;
    char piece[16384];
    while (text.size() < kMaxEntrySize) {
        const ssize_t size = ::read(file.get(), piece, sizeof piece);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return failed();
        if (size == 0) return text;
        text.append(piece, static_cast<std::size_t>(size));
    }
    return Error(ErrorCode::malformed, "ledger entry " + path + ": larger than 64 MiB");
}

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
    const auto text = read_file(folder, kClaim);
    if (!text) return text.error();
    auto claim = claim_from_json(*text);
    if (!claim)
        return Error(claim.error().code(),
                     "ledger file " + folder.path + "/" + kClaim + " " + claim.error().sentence());
    return claim;
}

// Opens the folder if it contains this mark, else not_found.
Result<OpenFolder> open_folder(const std::string& path, std::uint64_t mark) {
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

bool write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t size = ::write(descriptor, text.data() + done, text.size() - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return false;
        done += static_cast<std::size_t>(size);
    }
    return true;
}

// Writes the text to a new temporary file and flushes it to the disk. On an error no file is left.
Result<std::string> write_temporary(const OpenFolder& folder, const std::string& text) {
    std::random_device random;
    const std::string name = kTemporary + std::to_string(::getpid()) + "-" +
                             std::to_string(random()) + std::to_string(random());
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    File file(::openat(folder.file.get(), name.c_str(), flags, 0600));
    if (file.get() < 0) return cannot_use(folder.path, errno);
    // fsync() before the link: otherwise a crash could leave a final name with an empty file.
    if (write_all(file.get(), text) && ::fsync(file.get()) == 0 && file.close()) return name;
    const int code = errno;
    ::unlinkat(folder.file.get(), name.c_str(), 0);
    return cannot_use(folder.path, code);
}

// Gives the file a second name. Returns 0 or the errno. link() is atomic also on NFS, and never
// replaces a file.
int add_name(const OpenFolder& folder, const std::string& name, const std::string& second) {
    const int at = folder.file.get();
    return ::linkat(at, name.c_str(), at, second.c_str(), 0) == 0 ? 0 : errno;
}

// Flushes the folder, so that the new name survives a crash. The entry stands already; if a file
// system cannot flush folders, an error here would help nobody.
void flush_folder(const OpenFolder& folder) {
    const File file(::openat(folder.file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.get() >= 0 && ::fsync(file.get()) != 0) return;
}

LedgerCreated failed(LedgerEntry entry, std::string sentence) {
    return {LedgerCreated::Outcome::failed, std::move(entry), std::move(sentence)};
}

// Creates a file with this text under its final name. Returns 0 or the errno; EEXIST means that
// another text stands there.
Result<int> create_file(const OpenFolder& folder, const std::string& name,
                        const std::string& text) {
    const auto temporary = write_temporary(folder, text);
    if (!temporary) return temporary.error();
    const int code = add_name(folder, *temporary, name);
    ::unlinkat(folder.file.get(), temporary->c_str(), 0);
    if (code == 0) flush_folder(folder);
    return code;
}

Error cannot_link(const OpenFolder& folder, int code) {
    return folder_error(folder.path,
                        " (making a hard link); choose another with --ledger=directory:PATH", code);
}

}  // namespace

FolderEntries read_entries(const std::string& path, std::uint64_t mark, EntryNumber from) {
    FolderEntries entries;
    const auto folder = open_folder(path, mark);
    if (!folder) {
        entries.fault = folder.error();
        return entries;
    }
    for (EntryNumber number{std::max<std::int64_t>(from.value, 0)};; ++number.value) {
        auto entry = read_entry(*folder, number);
        if (!entry && entry.error().code() != ErrorCode::not_found) entries.fault = entry.error();
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
    const auto folder = open_folder(path, mark);
    if (!folder) return failed(entry, folder.error().sentence());
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
    return created(entry, std::move(*stands));
}

Result<LedgerClaim> claim_folder(const std::string& path, const std::string& digest) {
    const auto folder = open_folder(path);
    if (!folder) return folder.error();
    if (auto claim = read_claim(*folder); claim || claim.error().code() != ErrorCode::not_found)
        return claim;
    const auto created = create_file(*folder, kClaim, to_json(LedgerClaim{digest, random_mark()}));
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
