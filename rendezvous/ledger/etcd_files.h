// Reads the files that the user has given for a ledger in etcd, and checks what can be checked
// here: gRPC would only say that the server does not answer.
#pragma once

#include <string_view>

#include "base/error.h"
#include "rendezvous/ledger_format/ledger_access.h"

namespace ddprun::rendezvous {

// Reads the files for a ledger at this place; `secret` is the content of --secret-file. Null if the
// ledger is not in etcd. Blocks. Possible errors: usage, with the option and what to do: not there,
// readable by others (user file and key), not NAME:PASSWORD, no certificate, one that has expired,
// a key of another certificate.
Result<LedgerAccessPointer> read_ledger_access(const EtcdFiles& files, const LedgerPlace& place,
                                               std::string_view secret);

}  // namespace ddprun::rendezvous
