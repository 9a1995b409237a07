// Puts format line and checksum around an entry, and checks both (ledger_json.h).
#include "rendezvous/ledger_format/ledger_json.h"

#include <boost/crc.hpp>
#include <cstdio>

#include "rendezvous/ledger_format/ledger_entry_json.h"

namespace ddprun::rendezvous {
namespace {

using Json = nlohmann::json;

// A form that this version would misread must have another number.
constexpr const char* kEntryFormat = "ddprun ledger entry 1";

// A CRC finds accidents: a file that was cut, or changed by hand. It does not protect against
// somebody who may write to the ledger. It is computed from the compact text with sorted keys, so
// reformatting the file keeps it valid.
std::string checksum(const Json& entry) {
    const std::string text = entry.dump();
    boost::crc_32_type crc;
    crc.process_bytes(text.data(), text.size());
    char line[32];
    std::snprintf(line, sizeof line, "crc32:%08x", static_cast<unsigned>(crc.checksum()));
    return line;
}

}  // namespace

std::string unknown_format(const std::string& what, std::string_view format) {
    const std::string newer =
        ": a newer ddprun has written it; start the job with that version again";
    return "has an unknown " + what + " format" +
           (format.starts_with("ddprun " + what + " ") ? newer : "");
}

std::string to_json(const LedgerEntry& entry, JsonStyle style) {
    const Json json = write_entry(entry);
    const Json whole{{"format", kEntryFormat}, {"checksum", checksum(json)}, {"entry", json}};
    return style == JsonStyle::compact ? whole.dump() : whole.dump(1) + "\n";
}

Result<LedgerEntry> from_json(std::string_view text) {
    const auto malformed = [](const std::string& why) { return Error(ErrorCode::malformed, why); };
    // Without exceptions, parse() marks a text that is not JSON as discarded.
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return malformed("is truncated or is not JSON");
    try {
        // The format first: an entry of another format may have its checksum elsewhere, or none.
        const std::string format = json.at("format").get<std::string>();
        if (format != kEntryFormat) return malformed(unknown_format("ledger entry", format));
        if (json.at("checksum") != checksum(json.at("entry")))
            return malformed("does not match its checksum");
        // A value out of range becomes a fault; a missing field or a wrong type throws. Both mean
        // that the ledger is damaged.
        Fault fault;
        LedgerEntry entry = read_entry(Place(fault, "entry"), json.at("entry"));
        if (fault.first) return *fault.first;
        return entry;
    } catch (const Json::exception& wrong) {
        return malformed(std::string("is not a valid entry: ") + wrong.what());
    }
}

}  // namespace ddprun::rendezvous
