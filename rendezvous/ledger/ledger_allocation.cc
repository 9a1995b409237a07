// Reads and rewrites the file `allocation` (ledger_allocation.h).
#include "rendezvous/ledger/ledger_allocation.h"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string>

namespace ddprun::rendezvous {
namespace {

// Ten digits and the end of the line, whatever the number is.
std::string to_text(int restart) {
    char text[16];
    std::snprintf(text, sizeof text, "%010d\n", restart);
    return text;
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
    return rewrite_file(folder, kAllocationFile, to_text(restart));
}

Result<int> newest_allocation(const OpenFolder& folder) {
    const auto text = read_file(folder, kAllocationFile);
    if (!text && text.error().code() == ErrorCode::not_found) return -1;
    if (!text) return text.error();
    if (text->empty()) return -1;
    int restart = -1;
    const char* last = text->data() + text->size() - 1;
    const auto [end, error] = std::from_chars(text->data(), last, restart);
    if (error != std::errc() || end != last || *last != '\n' || restart < 0)
        return Error(ErrorCode::malformed,
                     "ledger file " + folder.path + "/" + kAllocationFile + " is no number");
    return restart;
}

}  // namespace ddprun::rendezvous
