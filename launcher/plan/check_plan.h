// A check is a job: nodes meet, prove who they are, share a ledger and run one worker each, all by
// the same code as in a start. Only the worker is ours (check_node.h), and nobody waits for ten
// minutes. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// The first word of that worker's command line; ddprun's own words follow, as they were given.
inline constexpr const char* kCheckArgument = "--ddprun-check";

// The exit code of that worker, and so of all nodes, when the report has something wrong in it.
constexpr int kCheckWrong = 69;

// Who has not come by then is missing: an option that says so counts.
constexpr std::chrono::milliseconds kCheckMeeting{20'000};

void make_check_plan(Plan& plan, const Options& options, const std::vector<std::string>& words);

}  // namespace ddprun::launcher
