// Reads and rewrites the file `allocation` (ledger_allocation.h).
#include "rendezvous/ledger/ledger_allocation.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t kLine = 11;

// Ten digits and the end of the line, whatever the number is.
std::string restart_text(int restart) {
    char text[16];
    std::snprintf(text, sizeof text, "%010d\n", restart);
    return text;
}

// -1: no number.
int number_in(std::string_view line) {
    int restart = -1;
    const char* last = line.data() + line.size() - 1;
    const auto [end, error] = std::from_chars(line.data(), last, restart);
    return error == std::errc() && end == last && *last == '\n' ? restart : -1;
}

}  // namespace

Result<> make_allocation_file(const OpenFolder& folder) {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    const File file(::openat(folder.file.get(), kAllocationFile, flags, 0600));
    if (file.get() < 0) return cannot_use(folder.path, errno);
    return {};
}

Result<> record_allocation(const OpenFolder& folder, int restart) {
    const auto newest = newest_allocation(folder);
    // A text that cannot be read is one that was cut; it is written anew.
    if (newest && *newest >= restart) return {};
    return write_into(folder, kAllocationFile, restart_text(restart),
                      static_cast<std::int64_t>(kLine) * restart);
}

Result<int> newest_allocation(const OpenFolder& folder) {
    const auto text = read_file(folder, kAllocationFile);
    if (!text && text.error().code() == ErrorCode::not_found) return -1;
    if (!text) return text.error();
    int newest = -1, cut = -1;
    for (std::size_t at = 0; at < text->size(); at += kLine) {
        const std::string_view line = std::string_view(*text).substr(at, kLine);
        // A place whose allocation has not begun.
        if (line.find_first_not_of('\0') == std::string_view::npos) continue;
        const int restart = number_in(line);
        newest = std::max(newest, restart);
        if (restart < 0) cut = static_cast<int>(at / kLine);
    }
    // The one that wrote it may have begun or not. A newer one has begun for certain.
    if (newest <= cut && cut >= 0)
        return Error(ErrorCode::malformed, "ledger file " + folder.path + "/" + kAllocationFile +
                                               " has a line that is no number");
    return newest;
}

}  // namespace ddprun::rendezvous
