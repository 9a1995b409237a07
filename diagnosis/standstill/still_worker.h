// Judges from samples whether a worker stands still, since when, and what it does meanwhile. Pure.
//
// It stands still while it is in a collective and Gloo sends nothing, or while it is in none. (A
// worker that trains goes in and out.) Samples come once a second; shorter pauses are not seen.
//
// Outside it may do something all the same. Nothing at all moves in it while its main thread is in
// the same functions, it and its children take hardly any CPU time, and it reads and writes
// nothing.
//
// NCCL waits on the GPU, which nobody sees from outside: its own RAS tells who waits. Then a worker
// has stood still since the counts of its collectives have, and is in one if it waits.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "diagnosis/nccl/nccl_watch.h"
#include "diagnosis/standstill/worker_sample.h"
#include "rendezvous/model/standstill.h"

namespace ddprun::agent {

class StillWorker {
  public:
    void sampled(Time now, const WorkerSample& sample);
    void found_at(Time now, const ProgramPlace& place);
    void told_by_nccl(const NcclState& state) { nccl_ = state; }

    // When it was last seen. Only then do its connections tell why it stands still.
    bool in_collective() const { return last_.pending > 0; }
    // Between the last two samples it read and wrote nothing and took hardly any CPU time.
    bool idles() const { return idles_; }
    // For how long it has stood still.
    Duration lasted(Time now) const {
        return sampled_ ? now - std::max(still_since_, nccl_.moved_at) : Duration{};
    }
    // For how long it has been seen in init_process_group() or new_group(); 0: it is in neither.
    Duration met_for(Time now) const { return place_.meets ? now - meets_since_ : Duration{}; }
    // For how long nothing at all has moved in it; 0: that is not known.
    Duration unmoved(Time now) const;
    // How long it usually goes between two moves.
    Duration usual() const { return std::max(usual_, nccl_.usual); }
    std::uint32_t place() const;
    LostConnection lost() const { return place_.lost; }
    const std::string& call() const { return place_.call; }
    rendezvous::Doing doing() const;

  private:
    void moved(Time now);

    bool sampled_ = false;
    WorkerSample last_;
    ProgramPlace place_;
    NcclState nccl_;
    Time sampled_at_{}, found_at_{}, still_since_{}, moved_at_{};
    Time unmoved_since_{}, meets_since_{};
    Duration usual_{};
    bool has_moved_ = false;
    bool computes_ = false;  // it took more than half of a CPU since the sample before
    bool idles_ = false;
    int in_kernel_ = 0;  // samples in a row in which it could not be interrupted
};

}  // namespace ddprun::agent
