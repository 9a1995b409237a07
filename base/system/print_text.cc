// Writes and flushes standard output (print_text.h).
#include "base/system/print_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ddprun {

Result<> print_text(const std::string& text) {
    if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return {};
    if (errno == EPIPE) return {};
    return Error(ErrorCode::unavailable, std::string("standard output: ") + std::strerror(errno));
}

}  // namespace ddprun
