// Reads --rdzv-conf=KEY=VALUE,…: torchrun's keys for its rendezvous, as far as they mean something
// here.
//
// Keys of torchrun that have no meaning here are still checked (what torchrun refuses, ddprun
// refuses) and cause a warning. torchrun silently accepts keys that it does not know; here a
// warning names the key that was probably meant. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace ddprun::launcher {

// The keys that were given and have an effect.
struct RdzvConf {
    std::optional<Duration> join_timeout, last_call, lease;
    // The key `timeout`, which only torchrun's static rendezvous uses. It counts where join_timeout
    // is missing.
    std::optional<Duration> static_timeout;
    std::optional<bool> is_host;
    std::vector<std::string> warnings;  // one sentence for each key without effect
    bool operator==(const RdzvConf&) const = default;
};

// Possible errors: usage, naming key and value.
Result<RdzvConf> read_rdzv_conf(std::string_view text);

}  // namespace ddprun::launcher
