// Reads the progress pipe of a worker.
#include "agent/workers/progress_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/boot_clock.h"

namespace ddprun::agent {
namespace {

// Reads at the end of a worker: the largest pipe that an ordinary user can make, 1 MiB. A process
// that it left behind may still write.
constexpr int kReadsAtTheEnd = (1 << 20) / static_cast<int>(ProgressLines::kLongest);

// A number that a line does not tell stays as an earlier line told it.
ProgressReport newest_of(std::span<const ProgressReport> reports) {
    ProgressReport newest;
    for (const ProgressReport& report : reports) {
        if (report.step >= 0) newest.step = report.step;
        if (newest.first_step < 0) newest.first_step = report.step;
        if (report.snapshot >= 0) newest.snapshot = report.snapshot;
        if (report.snapshot_took > Duration{}) newest.snapshot_took = report.snapshot_took;
        if (!report.not_finite.empty()) newest.not_finite = report.not_finite;
    }
    return newest;
}

}  // namespace

UniqueFd ProgressPipe::open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    // Only our end: a program that writes progress must not see EAGAIN.
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipe_.assign(ends[0]);
    UniqueFd workers(ends[1]);
    await();
    return workers;
}

void ProgressPipe::finish() {
    finished_ = true;
    for (int reads = kReadsAtTheEnd; reads > 0 && read_once() > 0; --reads) {
    }
}

void ProgressPipe::await() {
    pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                         if (error || !alive.lock() || finished_) return;
                         turns_->spend([this, alive]() -> std::size_t {
                             return alive.lock() && !finished_ ? take_some() : 0;
                         });
                     });
}

// One read, and then waits for more. The pipe must be read on: if it filled up, the worker would
// stop in its write().
std::size_t ProgressPipe::take_some() {
    const std::ptrdiff_t got = read_once();
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return 0;
    const auto bytes = static_cast<std::size_t>(std::max<std::ptrdiff_t>(got, 0));
    // A read that does not fill the buffer has emptied the pipe.
    if (bytes == ProgressLines::kLongest)
        if (const auto flood = watch_.more(bytes, boot_now()); flood && on_flood_)
            on_flood_(*flood);
    await();
    return bytes;
}

// As read(2). Only the newest numbers count, and each report costs a step of the state machine.
std::ptrdiff_t ProgressPipe::read_once() {
    char bytes[ProgressLines::kLongest];
    const ssize_t got = ::read(pipe_.native_handle(), bytes, sizeof bytes);
    if (got <= 0) return got;
    auto reports = lines_.take(std::string_view(bytes, static_cast<std::size_t>(got)));
    // That is no progress.
    std::erase_if(reports, [this](const ProgressReport& report) {
        if (report.calls_at != 0) calls_at_ = report.calls_at, calls_of_ = report.calls_of;
        return report.calls_at != 0;
    });
    tell(reports);
    return got;
}

// All lines of one read are one report: their number is up to the worker. Only the first value that
// is not a number is a report of its own, so that it is told with its step, or without one where
// its line has none.
void ProgressPipe::tell(std::span<const ProgressReport> reports) {
    const auto odd = std::ranges::find_if(
        reports, [](const ProgressReport& report) { return !report.not_finite.empty(); });
    if (odd != reports.end() && !std::exchange(told_not_finite_, true)) {
        const auto at = static_cast<std::size_t>(odd - reports.begin());
        const std::size_t before = odd->step < 0 ? at : 0;
        if (before > 0) report(reports.first(before));
        report(reports.subspan(before, at + 1 - before));
        reports = reports.subspan(at + 1);
    }
    if (!reports.empty()) report(reports);
}

void ProgressPipe::report(std::span<const ProgressReport> reports) {
    for (const ProgressReport& one : reports) saving_.hear(one);
    ProgressReport newest = newest_of(reports);
    newest.saving = saving_.all();
    on_report_(newest);
}

}  // namespace ddprun::agent
