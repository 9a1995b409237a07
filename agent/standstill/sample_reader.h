// Reads from /proc what a worker is doing. Five small files for each look at a worker.
//
// Source: proc(5). Threads of Gloo are known by their name, which PyTorch gives them: inside a
// collective they wait in futex() with a timeout (its fourth argument), else without one.
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
    int threads_ = 0;                 // of the process, when the list was made
    std::vector<std::int64_t> gloo_;  // its threads that run collectives
};

// Reads the functions of a worker that runs Python.
ProgramPlace read_place(std::int64_t pid);

}  // namespace ddprun::agent
