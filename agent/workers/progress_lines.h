// Reads what a worker reports on its progress pipe: lines such as "step=12 snapshot=10
// snapshot_ms=250 saving_ms=40" (trainer/worker/progress.h writes them), and once where it says in
// which collective call it is: "ddprun_calls=140234 pid=77". Other words may follow, such as
// "loss=0.25". Pure.
//
// The worker may be any program and may write anything, so no line is an error. A number that is
// missing, cannot be read or is too large counts as not told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace ddprun::agent {

// One line. -1 means not told.
struct ProgressReport {
    std::int64_t step = -1;
    std::int64_t snapshot = -1;  // the step of the newest complete snapshot
    Duration snapshot_took{};    // to save it; 0: not told, at most one day
    std::uint64_t calls_at = 0;  // the address of its call board; such a line tells nothing else
    std::int64_t calls_of = 0;   // the process in which that is
    std::string not_finite;      // a value that is none: "loss=nan"; empty: there is none
    // What all snapshots of this process have taken from its training so far; -1: not told. Then
    // each takes the time to save it (SavingTime).
    Duration saving{-1};
    // Of several lines in one report: the first step; else -1. `step` is the newest.
    std::int64_t first_step = -1;
};

// Sums up what the snapshots of one worker have taken from its training. A worker repeats the
// newest snapshot with its time in each line; it counts once.
class SavingTime {
  public:
    void hear(const ProgressReport& report);
    Duration all() const { return all_; }

  private:
    Duration all_{};
    std::int64_t counted_ = -1;  // the newest snapshot whose time is in the sum
    bool tells_itself_ = false;  // the worker sums up
};

class ProgressLines {
  public:
    // The beginning of a line is kept up to this length, then the line is skipped.
    static constexpr std::size_t kLongest = 4096;

    // Returns a report for each line that these bytes complete. They may begin and end anywhere.
    std::vector<ProgressReport> take(std::string_view bytes);

  private:
    std::string held_;       // beginning of a line
    bool skipping_ = false;  // the line was too long: it is skipped up to its end
};

}  // namespace ddprun::agent
