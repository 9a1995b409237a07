// How a job stands while nobody leads it, as its ledger tells: who led, which generation is the
// newest, and what is waited for. Pure.
#pragma once

#include <string>

#include "operator/ddpctl/found_job.h"
#include "proto/control.pb.h"

namespace ddprun::launcher {

// What the ledger has of the job, and nothing of its nodes. `now`: since 1970.
control::StatusReply status_of_ledger(const FoundJob& job, Duration now);

// `why`: what the nodes say, or that they say nothing. `now`: since 1970.
control::StatusReply recorded_status(const FoundJob& job, const std::string& why, Duration now);

// Whether it is one of these, and not a leader's.
bool is_recorded(const control::StatusReply& job);

}  // namespace ddprun::launcher
