// The file in which workers read why they are stopped and how long they have. A reader finds it
// whole or not at all. Thread: any; the caller chooses one that a hanging file system may hold.
#pragma once

#include <string>

namespace ddprun::agent {

// Whether it could be written.
bool write_stop_file(const std::string& path, const std::string& text);

}  // namespace ddprun::agent
