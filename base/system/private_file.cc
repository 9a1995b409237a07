// Reads and creates files that hold a secret, with checks of owner and mode.
#include "base/system/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ddprun {
namespace {

// Closes the descriptor when it goes.
class File {
  public:
    explicit File(int number) : number_(number) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const { return number_; }

  private:
    int number_;
};

std::string octal(mode_t mode) {
    char text[8];
    std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
    return text;
}

// Looks at the open descriptor and not at the path: a path could be exchanged between the check and
// the read.
Result<> check(const std::string& path, int file, std::size_t most) {
    struct stat status {};
    if (::fstat(file, &status) != 0)
        return Error(ErrorCode::unavailable, path + ": " + ::strerror(errno));
    const auto refused = [&](const std::string& why) {
        return Error(ErrorCode::refused, path + " " + why);
    };
    if (!S_ISREG(status.st_mode)) return refused("is not a file");
    if (status.st_uid != ::geteuid())
        return refused("belongs to user " + std::to_string(status.st_uid) + ", not to us (user " +
                       std::to_string(::geteuid()) + ")");
    // As ssh does with keys: a secret that the group or others can read is not secret.
    if (status.st_mode & 077)
        return refused("can be read or changed by others (mode " + octal(status.st_mode) +
                       "); chmod 600 " + path);
    if (status.st_size > static_cast<off_t>(most))
        return refused("has " + std::to_string(status.st_size) + " bytes (limit " +
                       std::to_string(most) + ")");
    return {};
}

// The content is on disk and the file is closed before it gets its final name. So a crash leaves no
// empty file under that name, and on a network file system every node reads the whole content.
Result<> write_whole(const std::string& name, int number, std::string_view text) {
    std::string end = "\n";
    // writev() only reads from them.
    const iovec line[] = {{const_cast<char*>(text.data()), text.size()}, {end.data(), end.size()}};
    const bool written =
        ::writev(number, line, 2) == static_cast<ssize_t>(text.size() + end.size()) &&
        ::fsync(number) == 0;
    // close() must run in every case, so it comes first. On NFS it may report a write error.
    if ((::close(number) == 0) & written) return {};
    return Error(ErrorCode::unavailable, name + ": " + ::strerror(errno));
}

}  // namespace

Result<SecretText> read_private_file(const std::string& path, Links links, std::size_t most) {
    // O_NONBLOCK: the name may belong to a FIFO, and open() would wait for a writer. O_NOFOLLOW
    // makes open() of a symbolic link fail with ELOOP.
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::refuse ? O_NOFOLLOW : 0);
    const File file(::open(path.c_str(), flags));
    if (file.number() < 0)
        return Error(errno == ENOENT  ? ErrorCode::not_found
                     : errno == ELOOP ? ErrorCode::refused
                                      : ErrorCode::unavailable,
                     path + ": " + ::strerror(errno));
    if (const auto checked = check(path, file.number(), most); !checked) return checked.error();
    std::string bytes(most, '\0');
    const ssize_t size = ::read(file.number(), bytes.data(), bytes.size());
    if (size < 0) return Error(ErrorCode::unavailable, path + ": " + ::strerror(errno));
    std::string_view text(bytes.data(), static_cast<std::size_t>(size));
    while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
    SecretText secret(text);
    ::explicit_bzero(bytes.data(), bytes.size());
    return secret;
}

Result<> create_private_file(const std::string& path, std::string_view text) {
    std::string name = path + ".XXXXXX";
    // mkostemp() creates the file with mode 0600.
    const int number = ::mkostemp(name.data(), O_CLOEXEC);
    if (number < 0) return Error(ErrorCode::unavailable, name + ": " + ::strerror(errno));
    const auto written = write_whole(name, number, text);
    // link() fails when the name exists, while rename() would replace another node's secret. The
    // first writer wins, and the file appears with its whole content.
    const int failed = written && ::link(name.c_str(), path.c_str()) != 0 ? errno : 0;
    ::unlink(name.c_str());
    if (!written || failed == 0) return written;
    return Error(failed == EEXIST ? ErrorCode::exists : ErrorCode::unavailable,
                 path + ": " + ::strerror(failed));
}

}  // namespace ddprun
