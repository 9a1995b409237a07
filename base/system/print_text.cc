// Writes and flushes standard output (print_text.h).
#include "base/system/print_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/system/standard_streams.h"

namespace ddprun {

Result<> print_text(const std::string& text) {
    if (standard_output_was_closed())
        return Error(ErrorCode::unavailable,
                     "standard output is closed, so nobody gets the answer");
    // Any bytes, a null byte, too: it may be what a worker has printed.
    const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
    if (written == text.size() && std::fflush(stdout) == 0) return {};
    if (errno == EPIPE) return {};
    return Error(ErrorCode::unavailable, std::string("standard output: ") + std::strerror(errno));
}

}  // namespace ddprun
