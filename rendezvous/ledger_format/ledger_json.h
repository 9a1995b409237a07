// One ledger entry ↔ its text in a ledger folder: JSON for people and tools (`jq .entry
// entry-000001.json`), with a format line and a checksum, so that a cut or altered file is known as
// such. 64-bit random numbers stand in hexadecimal, for most JSON readers round them; text that is
// no UTF-8 stands as {"hex": "…"}.
//
// Pure. Errors of reading: malformed, with the place ("entry.members[3].offer.slots: 0 is
// not 1..4096").
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// For people, with line breaks; or compact, where space is dear.
enum class JsonStyle { readable, compact };
std::string to_json(const LedgerEntry& entry, JsonStyle style = JsonStyle::readable);
Result<LedgerEntry> from_json(std::string_view text);

}  // namespace ddprun::rendezvous
