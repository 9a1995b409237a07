// Finds the members of a running job in its ledger. A node that comes late needs them if nobody
// answers at the endpoint any more: each member knows the leader, or is the leader.
//
// Thread: the loop's. What `shell` refers to must outlive the call.
#pragma once

#include <functional>
#include <vector>

#include "rendezvous/ledger/ledger_open.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// Calls `done` once, later, on the loop. It gets the leader of the newest generation and those
// members that can be called, at most as many as a leader names to others. It gets none if there is
// no ledger of this command, or if its job has no generation yet or has ended.
void find_members(const LedgerShell& shell, const LedgerPlace& place, LedgerOwner owner,
                  LedgerLimits limits, std::function<void(std::vector<Peer>)> done);

}  // namespace ddprun::rendezvous
