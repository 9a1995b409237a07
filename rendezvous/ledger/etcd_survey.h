// What lies in etcd, for those who look at ledgers of jobs: ddpctl. It only reads.
//
// Thread: each call blocks, with a loop of its own. Possible errors: those of EtcdClient, and
// malformed (a value is not our JSON or bears no seal of ours).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// The names of all jobs that have ledgers there, in order: "lab.8812.0".
Result<std::vector<std::string>> names_in_etcd(const LedgerPlace& place,
                                               LedgerAccessPointer access);

struct EtcdLedger {
    std::uint64_t mark = 0;
    std::vector<LedgerEntry> entries;  // up to the first that is missing or cannot be read
    std::optional<Error> fault;        // of that one
};
// The newest ledger of that job. Possible errors also: not_found.
Result<EtcdLedger> read_etcd_ledger(LedgerPlace place, LedgerAccessPointer access,
                                    const std::string& name);

}  // namespace ddprun::rendezvous
