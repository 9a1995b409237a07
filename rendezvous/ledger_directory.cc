#include "rendezvous/ledger_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "rendezvous/ledger_json.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t kMaxEntrySize = std::size_t{64} << 20;
constexpr const char* kTemporary = ".writing-";

// A file descriptor that is closed by whoever lets go of it.
class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const { return descriptor_; }
    // Network file systems say "disk full" only here.
    bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

  private:
    int descriptor_;
};

std::string entry_path(const std::string& folder, EntryNumber number) {
    char name[32];
    std::snprintf(name, sizeof name, "/entry-%06lld.json", static_cast<long long>(number.value));
    return folder + name;
}

Error folder_error(const std::string& folder, const char* advice, int code) {
    return Error(ErrorCode::unavailable,
                 "ledger folder " + folder + ": " + std::strerror(code) + advice);
}

Error cannot_use(const std::string& folder, int code) {
    return folder_error(folder, "; choose another with --ledger=directory:PATH", code);
}

// ---- reading

Result<std::string> read_file(const std::string& path) {
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto failed = [&path] {
        const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable;
        return Error(code, "ledger entry " + path + ": " + std::strerror(errno));
    };
    if (file.get() < 0) return failed();
    std::string text;
    char piece[16384];
    while (text.size() < kMaxEntrySize) {
        const ssize_t size = ::read(file.get(), piece, sizeof piece);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return failed();
        if (size == 0) return text;
        text.append(piece, static_cast<std::size_t>(size));
    }
    return Error(ErrorCode::malformed, "ledger entry " + path + ": above 64 MiB");
}

Result<LedgerEntry> read_entry(const std::string& folder, EntryNumber number) {
    const std::string path = entry_path(folder, number);
    const auto text = read_file(path);
    if (!text) return text.error();
    auto entry = from_json(*text);
    if (!entry)
        return Error(entry.error().code(), "ledger entry " + path + " " + entry.error().sentence());
    if (entry->number != number)
        return Error(ErrorCode::malformed, "ledger entry " + path + " has the number " +
                                               std::to_string(entry->number.value));
    return entry;
}

Result<std::vector<LedgerEntry>> read_entries(const std::string& folder, EntryNumber from) {
    std::vector<LedgerEntry> entries;
    for (EntryNumber number{std::max<std::int64_t>(from.value, 0)};; ++number.value) {
        auto entry = read_entry(folder, number);
        if (!entry && entry.error().code() == ErrorCode::not_found) return entries;
        if (!entry) return entry.error();
        entries.push_back(std::move(*entry));
    }
}

// ---- writing

bool write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t size = ::write(descriptor, text.data() + done, text.size() - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return false;
        done += static_cast<std::size_t>(size);
    }
    return true;
}

// The whole text under a name of its own, on the disk; or an error and no file.
Result<std::string> write_temporary(const std::string& folder, const std::string& text) {
    std::random_device random;
    const std::string path = folder + "/" + kTemporary + std::to_string(::getpid()) + "-" +
                             std::to_string(random()) + std::to_string(random());
    File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.get() < 0) return cannot_use(folder, errno);
    if (write_all(file.get(), text) && ::fsync(file.get()) == 0 && file.close()) return path;
    const int code = errno;
    ::unlink(path.c_str());
    return cannot_use(folder, code);
}

// Makes the new name last. The entry stands already: a file system that cannot do this is not
// mended by failing here.
void flush_folder(const std::string& folder) {
    const File file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.get() >= 0 && ::fsync(file.get()) != 0) return;
}

LedgerCreated failed(LedgerEntry entry, std::string sentence) {
    return {LedgerCreated::Outcome::failed, std::move(entry), std::move(sentence)};
}

LedgerCreated create_entry(const std::string& folder, const LedgerEntry& entry) {
    const auto temporary = write_temporary(folder, to_json(entry));
    if (!temporary) return failed(entry, temporary.error().sentence());
    const bool linked = ::link(temporary->c_str(), entry_path(folder, entry.number).c_str()) == 0;
    const int code = errno;
    ::unlink(temporary->c_str());
    if (linked) flush_folder(folder);
    // Whatever link() said, what stands there decides: a network file system may repeat a request
    // that was done, and then say "exists" of our own entry or "failed" of one that was written.
    auto stands = read_entry(folder, entry.number);
    if (!stands) {
        const bool blame_link = !linked && stands.error().code() == ErrorCode::not_found;
        return failed(entry, blame_link
                                 ? folder_error(folder, " (making a hard link)", code).sentence()
                                 : stands.error().sentence());
    }
    const bool ours = stands->random == entry.random && stands->leader == entry.leader;
    return {
        ours ? LedgerCreated::Outcome::won : LedgerCreated::Outcome::lost, std::move(*stands), {}};
}

