#include "trainer/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace ddprun::trainer {
namespace {

Error system_error(const std::string& what, const std::string& path, int number) {
    return Error(number == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                 what + " " + path + ": " + std::strerror(number));
}

class Descriptor {
  public:
    Descriptor(const std::string& path, int flags)
        : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
    ~Descriptor() { (void)close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return fd_; }

    // Network file systems report a failed write as late as here. Returns 0 or errno.
    int close() {
        if (fd_ < 0) return 0;
        const int result = ::close(fd_) ? errno : 0;
        fd_ = -1;
        return result;
    }

  private:
    int fd_;
};

// Returns 0 or errno.
int write_all(int fd, std::span<const std::byte> bytes) {
    constexpr std::size_t kMost = std::size_t{1} << 26;
    while (!bytes.empty()) {
        const ssize_t done = ::write(fd, bytes.data(), std::min(bytes.size(), kMost));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return 0;
}

// A full disk shows here, before a byte is written. File systems without the call are no reason to
// stop.
int reserve(int fd, std::size_t bytes) {
    if (bytes == 0) return 0;
    const int result = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    return result == ENOSPC || result == EDQUOT || result == EFBIG ? result : 0;
}

int fill(Descriptor& file, const std::vector<std::span<const std::byte>>& pieces) {
    std::size_t total = 0;
    for (auto piece : pieces) total += piece.size();
    if (int problem = reserve(file.get(), total)) return problem;
    for (auto piece : pieces) {
        if (int problem = write_all(file.get(), piece)) return problem;
    }
    if (::fsync(file.get())) return errno;
    return file.close();
}

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

Result<void> write_durably(const std::string& path,
                           const std::vector<std::span<const std::byte>>& pieces) {
    const std::string temporary = path + ".tmp";
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) return system_error("cannot make", temporary, errno);
    int problem = fill(file, pieces);
    if (!problem && ::rename(temporary.c_str(), path.c_str())) problem = errno;
    if (problem) {
        ::unlink(temporary.c_str());
        return system_error("cannot write", path, problem);
    }
    return sync_folder(folder_of(path));
}

Result<void> write_durably(const std::string& path, const std::string& text) {
    return write_durably(path, std::vector{std::as_bytes(std::span(text))});
}

Result<std::vector<std::byte>> read_bytes(const std::string& path) {
    Descriptor file(path, O_RDONLY);
    if (file.get() < 0) return system_error("cannot open", path, errno);
    struct stat info {};
    if (::fstat(file.get(), &info)) return system_error("cannot read", path, errno);
    if (!S_ISREG(info.st_mode)) return system_error("cannot read", path, EINVAL);
    std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
    std::size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error("cannot read", path, errno);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
}

Result<void> sync_folder(const std::string& folder) {
    Descriptor file(folder, O_RDONLY | O_DIRECTORY);
    if (file.get() < 0) return system_error("cannot open", folder, errno);
    // Some network file systems cannot sync a folder and say EINVAL; they write names through.
    if (::fsync(file.get()) && errno != EINVAL) return system_error("cannot sync", folder, errno);
    return {};
}

Result<void> make_folder(const std::string& folder) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem) return system_error("cannot make the folder", folder, problem.value());
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
