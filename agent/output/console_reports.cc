// The sentences about a console.
#include "agent/output/console_reports.h"

#include <cstring>
#include <utility>

namespace ddprun::agent {
namespace {

std::string in_words(std::size_t bytes) {
    return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB"
                            : std::to_string(bytes) + " bytes";
}

}  // namespace

std::optional<Error> ConsoleReports::broken(int error, bool for_good) {
    if (std::exchange(said_broken_, true)) return std::nullopt;
    return Error(for_good ? ErrorCode::closed : ErrorCode::unavailable,
                 "cannot write to " + name_ + ": " + std::strerror(error) +
                     (for_good ? "; output to it is discarded from now on"
                               : "; output that does not fit is discarded"));
}

std::optional<Error> ConsoleReports::slow() {
    if (std::exchange(said_slow_, true)) return std::nullopt;
    return Error(
        ErrorCode::timed_out,
        name_ + " is too slow: " + in_words(limit_) + " are waiting; " +
            (overflow_ == Overflow::drop ? "the oldest lines are dropped until it catches up"
                                         : "workers that print wait until it catches up"));
}

std::optional<Error> ConsoleReports::dropped() {
    const std::size_t lines = std::exchange(dropped_, 0);
    if (lines == 0) return std::nullopt;
    return Error(ErrorCode::timed_out,
                 std::to_string(lines) + (lines == 1 ? " line" : " lines") + " for " + name_ +
                     " dropped (the oldest), because it was too slow (--console-overflow=drop)");
}

}  // namespace ddprun::agent
