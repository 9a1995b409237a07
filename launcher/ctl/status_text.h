// What ddpctl prints about a running job: a page for people, JSON for programs, and what has changed
// between two looks. All texts from the job are made printable. Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace ddprun::launcher {

// A line for each part that there is, then a table of the nodes. Of more than `most_nodes` only
// those are shown that are not as they should be, and the others are counted.
std::string status_text(const control::StatusReply& job, std::size_t most_nodes = 40);
std::string status_json(const control::StatusReply& job);

// "generation 3 runs with 32 workers: rank 3 … exited with 1". `before`: null at the first look.
struct JobEvent {
    std::string kind;  // "leader", "generation", "waiting", "stopping", "standstill", "node", "end"
    std::string sentence;
};
std::vector<JobEvent> events_between(const control::StatusReply* before,
                                     const control::StatusReply& now);
std::string event_text(const JobEvent& event, const control::StatusReply& at);
std::string event_json(const JobEvent& event, const control::StatusReply& at);  // one line

}  // namespace ddprun::launcher
