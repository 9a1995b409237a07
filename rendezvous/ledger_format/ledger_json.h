// Converts one ledger entry to its text in a ledger, and back: JSON for people and tools (`jq
// .entry entry-000001.json`), with a format line and a checksum that reveal a cut or changed file.
// 64-bit random numbers are in hexadecimal, since most JSON readers round them. Text that is not
// UTF-8 becomes {"hex": "…"}.
//
// Pure. Errors of reading: malformed, with the place ("entry.members[3].offer.slots: 0 is not
// 1..4096").
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// readable: with line breaks, for people. compact: without, where space is limited.
enum class JsonStyle { readable, compact };
std::string to_json(const LedgerEntry& entry, JsonStyle style = JsonStyle::readable);
Result<LedgerEntry> from_json(std::string_view text);

// What is wrong with a text that has another format than this version reads: of "ledger entry" or
// "ledger". A requeue with an older ddprun than wrote the ledger meets a higher number.
std::string unknown_format(const std::string& what, std::string_view format);

}  // namespace ddprun::rendezvous
