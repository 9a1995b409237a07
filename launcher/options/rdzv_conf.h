// --rdzv-conf=KEY=VALUE,…: torchrun's keys for its rendezvous, as far as they mean something here.
//
// Keys of torchrun without a meaning here are checked all the same (a value that torchrun would
// refuse is refused) and warned of; a key that torchrun does not know either it takes in silence,
// and we name the one that was probably meant. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::launcher {

struct RdzvConf {
    std::optional<std::chrono::milliseconds> join_timeout, last_call, lease;
    // The static rendezvous' patience, where join_timeout is not given; torchrun's others ignore
    // it.
    std::optional<std::chrono::milliseconds> static_timeout;
    std::optional<bool> is_host;
    std::vector<std::string> warnings;  // a sentence for each key without effect
    bool operator==(const RdzvConf&) const = default;
};

// Possible errors: usage, naming key and value.
Result<RdzvConf> read_rdzv_conf(std::string_view text);

}  // namespace ddprun::launcher
