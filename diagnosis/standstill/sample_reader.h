// Reads from /proc what a worker is doing. Eight small files for each look at a worker, which
// stay open: a look takes some ten system calls.
//
// Source: proc(5). Threads of Gloo are known by their name, which PyTorch gives them: inside a
// collective they wait in futex() with a timeout (its fourth argument), else without one. What Gloo
// sends is written by these threads or by the one of its connections; other threads of a worker may
// write a log at any time. A worker of the trainer library says itself in which call it is
// (call_reader.h).
//
// Thread: any, one at a time. /proc may let nobody read it for a while.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/parts/watched_workers.h"
#include "base/system/small_file.h"
#include "diagnosis/stacks/memory.h"
#include "diagnosis/standstill/worker_sample.h"

namespace ddprun::agent {

class SampleReader {
  public:
    // `proc`: where the kernel shows processes.
    explicit SampleReader(std::int64_t pid, const std::string& proc = "/proc");
    // `calls_at`: its call board; 0: it has none.
    WorkerSample read(Address calls_at);

  private:
    void find_gloo(int threads);
    bool read_gloo(WorkerSample& sample);

    // One that runs collectives, or sends for those that do.
    struct GlooThread {
        KeptFile io, call;
        std::int64_t id = 0;
        bool runs_collectives = false;
    };

    std::int64_t pid_;
    KeptFile stat_, io_, call_;  // call_: of the main thread
    int threads_ = 0;            // of the process, when they were listed
    int looks_ = 0, list_again_ = 0;
    std::vector<GlooThread> gloo_;
};

// Reads where workers are: the functions of those that run Python, the calls of those of the
// trainer library, their children, and, if they are asked for, their connections: for these the
// kernel goes through all of the machine. One entry for each.
std::vector<ProgramPlace> read_places(const WatchedWorkers& workers, bool connections);

}  // namespace ddprun::agent
