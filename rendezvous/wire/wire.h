// Messages of the agent link ↔ bytes. This is the only code that distrusts what came over the wire:
// it checks sizes, ranges, counts and enumerations, so that no other code has to. Possible error:
// malformed, with a sentence that names the field ("Join.offer.slots: 0 is not 1..4096").
//
// Pure: no thread, no state. Frames (frame.h) go around these bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/model/messages.h"

namespace ddprun::rendezvous {

// The texts of a Report (sentences, errors, last lines) are cut to 4 KiB each and 2 MiB together,
// so that its frame is always below the limit. Everything else that is encoded is our own and
// within the limits.
std::string encode(const ToLeader& message);
std::string encode(const ToNode& message);

// Possible errors of both: malformed.
Result<ToLeader> decode_to_leader(std::string_view bytes);
Result<ToNode> decode_to_node(std::string_view bytes);

}  // namespace ddprun::rendezvous
