// The one place that repeats write() until all bytes are written: it may take only a part of them,
// and a signal may interrupt it.
//
// Sockets that never block, and writes that may be lost, are not its business. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace ddprun {

// Between the writes; each may be left out.
struct BetweenWrites {
    // There is no room, in what does not block. False: give up, with EAGAIN.
    std::function<bool()> wait_for_room = {};
    std::function<void()> has_written = {};
};

// Both return 0 or errno.
int write_all(int file, std::string_view bytes, const BetweenWrites& between = {});
// At a place of the file.
int write_all_at(int file, std::string_view bytes, std::int64_t at);

inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ddprun
