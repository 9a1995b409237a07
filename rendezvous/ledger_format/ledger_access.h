// What opens a ledger that others can reach, as one in etcd: the user, certificates, and the seal
// of its values. ledger/etcd_files.h reads it once, before the loop runs. Pure.
#pragma once

#include <memory>
#include <string>

#include "base/system/secret_text.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/ledger_format/ledger_seal.h"

namespace ddprun::rendezvous {

struct LedgerAccess {
    EtcdFiles files;  // for sentences
    std::string user;
    SecretText password;
    // In PEM; empty: not given. Without a cacert the authorities count that the host believes.
    std::string cacert, cert;
    SecretText key;
    LedgerSeal seal;
};
using LedgerAccessPointer = std::shared_ptr<const LedgerAccess>;

}  // namespace ddprun::rendezvous
