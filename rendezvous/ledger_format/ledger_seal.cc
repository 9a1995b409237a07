// Puts a line with the seal behind a value, and takes it off (ledger_seal.h).
#include "rendezvous/ledger_format/ledger_seal.h"

#include <boost/algorithm/hex.hpp>
#include <iterator>

#include "rendezvous/identity/mac.h"

namespace ddprun::rendezvous {
namespace {

constexpr int kSealScheme = 1;  // a seal that covers other things must have another number
// The stored value is the text, then this line. Both are JSON, so `jq` reads them.
constexpr std::string_view kBefore = "\n{\"seal\": \"";
constexpr std::string_view kBehind = "\"}\n";
constexpr std::size_t kLineSize = kBefore.size() + 2 * kMacSize + kBehind.size();

bool is_sealed(std::string_view stored) {
    return stored.size() >= kLineSize && stored.ends_with(kBehind) &&
           stored.substr(stored.size() - kLineSize).starts_with(kBefore);
}

Error malformed(const char* why) { return Error(ErrorCode::malformed, why); }

}  // namespace

LedgerSeal::LedgerSeal(std::string_view secret)
    : key_(secret.empty() ? SecretText()
                          : SecretText::out_of(hmac_of_secret(
                                secret, mac_field("ddprun ledger") + mac_number(kSealScheme)))) {}

std::string LedgerSeal::seal(std::string_view key, std::uint64_t mark,
                             std::string_view text) const {
    std::string line(kBefore);
    boost::algorithm::hex_lower(hmac(key_, mac_field(key) + mac_number(mark), text),
                                std::back_inserter(line));
    return line.append(kBehind);
}

std::string LedgerSeal::close(std::string_view key, std::uint64_t mark, std::string text) const {
    if (!key_.empty()) text += seal(key, mark, text);
    return text;
}

Result<std::string> LedgerSeal::open(std::string_view key, std::uint64_t mark,
                                     std::string stored) const {
    const bool sealed = is_sealed(stored);
    if (key_.empty() && !sealed) return stored;
    if (key_.empty())
        return malformed(
            "is sealed with a --secret-file, which this node was not given; give all nodes the "
            "same "
            "one");
    if (!sealed)
        return malformed(
            "bears no seal, so somebody without this job's --secret-file has written it");
    const std::string line = stored.substr(stored.size() - kLineSize);
    stored.resize(stored.size() - kLineSize);
    if (!same_mac(line, seal(key, mark, stored)))
        return malformed(
            "bears a wrong seal: it was made with another --secret-file, or for another key or "
            "job, "
            "or was changed since");
    return stored;
}

}  // namespace ddprun::rendezvous
