// Reads and writes files that hold a secret: only their owner may read them.
//
// Blocking calls. Use them on the file thread, or before the loop runs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/system/secret_text.h"

namespace ddprun {

// Whether the last part of the path may be a symbolic link.
enum class Links { follow, refuse };

// Passwords and secrets are short, and keys in PEM format are not. A larger file is the wrong file.
inline constexpr std::size_t kLargestSecret = 1024, kLargestKey = 65536;

// Returns the file's text without line ends at its end. Possible errors: not_found; refused
// (readable or writable by others, owned by another user, not a regular file, or larger than
// `most`); unavailable (it cannot be read). The sentence starts with the path.
Result<SecretText> read_private_file(const std::string& path, Links links,
                                     std::size_t most = kLargestSecret);

// Creates the file with one line, `text`. After a crash the file is complete or does not exist.
// Possible errors: exists; unavailable.
Result<> create_private_file(const std::string& path, std::string_view text);

}  // namespace ddprun
