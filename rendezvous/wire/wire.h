// Messages ↔ bytes of the agent link: the only place that distrusts what came over the wire. Sizes,
// ranges, counts and enumerations are checked here, so that nobody behind it has to; what is not
// right is Error(malformed) with a sentence that names the field ("Join.offer.slots: 0 is
// not 1..4096").
//
// Pure: no thread, no state. Frames (frame.h) lie around these bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

// Texts of a Report (sentences, errors, tails) are cut to 4 KiB each and 2 MiB together, so that
// its frame is always taken; all else that is encoded is ours and within the limits.
std::string encode(const ToLeader& message);
std::string encode(const ToNode& message);

Result<ToLeader> decode_to_leader(std::string_view bytes);
Result<ToNode> decode_to_node(std::string_view bytes);

}  // namespace ddprun::rendezvous
