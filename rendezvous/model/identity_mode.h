// Whether the agent link asks for a proof of identity (--identity). Pure.
#pragma once

#include <optional>
#include <string_view>

namespace ddprun::rendezvous {

enum class IdentityMode {
    automatic,  // ask for a proof if a secret is available; else only warn
    require,    // run no job without a proof
    none,       // ask for no proof, and follow a leader that asks for none
};

// Reads "auto", "require" or "none". Any other text: no value.
inline std::optional<IdentityMode> read_identity_mode(std::string_view text) {
    if (text == "auto") return IdentityMode::automatic;
    if (text == "require") return IdentityMode::require;
    if (text == "none") return IdentityMode::none;
    return std::nullopt;
}

}  // namespace ddprun::rendezvous
