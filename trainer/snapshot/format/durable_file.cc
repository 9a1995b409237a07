// Writes, reads and lists files with system calls, and handles what file systems do differently.
#include "trainer/snapshot/format/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/hexadecimal.h"
#include "base/system/random_bytes.h"
#include "base/system/start_thread.h"
#include "base/system/write_all.h"

namespace ddprun::trainer {
namespace {

// The errnos for which a caller has an answer; all others mean that the file system does not work.
ErrorCode code_of(int number) {
    if (number == ENOENT) return ErrorCode::not_found;
    return number == EEXIST ? ErrorCode::exists : ErrorCode::unavailable;
}

Error system_error(const std::string& what, const std::string& path, int number) {
    return Error(code_of(number), what + " " + path + ": " + std::strerror(number));
}

// A file descriptor that closes itself, unless close() was called to see the result.
class Descriptor {
  public:
    Descriptor(const std::string& path, int flags)
        : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
    ~Descriptor() { (void)close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return fd_; }

    // Returns 0 or errno. A network file system may report a failed write only here.
    int close() {
        if (fd_ < 0) return 0;
        const int result = ::close(fd_) ? errno : 0;
        fd_ = -1;
        return result;
    }

  private:
    int fd_;
};

// Reserves the space, so that a full disk is noticed before a byte is written. A file system that
// cannot reserve is no reason to stop. Returns 0 or errno.
int reserve(int fd, std::size_t bytes) {
    if (bytes == 0) return 0;
    const int result = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    return result == ENOSPC || result == EDQUOT || result == EFBIG ? result : 0;
}

// Writes and syncs a file through the page cache. Returns 0 or errno.
int fill(Descriptor& file, const std::vector<std::span<const std::byte>>& pieces) {
    std::size_t total = 0;
    for (auto piece : pieces) total += piece.size();
    if (int problem = reserve(file.get(), total)) return problem;
    for (auto piece : pieces) {
        if (int problem = write_all(file.get(), as_text(piece))) return problem;
    }
    if (::fsync(file.get())) return errno;
    return file.close();
}

// Bytes of one direct write, and the size from which two threads write.
constexpr std::size_t kBlock = std::size_t{8} << 20;
constexpr std::size_t kLarge = std::size_t{128} << 20;

// Calls part(first, end) for both halves of `bytes`, on two threads if there is enough to do. The
// cut is at a multiple of kBlock, because direct writing needs whole pages. Returns 0 or the first
// errno.
template <class Part>
int in_halves(std::size_t bytes, Part&& part) {
    if (bytes < kLarge) return part(std::size_t{0}, bytes);
    const std::size_t middle = bytes / 2 / kBlock * kBlock;
    int second = 0;
    auto other = start_thread("writing a snapshot", [&] { second = part(middle, bytes); });
    const int first = part(std::size_t{0}, middle);
    if (other)
        other->join();
    else
        second = part(middle, bytes);
    return first ? first : second;
}

// Writes whole pages at their places, as O_DIRECT requires. The last page reaches beyond the
// content; the buffer has memory for it. Returns 0 or errno.
int write_pages(int fd, const PageBuffer& buffer, std::size_t first, std::size_t end) {
    const char* const bytes = reinterpret_cast<const char*>(buffer.bytes().data());
    for (std::size_t at = first; at < end; at += kBlock) {
        const std::string_view block(bytes + at, std::min(kBlock, end - at));
        if (int problem = write_all_at(fd, block, static_cast<std::int64_t>(at))) return problem;
    }
    return 0;
}

// Writes and syncs a file with O_DIRECT. Returns 0 or errno.
int fill_direct(Descriptor& file, const PageBuffer& buffer) {
    const std::size_t bytes = buffer.bytes().size();
    const std::size_t whole =
        (bytes + PageBuffer::kPage - 1) / PageBuffer::kPage * PageBuffer::kPage;
    if (int problem = reserve(file.get(), bytes)) return problem;
    auto half = [&](std::size_t first, std::size_t end) {
        return write_pages(file.get(), buffer, first, end);
    };
    if (int problem = in_halves(whole, half)) return problem;
    // Cuts off what the last page has too much.
    if (::ftruncate(file.get(), static_cast<off_t>(bytes))) return errno;
    if (::fsync(file.get())) return errno;
    return file.close();
}

// The folder whose entry for `path` has to be synced.
std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

namespace {

// A name that no other writer uses, on whatever host. Two writers in one temporary file would mix
// their bytes, and one would rename a file that the other is still writing.
std::string temporary_of(const std::string& path) {
    return path + "." + hexadecimal(random_number(), 16) + ".tmp";
}

// Gives the temporary file its final name. rename() would replace an old file, link() does not.
// Returns 0 or errno.
int put_in_place(const std::string& temporary, const std::string& path, Old old) {
    if (old == Old::kept) {
        if (::link(temporary.c_str(), path.c_str()) == 0) return ::unlink(temporary.c_str()), 0;
        const int problem = errno;
        struct stat info {};
        // A network file system may send link() twice if the first answer is lost. The second one
        // then fails because of the first. The number of links shows that ours exists.
        if (problem == EEXIST && ::stat(temporary.c_str(), &info) == 0 && info.st_nlink == 2)
            return ::unlink(temporary.c_str()), 0;
        // These three mean that the file system has no hard links. Then rename() has to do.
        if (problem != EPERM && problem != EOPNOTSUPP && problem != ENOSYS) return problem;
    }
    return ::rename(temporary.c_str(), path.c_str()) ? errno : 0;
}

// The common sequence: create a temporary file, fill it, put it in place, sync the folder.
template <class Fill>
Result<void> make_durable(const std::string& path, int flags, Old old, Fill&& fill_file) {
    const std::string temporary = temporary_of(path);
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL | flags);
    if (file.get() < 0) {
        const int problem = errno;
        // Some file systems create the file and then refuse O_DIRECT. With EEXIST it is another
        // writer's file.
        if (problem != EEXIST) ::unlink(temporary.c_str());
        return system_error("cannot create", temporary, problem);
    }
    int problem = fill_file(file);
    if (!problem) problem = put_in_place(temporary, path, old);
    if (problem) {
        ::unlink(temporary.c_str());
        return system_error("cannot write", path, problem);
    }
    // A renamed file survives a crash only after its folder is synced too.
    return sync_folder(folder_of(path));
}

}  // namespace

Result<void> write_durably(const std::string& path,
                           const std::vector<std::span<const std::byte>>& pieces, Old old) {
    return make_durable(path, 0, old, [&](Descriptor& file) { return fill(file, pieces); });
}

// Some file systems refuse O_DIRECT at open(), others at write(). In both cases the errno is
// EINVAL, and the file is written again through the page cache.
Result<void> write_durably(const std::string& path, const PageBuffer& buffer, Old old) {
    bool refused = false;
    auto done = make_durable(path, O_DIRECT, old, [&](Descriptor& file) {
        const int problem = fill_direct(file, buffer);
        refused = problem == EINVAL;
        return problem;
    });
    const bool cannot_open = !done && done.error().sentence().ends_with(std::strerror(EINVAL));
    return refused || cannot_open ? write_durably(path, std::vector{buffer.bytes()}, old) : done;
}

Result<void> make_first(const std::string& path) {
    Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL);
    if (file.get() < 0) return system_error("cannot create", path, errno);
    if (const int problem = file.close()) return system_error("cannot create", path, problem);
    return {};
}

