// Turns a plan into the plan of a check (--check). A check is a job: the nodes meet, prove their
// identity, share a ledger and run one worker each, with the same code as a real start. Only the
// worker is our own (check_node.h), and the time-outs are short. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/exit_code.h"
#include "launcher/options/options.h"
#include "launcher/plan/plan.h"

namespace ddprun::launcher {

// The first word of that worker's command line. The words that ddprun was called with follow it.
inline constexpr const char* kCheckArgument = "--ddprun-check";

// The exit code of that worker, and so of all nodes, if the report contains a problem.
inline constexpr int kCheckWrong = kUnavailableCode;

// A node that has not come by then counts as missing. An option of the user overrides it.
constexpr Duration kCheckMeeting = std::chrono::seconds{20};

// `program`: the path of ddprun itself.
void make_check_plan(Plan& plan, const Options& options, const std::string& program,
                     const std::vector<std::string>& words);

}  // namespace ddprun::launcher
