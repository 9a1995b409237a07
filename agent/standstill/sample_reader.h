// Reads from /proc what a worker is doing. Eight small files for each look at a worker.
//
// Source: proc(5). Threads of Gloo are known by their name, which PyTorch gives them: inside a
// collective they wait in futex() with a timeout (its fourth argument), else without one. What Gloo
// sends is written by these threads or by the one of its connections; other threads of a worker may
// write a log at any time.
//
// Thread: any, one at a time. /proc may let nobody read it for a while.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/standstill/worker_sample.h"

namespace ddprun::agent {

class SampleReader {
  public:
    explicit SampleReader(std::int64_t pid) : pid_(pid) {}
    WorkerSample read();

  private:
    void find_gloo(int threads);

    std::int64_t pid_;
    int threads_ = 0;                    // of the process, when the list was made
    std::vector<std::int64_t> gloo_;     // its threads that run collectives
    std::vector<std::int64_t> sending_;  // these, and those of its connections
};

// Reads where workers are: the functions of those that run Python, their children, and their
// connections. One entry for each; pid 0: none.
std::vector<ProgramPlace> read_places(const std::vector<std::int64_t>& pids);

}  // namespace ddprun::agent