namespace {

// Not to wait: something else than a file may have the name, and a pipe would wait for its writer.
constexpr int kRead = O_RDONLY | O_NONBLOCK;

// The size of a plain file that was opened for reading; -1: the open has failed.
Result<std::uint64_t> size_of_open(int file, const std::string& path) {
    if (file < 0) return system_error("cannot open", path, errno);
    struct stat info {};
    if (::fstat(file, &info)) return system_error("cannot read", path, errno);
    if (!S_ISREG(info.st_mode))
        return Error(ErrorCode::unavailable, "cannot read " + path + ": it is " +
                                                 (S_ISDIR(info.st_mode) ? "a folder" : "no file"));
    return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

Result<std::uint64_t> size_of_file(const std::string& path) {
    return size_of_open(Descriptor(path, kRead).get(), path);
}

Result<ReadableFile> ReadableFile::open(const std::string& path) {
    UniqueFd file(::open(path.c_str(), kRead | O_CLOEXEC));
    auto bytes = size_of_open(file.get(), path);
    if (!bytes) return bytes.error();
    return ReadableFile(std::move(file), path, *bytes);
}

void ReadableFile::read_ahead() const {
    (void)::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_WILLNEED);
}

Result<void> ReadableFile::read(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
        const ssize_t got = ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error("cannot read", path_, errno);
        if (got == 0)
            return Error(ErrorCode::unavailable, "cannot read " + path_ + " beyond its byte " +
                                                     std::to_string(offset) +
                                                     ": it has become shorter");
        offset += static_cast<std::uint64_t>(got);
        to = to.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Result<PageBuffer> read_pages(const std::string& path) {
    const auto file = ReadableFile::open(path);
    if (!file) return file.error();
    file->read_ahead();
    PageBuffer pages;
    if (auto done = pages.reserve(static_cast<std::size_t>(file->bytes())); !done)
        return done.error();
    if (auto done = file->read(0, pages.bytes()); !done) return done.error();
    return pages;
}

Result<void> write_durably(const std::string& path, const std::string& text, Old old) {
    return write_durably(path, std::vector{std::as_bytes(std::span(text))}, old);
}

Result<std::string> read_text(const std::string& path) {
    Descriptor file(path, kRead);
    auto bytes = size_of_open(file.get(), path);
    if (!bytes) return bytes.error();
    if (*bytes > kMostText) return system_error("cannot read", path, EFBIG);
    std::string text(static_cast<std::size_t>(*bytes), '\0');
    std::size_t have = 0;
    // read() may return less than asked. 0 means that the file has become shorter meanwhile.
    while (have < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error("cannot read", path, errno);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
}

Result<void> sync_folder(const std::string& folder) {
    Descriptor file(folder, O_RDONLY | O_DIRECTORY);
    if (file.get() < 0) return system_error("cannot open", folder, errno);
    // Some network file systems cannot sync a folder and report EINVAL. They write names at once.
    if (::fsync(file.get()) && errno != EINVAL) return system_error("cannot sync", folder, errno);
    return {};
}

Result<void> make_folder(const std::string& folder) {
    if (folder.empty())
        return usage_error("the path of a folder is empty; name one, for example \"snapshots\"");
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) return system_error("cannot create the folder", folder, problem.value());
    return {};
}

Result<std::vector<std::string>> list_folder(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code problem;
    std::filesystem::directory_iterator it(folder, problem), end;
    for (; !problem && it != end; it.increment(problem))
        names.push_back(it->path().filename().string());
    if (problem) return system_error("cannot list", folder, problem.value());
    std::sort(names.begin(), names.end());
    return names;
}

Result<void> remove_file(const std::string& path) {
    if (::unlink(path.c_str()) && errno != ENOENT)
        return system_error("cannot remove", path, errno);
    return {};
}

}  // namespace ddprun::trainer
