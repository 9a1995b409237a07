// The workers of one generation on this node: which have ended, how far each one is, and when they
// passed the phases by which restarts are measured.
//
// Pure; owned by the agent machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::agent {

class NodeWorkers {
  public:
    // `first_rank`: of the worker with local rank 0.
    NodeWorkers(int count, int first_rank) : first_rank_(first_rank) {
        workers_.resize(static_cast<std::size_t>(count));
    }

    int count() const { return static_cast<int>(workers_.size()); }
    int living() const { return count() - ended_; }

    // ---- what happens
    // True: it was the last one.
    bool started(Time now);
    // It has ended, or could not be started. True: it was the last one.
    bool ended(int local_rank, Time now);
    void all_are_gone() { ended_ = count(); }
    bool have_ended() const { return ended_ == count(); }

    // A worker has said that it is at this step.
    void progressed(int local_rank, std::int64_t step, Time now);
    // What its snapshots have taken from training so far.
    void saving(int local_rank, Duration took);
    // All of them stand still in these ways; empty: some move, at this pace.
    void watched(std::vector<rendezvous::Still> kinds, rendezvous::Pace pace) {
        still_ = std::move(kinds);
        pace_ = pace;
    }
    // The newest step that a worker has said; -1: none.
    std::int64_t step_of(int local_rank) const {
        return workers_.at(static_cast<std::size_t>(local_rank)).step;
    }
    // A worker of any node is in contact with the store, which is on this node. True: the first.
    bool in_contact(Time now);

    // ---- what is told
    Time all_ended_at() const { return all_ended_at_; }  // kNever: some live
    // Of the worker whose training has lost most by it: workers save at the same time.
    Duration saving() const;
    // Fills in how far they are.
    void tell(rendezvous::Beat& beat, Time now) const;
    // Which marks they have passed by now.
    std::vector<rendezvous::Mark> marks(Time now) const;

  private:
    struct Worker {
        std::int64_t step = -1;  // newest reported
        Duration saving{};
        bool ended = false;
    };
    Worker& worker(int local_rank);
    // Of the living, at most kSlowest, the slowest first.
    std::vector<rendezvous::RankStep> slowest() const;

    std::vector<Worker> workers_;  // by local rank
    int first_rank_;
    std::vector<rendezvous::Still> still_;
    rendezvous::Pace pace_;
    int started_ = 0, ended_ = 0;
    std::int64_t step_ = -1;    // the newest of any worker
    std::int64_t reports_ = 0;  // of progress
    Time reported_at_{};        // the newest
    Time all_started_at_ = kNever, first_contact_at_ = kNever, first_report_at_ = kNever;
    Time all_ended_at_ = kNever;
};

}  // namespace ddprun::agent
