// How a job stands, as messages of the control service. Pure.
#pragma once

#include <optional>
#include <string>

#include "proto/control.pb.h"
#include "rendezvous/model/job_status.h"

namespace ddprun::rendezvous {

// `now`: since 1970. `ended`: how the job has ended, if it has.
control::StatusReply to_reply(const JobStatus& job, const std::optional<Ending>& ended,
                              Duration now);

// What an operator asks, as it came: the machine judges the numbers.
OperatorLimits to_limits(const control::LimitsRequest& asked);

// Why the job does not go on; no sentence: it does.
control::WhyReply why(const JobStatus& job);

}  // namespace ddprun::rendezvous
