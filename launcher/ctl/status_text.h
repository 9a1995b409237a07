// What ddpctl prints about a running job: a page for people, JSON for programs. All texts from the
// job are made printable. Pure.
#pragma once

#include <string>

#include "proto/control.pb.h"

namespace ddprun::launcher {

// A line for each part that there is, then a table of the nodes. Of more than `most_nodes` only
// those are shown that are not as they should be, and the others are counted.
std::string status_text(const control::StatusReply& job, std::size_t most_nodes = 40);
std::string status_json(const control::StatusReply& job);

}  // namespace ddprun::launcher
