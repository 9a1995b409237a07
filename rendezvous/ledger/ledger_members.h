// Where a running job's members are, by its ledger: for a node that comes late, when nobody is at
// the endpoint any more. Each of them knows the leader, or is it.
//
// Thread: the loop's. What `shell` refers to must outlive the call.
#pragma once

#include <functional>
#include <vector>

#include "rendezvous/ledger/ledger_open.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/model/model.h"

namespace ddprun::rendezvous {

// `done` is called once, later, on the loop: with the leader of the newest generation and those of
// its members who can be called, at most as many as a leader names to others; with none where no
// ledger of this command is found, or its job has no generation yet or has ended.
void find_members(const LedgerShell& shell, const LedgerPlace& place, LedgerOwner owner,
                  LedgerLimits limits, std::function<void(std::vector<Peer>)> done);

}  // namespace ddprun::rendezvous
