// Events, messages and effects in one line each, for the trace of a job. The trace shows a person
// what went wrong at a seed, and its hash shows that a change of the machines changes nothing.
#pragma once

#include <string>

#include "agent/machine/events.h"
#include "rendezvous/model/events.h"

namespace ddprun::sim {

std::string describe(const rendezvous::ToLeader& message);
std::string describe(const rendezvous::ToNode& message);
std::string describe(const rendezvous::Event& event);
std::string describe(const rendezvous::Effect& effect);
std::string describe(const agent::Event& event);
std::string describe(const agent::Effect& effect);
std::string describe(const rendezvous::Ending& ending);
std::string describe(const rendezvous::Assignment& assignment);
std::string describe(const rendezvous::NodePlace& place);

}  // namespace ddprun::sim
