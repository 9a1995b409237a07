// Reads and writes a claim, and decides what a starting job does with a ledger (ledger_claim.h).
#include "rendezvous/ledger_format/ledger_claim.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/hexadecimal.h"
#include "rendezvous/ledger_format/ledger_json.h"

namespace ddprun::rendezvous {
namespace {

// A form that this version would misread must have another number.
constexpr const char* kClaimFormat = "ddprun ledger 1";

}  // namespace

std::string to_json(const LedgerClaim& claim) {
    return nlohmann::json{{"format", kClaimFormat},
                          {"command_digest", claim.command_digest},
                          {"mark", hexadecimal(claim.mark)}}
               .dump(1) +
           "\n";
}

Result<LedgerClaim> claim_from_json(std::string_view text) {
    const auto malformed = [](const std::string& why) { return Error(ErrorCode::malformed, why); };
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    // Without exceptions, parse() marks a text that is not JSON as discarded.
    if (json.is_discarded()) return malformed("is truncated or is not JSON");
    try {
        const std::string format = json.at("format").get<std::string>();
        if (format != kClaimFormat) return malformed(unknown_format("ledger", format));
        LedgerClaim claim{json.at("command_digest").get<std::string>(), 0};
        const std::string mark = json.at("mark").get<std::string>();
        // from_chars() stops at the first character that is no digit. A part of a mark is not taken
        // for the mark: it would belong to another ledger.
        const char* last = mark.data() + mark.size();
        const auto [end, error] = std::from_chars(mark.data(), last, claim.mark, 16);
        // Mark 0 means "no shared ledger" in messages, so a claim with it is damaged.
        if (error != std::errc() || end != last || claim.mark == 0)
            return malformed("has a mark that is not a hexadecimal number above 0");
        return claim;
    } catch (const nlohmann::json::exception&) {
        return malformed("lacks command_digest or mark");
    }
}

// A node that knows the leader knows the mark. One that has not found the leader yet knows only the
// command.
bool is_sought(const LedgerClaim& claim, const LedgerOwner& owner) {
    return owner.mark == kAnyMark ? claim.command_digest == owner.command_digest
                                  : claim.mark == owner.mark;
}

// The order of the checks matters. Nothing relies on the entries of a job that has ended, so it
// does not matter whose they are, or what is behind them. An entry that cannot be read comes next:
// behind it there may be entries of a job that still runs.
LedgerUse decide_use(const LedgerClaim& claim, const std::vector<LedgerEntry>& entries, bool cut,
                     const LedgerOwner& owner) {
    if (!entries.empty() && entries.back().end() && !continues(entries.back(), owner.requeue))
        return LedgerUse::finished;
    // An entry that cannot be read may be one that a running job relies on, also one of an earlier
    // allocation of this job.
    if (cut) return LedgerUse::unreadable;
    const std::string& digest =
        entries.empty() ? claim.command_digest : entries.front().command_digest;
    return digest == owner.command_digest ? LedgerUse::ours : LedgerUse::foreign;
}

std::string goes_on(const LedgerEntry& newest) {
    return "continues after entry " + std::to_string(newest.number.value) + " (generation " +
           std::to_string(newest.assignment.generation.value) + ", written by " +
           newest.leader.name + ")";
}

}  // namespace ddprun::rendezvous
