// Seals the values of a ledger that others may be able to write, as in etcd. A seal is an
// HMAC-SHA-256 with a key that is made from the job's secret. It covers the key under which the
// value lies, so a value cannot be moved to another number, series or job, and the mark of its
// ledger, so a value of an earlier ledger under the same name does not count.
//
// The secret must outlive the leader that wrote the value: that of a --secret-file does.
//
// Pure. Errors of opening: malformed, with what is wrong and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/system/secret_text.h"

namespace ddprun::rendezvous {

class LedgerSeal {
  public:
    // Without a secret values bear no seal, and one that bears a seal is refused.
    LedgerSeal() = default;
    explicit LedgerSeal(std::string_view secret);

    // The text as it is to be stored. `mark` is that of the ledger (ledger_claim.h); 0 for the
    // claim itself.
    std::string close(std::string_view key, std::uint64_t mark, std::string text) const;
    // The text that was closed for this key and mark.
    Result<std::string> open(std::string_view key, std::uint64_t mark, std::string stored) const;

  private:
    std::string seal(std::string_view key, std::uint64_t mark, std::string_view text) const;

    SecretText key_;  // empty: no secret
};

}  // namespace ddprun::rendezvous
