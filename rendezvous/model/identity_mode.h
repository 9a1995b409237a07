// Whether the agent link asks for a proof of identity (--identity). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace ddprun::rendezvous {

enum class IdentityMode {
    automatic,  // where a secret can be had; else a warning
    require,    // rather no job than none
    none,       // ask for no proof, and follow who asks for none
};

// "auto", "require", "none"; anything else: nothing.
inline std::optional<IdentityMode> read_identity_mode(std::string_view text) {
    if (text == "auto") return IdentityMode::automatic;
    if (text == "require") return IdentityMode::require;
    if (text == "none") return IdentityMode::none;
    return std::nullopt;
}

}  // namespace ddprun::rendezvous
