#include "agent/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "agent/error_account.h"
#include "agent/small_file.h"
#include "agent/unique_fd.h"
#include "proto/boot_clock.h"

namespace ddprun::agent {
namespace {

std::string size_text(off_t bytes) {
    return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

ErrorFile read_error_file(const std::string& path) {
    ErrorFile found;
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT) return found;
    const auto problem = [&](const std::string& what) {
        found.problem = "error file " + path + " " + what;
        return found;
    };
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0)
        return problem(std::string("cannot be read: ") + std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return problem("is no file");
    found.there = true;
    if (static_cast<std::size_t>(info.st_size) > kLargestErrorFile)
        return problem("has " + size_text(info.st_size) + "; more than " +
                       size_text(kLargestErrorFile) + " are not read");
    const auto account = read_error_account(read_bounded(file.get(), kLargestErrorFile));
    if (!account) return problem(account.error().sentence());
    found.error = *account;
    const Duration written =
        std::chrono::seconds{info.st_mtim.tv_sec} + std::chrono::nanoseconds{info.st_mtim.tv_nsec};
    found.written = boot_now() - (day_now() - written);
    return found;
}

ErrorFileReader::ErrorFileReader(boost::asio::io_context& loop, rendezvous::FileThread& files,
                                 Duration patience)
    : loop_(loop), files_(files), patience_(patience) {}

void ErrorFileReader::read(const std::string& path, const Done& done) {
    const auto impatience = std::make_shared<boost::asio::steady_timer>(loop_, patience_);
    const auto told = std::make_shared<bool>(false);
    const auto tell = [impatience, told, done](const ErrorFile& found) {
        if (std::exchange(*told, true)) return;
        impatience->cancel();
        done(found);
    };
    impatience->async_wait([tell, path](const boost::system::error_code& error) {
        ErrorFile unread;
        unread.problem = "error file " + path + " cannot be read: its file system does not answer";
        if (!error) tell(unread);
    });
    const auto found = std::make_shared<ErrorFile>();
    files_.post([found, path] { *found = read_error_file(path); }, [tell, found] { tell(*found); });
}

}  // namespace ddprun::agent
