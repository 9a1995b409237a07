// What the files of the workers are called, as torchrun calls them:
//
//   LOG_DIR/<run id>_<8 characters>/attempt_<generation>/<local rank>/{stdout.log,stderr.log,error.json}
//                                                       /filtered_{stdout,stderr}.log
//
// Pure.
#pragma once

#include <string>

#include "proto/ids.h"

namespace ddprun::agent {

inline constexpr const char* kStreamFiles[] = {"stdout.log", "stderr.log"};
inline constexpr const char* kErrorFile = "error.json";
inline constexpr const char* kTimerFile = "timer";     // beside it, of local rank 0
inline constexpr const char* kStopFile = "stop.json";  // so too; DDPRUN_STOP_FILE names it
// In TMPDIR, where there is no log folder; the X are chosen when it is made, as by mkdtemp(3).
inline constexpr const char* kTemporaryFolder = "ddprun_XXXXXX";

// The folder of one ddprun in the log folder; what a file name cannot hold is replaced.
std::string run_folder(std::string run_id, const std::string& eight_characters);
std::string attempt_folder(const std::string& run_folder, Generation generation);
std::string worker_folder(const std::string& attempt_folder, int local_rank);
// Of the generation, `stream` 0 or 1.
std::string filtered_file(const std::string& attempt_folder, int stream);

}  // namespace ddprun::agent
