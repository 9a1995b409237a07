// The names of the workers' folders and files. They are torchrun's names:
//
//   LOG_DIR/<run id>_<8 characters>/attempt_<generation>/
//       <local rank>/{stdout.log,stderr.log,error.json}
//       filtered_{stdout,stderr}.log
//
// Pure.
#pragma once

#include <string>

#include "proto/ids.h"

namespace ddprun::agent {

inline constexpr const char* kStreamFiles[] = {"stdout.log", "stderr.log"};
inline constexpr const char* kErrorFile = "error.json";
// The FIFO for torchrun's file timers, beside the error file of local rank 0.
inline constexpr const char* kTimerFile = "timer";
// In the same folder: why and how soon the workers are stopped. DDPRUN_STOP_FILE names it.
inline constexpr const char* kStopFile = "stop.json";
// In the same folder: who wants a snapshot. DDPRUN_SNAPSHOT_FILE names it.
inline constexpr const char* kSnapshotFile = "snapshot.json";
// In the temporary folder: where the processes of its ddprun come from.
inline constexpr const char* kOriginFile = "origin.json";
// The temporary folder's name in TMPDIR. mkdtemp(3) replaces the X's.
inline constexpr const char* kTemporaryFolder = "ddprun_XXXXXX";

// The folder of one ddprun inside the log folder. Characters that a file name cannot contain are
// replaced by '_'.
std::string run_folder(std::string run_id, const std::string& eight_characters);
// The folder of one generation.
std::string attempt_folder(const std::string& run_folder, Generation generation);
// The folder of one worker.
std::string worker_folder(const std::string& attempt_folder, int local_rank);
// The file with the filtered lines of all workers of a generation. `stream` is 0 (stdout) or 1
// (stderr).
std::string filtered_file(const std::string& attempt_folder, int stream);

}  // namespace ddprun::agent
