// Writes progress lines to a pipe without ever blocking.
#include "trainer/worker/progress.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>

#include "base/system/no_pipe_signal.h"

namespace ddprun::trainer {
Progress Progress::from_environment() {
    const char* text = std::getenv("DDPRUN_PROGRESS_FD");
    if (!text || !*text) return Progress(-1);
    char* end = nullptr;
    const long fd = std::strtol(text, &end, 10);
    // A process that the worker has started may have the variable and not the pipe. Then the number
    // is closed, or that of a file of its own.
    struct stat status {};
    const bool is_pipe = !*end && fd >= 0 && fd <= std::numeric_limits<int>::max() &&
                         fstat(static_cast<int>(fd), &status) == 0 && S_ISFIFO(status.st_mode);
    return Progress(is_pipe ? static_cast<int>(fd) : -1);
}

std::string Progress::line(std::int64_t step, std::int64_t snapshot, std::int64_t snapshot_ms,
                           std::int64_t saving_ms) {
    const std::string took = snapshot_ms < 0 ? "" : " snapshot_ms=" + std::to_string(snapshot_ms);
    const std::string all = saving_ms < 0 ? "" : " saving_ms=" + std::to_string(saving_ms);
    return "step=" + std::to_string(step) + " snapshot=" + std::to_string(snapshot) + took + all +
           "\n";
}

void Progress::report(std::int64_t step, std::int64_t snapshot, std::int64_t snapshot_ms,
                      std::int64_t saving_ms) {
    write_line(line(step, snapshot, snapshot_ms, saving_ms));
}

// The word "NAME=nan" is what ddprun looks for; it takes letters, digits and _./- in a name, and 64
// of them.
void Progress::report_not_finite(const std::string& parameter) {
    constexpr std::size_t kLongest = 50;
    std::string name = parameter.substr(0, kLongest);
    std::ranges::replace_if(
        name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
    write_line("gradient." + name + "=nan\n");
}

void Progress::tell_calls(std::uintptr_t address) {
    write_line("ddprun_calls=" + std::to_string(address) + " pid=" + std::to_string(getpid()) +
               "\n");
}

void Progress::write_line(const std::string& text) {
    if (fd_ < 0) return;
    // A full pipe means that the reader is slow. Progress lines are not worth waiting for.
    pollfd room{fd_, POLLOUT, 0};
    if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT)) return;
    NoPipeSignal guard;
    // The line is shorter than PIPE_BUF, so the pipe takes it whole or not at all.
    const ssize_t done = write(fd_, text.data(), text.size());
    // The reader is gone for good.
    if (done < 0 && (errno == EPIPE || errno == EBADF)) fd_ = -1;
}

}  // namespace ddprun::trainer
