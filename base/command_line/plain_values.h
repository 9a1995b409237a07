// Values that options of several programs have, and how each is read from its text. Pure.
//
// Every reader returns an error whose sentence lacks the option's name; the caller puts the name in
// front. Possible errors of all readers: usage.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace ddprun::launcher {

// An endpoint: host, host:port or [IPv6]:port. An empty host means localhost.
struct HostPort {
    std::string host;
    std::optional<int> port;
    bool operator==(const HostPort&) const = default;
};

// A whole number and nothing behind it: "4x" is none. One that does not fit is the greatest or
// least that does, so that the caller names its range.
std::optional<int> whole_number(std::string_view text);
std::string_view trimmed(std::string_view text);  // without blanks in front and behind
// A whole number from `least` to `most`.
Result<int> read_int(std::string_view text, int least, int most);
Result<HostPort> read_host_port(std::string_view text);
// Seconds, with or without a fraction: "10", "0.5".
Result<Duration> read_seconds(std::string_view text);

}  // namespace ddprun::launcher
