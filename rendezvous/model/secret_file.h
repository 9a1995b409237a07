// The name of the file in a ledger's folder that has the job's secret (secret/secret.h). It stands
// here because those who write ledgers know it, too. Pure.
#pragma once

#include <string_view>

namespace ddprun::rendezvous {

// Followed by what the folder's name has behind PATH: "secret", "secret-DIGEST".
inline constexpr std::string_view kSecretFile = "secret";

}  // namespace ddprun::rendezvous
