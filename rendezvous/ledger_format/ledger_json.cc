// Puts format line and checksum around an entry, and checks both (ledger_json.h).
#include "rendezvous/ledger_format/ledger_json.h"

#include <boost/crc.hpp>
#include <cstdio>

#include "rendezvous/ledger_format/ledger_entry_json.h"

namespace ddprun::rendezvous {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "ddprun ledger entry 1";

// Computed from the compact text with sorted keys, so reformatting the file keeps it valid.
std::string checksum(const Json& entry) {
    const std::string text = entry.dump();
    boost::crc_32_type crc;
    crc.process_bytes(text.data(), text.size());
    char line[32];
    std::snprintf(line, sizeof line, "crc32:%08x", static_cast<unsigned>(crc.checksum()));
    return line;
}

}  // namespace

std::string to_json(const LedgerEntry& entry, JsonStyle style) {
    const Json json = write_entry(entry);
    const Json whole{{"format", kFormat}, {"checksum", checksum(json)}, {"entry", json}};
    return style == JsonStyle::compact ? whole.dump() : whole.dump(1) + "\n";
}

Result<LedgerEntry> from_json(std::string_view text) {
    const auto malformed = [](const std::string& why) { return Error(ErrorCode::malformed, why); };
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return malformed("is truncated or is not JSON");
    try {
        if (json.at("format") != kFormat) return malformed("has an unknown ledger entry format");
        if (json.at("checksum") != checksum(json.at("entry")))
            return malformed("does not match its checksum");
        Fault fault;
        LedgerEntry entry = read_entry(Place(fault, "entry"), json.at("entry"));
        if (fault.first) return *fault.first;
        return entry;
    } catch (const Json::exception& wrong) {
        return malformed(std::string("is not a valid entry: ") + wrong.what());
    }
}

}  // namespace ddprun::rendezvous
