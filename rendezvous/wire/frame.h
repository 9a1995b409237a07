// The framing of the agent link: each side first sends the eight bytes "DDPRUN\x01\n", then frames
// of a 4-byte big-endian length and that many bytes. FrameReader takes what arrives in any pieces
// and gives whole frames.
//
// Pure. A length is checked against the limit before a byte is kept for it, and memory grows only
// with what has arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddprun::rendezvous {

inline constexpr std::string_view kPreface{"DDPRUN\x01\n", 8};
inline constexpr std::size_t kFirstFrameLimit = std::size_t{4}
                                                << 10;  // to a rendezvous: Hello, Gone, Proof
inline constexpr std::size_t kNodeFrameLimit = std::size_t{4}
                                               << 20;  // to a rendezvous, once admitted
inline constexpr std::size_t kLeaderFrameLimit = std::size_t{16} << 20;  // to a node

// Length, body, and its seal where there is one (identity.h). Above 4 GiB it is a programmer's
// mistake.
std::string frame(std::string_view body, std::string_view seal = {});

class FrameReader {
  public:
    explicit FrameReader(std::size_t limit) : limit_(limit) {}

    void set_limit(std::size_t limit) { limit_ = limit; }
    void add(std::string_view bytes) { buffer_.append(bytes); }

    // The next whole frame's body; nothing: more bytes are needed; Error(malformed): not our
    // protocol, or a frame above the limit, and from then on always. A stranger is known by its
    // first wrong byte.
    Result<std::optional<std::string>> next();

    // Whether a frame (or the preface) has come in part: the end of the stream now would cut it.
    bool in_the_middle() const { return buffer_.size() > taken_; }

  private:
    Result<> check_preface();
    std::string_view rest() const { return std::string_view(buffer_).substr(taken_); }
    void take(std::size_t size);

    std::size_t limit_;
    std::string buffer_;
    std::size_t taken_ = 0;  // bytes of buffer_ that are done with
    bool preface_seen_ = false;
    std::optional<Error> broken_;
};

}  // namespace ddprun::rendezvous
