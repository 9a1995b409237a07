// ParallelJob: what tensor_parallel and pipeline have in common. It finds the rank's place in the
// grid, saves and resumes, asks the launcher what it wants, and reports.
//
// Thread: one. Errors are exceptions (Failure).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "examples/parallel/grid.h"
#include "examples/parallel/parallel_options.h"
#include "trainer/snapshot/save/snapshot_writer.h"
#include "trainer/tensors/tensor.h"
#include "trainer/worker/progress.h"
#include "trainer/worker/snapshot_request.h"
#include "trainer/worker/stop_request.h"

namespace example {

class ParallelJob {
  public:
    // Meets the other ranks.
    ParallelJob(const ParallelOptions& options, std::string program,
                ddprun::trainer::StopRequest stop);

    const Grid& grid() const { return grid_; }

    // Loads the newest snapshot into this rank's slices, if there is one. All ranks call it once.
    // The memory of the slices must outlive this object: step_done() saves them.
    void resume(std::vector<ddprun::trainer::Tensor> slices);

    // Whether there is another step. Crashes before it, if the options say so.
    bool goes_on() const;
    std::int64_t step() const { return step_; }  // that are done

    // This replica's samples of the next step.
    std::int64_t samples() const { return options_.batch / grid_.replicas; }
    std::int64_t first_sample() const;

    // All ranks call it after each step. `loss`: the mean over this replica's samples, if this rank
    // knows it. Saves when it is time, and stops when a rank is told to.
    void step_done(std::optional<double> loss);

    // Waits for the snapshots. Returns the exit code.
    int end();

  private:
    void look_at(std::optional<double> loss, bool tells);
    void save();

    const ParallelOptions options_;
    const std::string program_;
    ddprun::trainer::StopRequest stop_;
    const ddprun::trainer::Context context_;
    const std::unique_ptr<ddprun::trainer::Store> store_;
    const std::unique_ptr<ddprun::trainer::ProcessGroup> world_;
    const Grid grid_;
    ddprun::trainer::SnapshotRequest request_;
    ddprun::trainer::Progress progress_;
    std::vector<ddprun::trainer::Tensor> slices_;
    std::unique_ptr<ddprun::trainer::SnapshotWriter> writer_;
    std::int64_t step_ = 0, saved_ = -1;
    bool stopped_ = false;
};

// Reads the command line, runs `train`, and reports a failure: the main() of both programs. `what`:
// the first line of --help.
int run_parallel(int argc, char** argv, const std::string& program, const char* what,
                 int (*train)(const ParallelOptions&, ddprun::trainer::StopRequest));

}  // namespace example