// ---- opening

// Temporaries of writers that died. One of a writer that lives loses only a try, which it repeats.
void remove_temporaries(const std::string& folder) {
    std::error_code error;
    for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
         file.increment(error))
        if (file->path().filename().string().starts_with(kTemporary)) {
            std::error_code ignored;  // somebody else has removed it
            std::filesystem::remove(file->path(), ignored);
        }
}

Result<> make_folder(const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return cannot_use(folder, error.value());
    return {};
}

// That a file can be written and linked here, tried before anyone relies on it.
Result<> try_writing(const std::string& folder) {
    const auto first = write_temporary(folder, "");
    if (!first) return first.error();
    const std::string second = *first + "-link";
    const bool linked = ::link(first->c_str(), second.c_str()) == 0;
    const int code = errno;
    ::unlink(first->c_str());
    ::unlink(second.c_str());
    if (linked) return {};
    return folder_error(folder,
                        " (making a hard link); choose another with --ledger=directory:PATH", code);
}

Result<std::string> move_aside(const std::string& folder, const char* why) {
    for (int number = 1;; ++number) {
        const std::string aside = folder + why + std::to_string(number);
        struct stat status;
        if (::lstat(aside.c_str(), &status) == 0) continue;
        if (::rename(folder.c_str(), aside.c_str()) == 0) return aside;
        if (errno != ENOTEMPTY && errno != EEXIST) return cannot_use(folder, errno);
    }
}

struct Opened {
    Result<> result;
    std::vector<Note> notes;
};

Opened set_aside(const std::string& folder, const char* why, const std::string& reason) {
    const auto aside = move_aside(folder, why);
    if (!aside) return {aside.error(), {}};
    const Note note{Note::Level::info, "ledger folder " + folder + " " + reason +
                                           "; it now lies at " + *aside + ", and a new one begins"};
    return {make_folder(folder), {note}};
}

Opened open_folder(const std::string& folder, const std::string& command_digest) {
    if (const auto made = make_folder(folder); !made) return {made.error(), {}};
    const auto entries = read_entries(folder, EntryNumber{0});
    if (!entries) return {entries.error(), {}};
    Opened opened{{}, {}};
    if (!entries->empty() && entries->back().kind == LedgerEntry::Kind::end)
        opened = set_aside(folder, "-finished-", "is that of a job that has ended");
    else if (!entries->empty() && entries->front().command_digest != command_digest)
        opened = set_aside(folder, "-other-", "is that of another command line");
    if (!opened.result) return opened;
    remove_temporaries(folder);
    opened.result = try_writing(folder);
    return opened;
}

// Work on the file thread whose result goes to the loop.
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
        files_, [path = path_, from] { return read_entries(path, from); },
        [alive = std::weak_ptr(alive_), done = std::move(done)](Entries& entries) {
            if (!alive.expired()) done(std::move(entries));
        });
}

void LedgerDirectory::create(LedgerEntry entry, CreateDone done) {
    ask<LedgerCreated>(
        files_, [path = path_, entry = std::move(entry)] { return create_entry(path, entry); },
        [alive = std::weak_ptr(alive_), done = std::move(done)](LedgerCreated& created) {
            if (!alive.expired()) done(std::move(created));
        });
}

void open_ledger_directory(std::string path, std::string command_digest, FileThread& files, Log log,
                           LedgerOpened opened) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    ask<Opened>(
        files, [path, digest = std::move(command_digest)] { return open_folder(path, digest); },
        [path, &files, log = std::move(log), done = std::move(opened)](Opened& result) {
            for (const Note& note : result.notes) log(note);
            if (result.result)
                done(std::unique_ptr<Ledger>(std::make_unique<LedgerDirectory>(path, files)));
            else
                done(result.result.error());
        });
}

}  // namespace ddprun::rendezvous
