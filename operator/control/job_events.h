// What has happened in a job between two looks at it: for ddpctl events, and for --on-event. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "rendezvous/model/job_status.h"

namespace ddprun::rendezvous {

// "generation 3 runs with 32 workers: rank 3 … exited with 1".
struct JobEvent {
    std::string kind;  // "leader", "generation", "waiting", "stopping", "standstill", "node", "end"
    std::string sentence;
    std::int64_t generation = -1;  // that it is about; -1: there is none yet
};

// `before`: null at the first look.
std::vector<JobEvent> events_between(const control::StatusReply* before,
                                     const control::StatusReply& now);

std::string event_text(const JobEvent& event, const control::StatusReply& at);
// One line: time, event, sentence, run_id, generation (null: none yet). What is no UTF-8 is
// replaced.
std::string event_json(const JobEvent& event, const control::StatusReply& at);

// The events between each call and the one before, as JSON (launcher/job/event_program.h); `job`
// null: the next call is the first one. `now`: since 1970.
std::function<std::vector<std::string>(const JobStatus* job, const std::optional<Ending>& ending,
                                       Duration now)>
event_texts();

}  // namespace ddprun::rendezvous
