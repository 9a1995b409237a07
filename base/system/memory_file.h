// A file without a name, for bytes that go to another process by its descriptor.
//
// Thread: any.
#pragma once

#include <string>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun {

// In memory (memfd_create(2)). Older kernels (Linux before 3.17) and sandboxes have no such files;
// then it is one in /dev/shm or /tmp that only this user could open and that nobody finds any more.
// The offset is at the end: read it with pread(2), or go back first. Possible errors: internal (no
// file, or no room for the bytes).
Result<UniqueFd> memory_file(const std::string& bytes);

}  // namespace ddprun
