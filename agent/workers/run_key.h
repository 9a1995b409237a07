// A key for programs that record a run in another place, such as experiment trackers
// (DDPRUN_RUN_KEY). One run of ddprun has one key: the same in all its generations, under each
// leader, and after each requeue. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ddprun::agent {

// Twenty letters and digits, the first one a letter. `run` names the run and no other. The key of a
// name never changes, also not in later versions of ddprun: a requeued job may run one.
std::string run_key(std::string_view run);

}  // namespace ddprun::agent
