// Where the files of one generation's workers lie: BASE/attempt_<generation>/<local
// rank>/{error.json,stdout.log,stderr.log}, torchrun's layout. With a log folder BASE is made in it
// and stays; without one it is a temporary folder, which goes with this object. Nothing is made
// before the first worker needs it. Thread: the loop's.
#pragma once

#include <string>

#include "proto/error.h"
#include "proto/ids.h"

namespace ddprun::agent {

class AttemptFolder {
  public:
    // `log_dir` may be empty: a temporary folder. `run_id` becomes part of BASE's name in a log
    // folder.
    AttemptFolder(std::string log_dir, std::string run_id);
    ~AttemptFolder();
    AttemptFolder(const AttemptFolder&) = delete;
    AttemptFolder& operator=(const AttemptFolder&) = delete;

    // Makes and names the folder of one worker. Possible errors: unavailable, naming the path.
    Result<std::string> of(Generation generation, int local_rank);
    // The temporary folder; empty before it is made, and with a log folder.
    std::string temporary() const { return log_dir_.empty() ? base_ : std::string(); }

  private:
    Result<> make_base();

    std::string log_dir_, run_id_;
    std::string base_;
};

// The last line of what a worker wrote into its error file (as torchrun's @record does); empty if
// there is none.
std::string read_error_file(const std::string& path);

}  // namespace ddprun::agent
