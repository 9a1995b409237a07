// What `ddpctl history` prints, as text and as JSON (operator/README.md). Pure.
#pragma once

#include <string>

#include "operator/ddpctl/found_job.h"
#include "rendezvous/ledger/ledger_contents.h"

namespace ddprun::launcher {

// `now`: since 1970.
std::string history_text(const FoundJob& job, const rendezvous::LedgerHistory& history,
                         Duration now);
std::string history_json(const FoundJob& job, const rendezvous::LedgerHistory& history);

}  // namespace ddprun::launcher
