// Writes the file from which workers learn why they are stopped and how much time they have
// (DDPRUN_STOP_FILE). A reader finds the whole file or none.
//
// Thread: any. It blocks while the file system hangs, so do not call it on the loop.
#pragma once

#include <string>

namespace ddprun::agent {

// Returns whether the file could be written.
bool write_stop_file(const std::string& path, const std::string& text);

}  // namespace ddprun::agent
