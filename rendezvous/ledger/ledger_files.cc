// The system calls behind the files of a ledger folder (ledger_files.h).
#include "rendezvous/ledger/ledger_files.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/system/random_bytes.h"
#include "base/system/write_all.h"
#include "rendezvous/ledger/ledger_owner.h"

namespace ddprun::rendezvous {
namespace {

// A file above this size is no ledger entry. It is not read into memory.
constexpr std::size_t kMaxEntrySize = std::size_t{64} << 20;

// Flushes the folder, so that the new name survives a crash. The entry stands already; if a file
// system cannot flush folders, an error here would help nobody.
void flush_folder(const OpenFolder& folder) {
    const File file(::openat(folder.file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.get() >= 0 && ::fsync(file.get()) != 0) return;
}

}  // namespace

Error folder_error(const std::string& folder, const char* advice, int code) {
    // ENOENT means that another process has just moved the folder or removed a temporary file.
    return Error(code == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                 "ledger folder " + folder + ": " + std::strerror(code) + advice);
}

Error cannot_use(const std::string& folder, int code) {
    return folder_error(folder, "; choose another with --ledger=directory:PATH", code);
}

Result<OpenFolder> open_folder(const std::string& path) {
    // O_PATH: the descriptor is only a base for openat(), so no permission to read is needed.
    constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int opened = ::open(path.c_str(), kFlags | O_NOFOLLOW);
    if (opened < 0 && errno == ENOTDIR) {
        if (auto ours = check_link(path); !ours) return ours.error();
        opened = ::open(path.c_str(), kFlags);
    }
    const int code = errno;
    File file(opened);
    if (file.get() < 0) return cannot_use(path, code);
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

Result<std::string> write_temporary(const OpenFolder& folder, const std::string& text) {
    const std::string name =
        kTemporary + std::to_string(::getpid()) + "-" + std::to_string(random_number());
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    File file(::openat(folder.file.get(), name.c_str(), flags, 0600));
    if (file.get() < 0) return cannot_use(folder.path, errno);
    // fsync() before the link: otherwise a crash could leave a final name with an empty file.
    int code = write_all(file.get(), text);
    if (code == 0 && (::fsync(file.get()) != 0 || !file.close())) code = errno;
    if (code == 0) return name;
    ::unlinkat(folder.file.get(), name.c_str(), 0);
    return cannot_use(folder.path, code);
}

int add_name(const OpenFolder& folder, const std::string& name, const std::string& second) {
    const int at = folder.file.get();
    return ::linkat(at, name.c_str(), at, second.c_str(), 0) == 0 ? 0 : errno;
}

Result<int> create_file(const OpenFolder& folder, const std::string& name,
                        const std::string& text) {
    const auto temporary = write_temporary(folder, text);
    if (!temporary) return temporary.error();
    const int code = add_name(folder, *temporary, name);
    ::unlinkat(folder.file.get(), temporary->c_str(), 0);
    if (code == 0) flush_folder(folder);
    return code;
}

Result<> write_into(const OpenFolder& folder, const std::string& name, const std::string& text,
                    std::int64_t at) {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    File file(::openat(folder.file.get(), name.c_str(), flags, 0600));
    if (file.get() < 0) return cannot_use(folder.path, errno);
    int code = write_all_at(file.get(), text, at);
    if (code == 0 && (::fsync(file.get()) != 0 || !file.close())) code = errno;
    if (code != 0) return cannot_use(folder.path, code);
    return {};
}

Result<std::vector<std::string>> list_files(const OpenFolder& folder) {
    File file(::openat(folder.file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.get() < 0) return cannot_use(folder.path, errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(file.get()), ::closedir);
    if (!list) return cannot_use(folder.path, errno);
    file.release();  // the list closes it
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* one = ::readdir(list.get())) names.emplace_back(one->d_name);
    if (errno != 0) return cannot_use(folder.path, errno);
    return names;
}

}  // namespace ddprun::rendezvous
