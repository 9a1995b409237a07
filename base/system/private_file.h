// Files with a secret in them: ours, and readable by nobody else. Blocking calls, for the file
// thread or before the loop runs.
#pragma once

#include <string>

#include "base/error.h"

namespace ddprun {

enum class Links { follow, refuse };  // symbolic ones, in the last part of the path

// Its text without the line's end. Errors: not_found; refused (others can read or change it, it is
// another user's, no regular file, more than 1024 bytes); unavailable (it cannot be read). The
// sentence begins with the path.
Result<std::string> read_private_file(const std::string& path, Links links);

// Makes the file with a line of `text`, whole or not at all, whatever crashes. Errors: exists;
// unavailable.
Result<> create_private_file(const std::string& path, const std::string& text);

}  // namespace ddprun
