// What ddpctl prints about a running job: a page for people, JSON for programs. All texts from the
// job are made printable. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "proto/control.pb.h"

namespace ddprun::launcher {

// A line for each part that there is, then a table of the nodes. Of more than `most_nodes` only
// those are shown that are not as they should be, and the others are counted.
std::string status_text(const control::StatusReply& job, std::size_t most_nodes = 40);
// The same for a reader who looks again and again and sees `rows` lines at once (0: all): as many
// nodes as there is room for, and a last line that says so if not even the rest fits. `steps`: a
// second, where it is known.
std::string top_text(const control::StatusReply& job, std::optional<double> steps,
                     std::size_t rows);
std::string status_json(const control::StatusReply& job, int indent = 2);  // -1: one line

// What ended this generation, or the one before; empty: nothing.
const std::string& last_end(const control::StatusReply& job);

// How many steps a job makes in a second, over the last half minute in which somebody looked.
class StepRate {
  public:
    std::optional<double> at(const control::StatusReply& job);

  private:
    struct Look {
        std::int64_t at = 0, step = 0;
    };
    std::deque<Look> looks_;
    std::int64_t generation_ = -1;
};

}  // namespace ddprun::launcher
