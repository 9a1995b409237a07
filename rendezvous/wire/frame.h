// The framing of the agent link. Each side first sends the eight bytes "DDPRUN\x01\n", then frames:
// a length of 4 bytes (big endian) and that many bytes. FrameReader takes bytes in any pieces and
// returns whole frames.
//
// Pure. A length is checked against the limit before a byte is kept for it. Memory grows only with
// what has arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::rendezvous {

// The first bytes of each side; 0x01 is the version.
inline constexpr std::string_view kPreface{"DDPRUN\x01\n", 8};
// The largest frames: to a rendezvous before the caller is admitted (Hello, Gone, Proof) and after,
// and to a node.
inline constexpr std::size_t kFirstFrameLimit = std::size_t{4} << 10;
inline constexpr std::size_t kNodeFrameLimit = std::size_t{4} << 20;
inline constexpr std::size_t kLeaderFrameLimit = std::size_t{16} << 20;

// The bytes of a frame: length, body, and its seal if there is one (identity.h). Above 4 GiB is a
// programmer's mistake.
std::string frame(std::string_view body, std::string_view seal = {});

class FrameReader {
  public:
    explicit FrameReader(std::size_t limit) : limit_(limit) {}

    void set_limit(std::size_t limit) { limit_ = limit; }
    void add(std::string_view bytes) { buffer_.append(bytes); }

    // Returns the next whole frame's body, or nothing if more bytes are needed. Possible errors:
    // malformed: not our protocol, or a frame above the limit; every later call then returns the
    // same error. A stranger is recognized at the first wrong byte.
    Result<std::optional<std::string>> next();

    // Whether a part of a frame or of the preface has come. The end of the stream would cut it off.
    bool in_the_middle() const { return buffer_.size() > taken_; }

  private:
    Result<> check_preface();
    std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }
    void take(std::size_t size);

    std::size_t limit_;
    std::string buffer_;
    std::size_t taken_ = 0;  // bytes of buffer_ that are used up
    bool preface_seen_ = false;
    std::optional<Error> broken_;
};

}  // namespace ddprun::rendezvous
