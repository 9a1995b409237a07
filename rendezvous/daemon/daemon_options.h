// The command line of ddprun-rendezvous. Pure.
//
// There are few options on purpose: how many nodes, how many restarts, how long a lease is, every
// job says on its own command line, and its first node brings it along (Hello::limits).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/model/identity_mode.h"

namespace ddprun::rendezvous {

struct DaemonOptions {
    std::string host = "127.0.0.1";  // an address to listen on, never a name
    std::uint16_t port = 29400;      // torchrun's; 0: any free one
    LedgerPlace ledger;              // without a run yet
    std::string secret_file;         // empty: not given
    IdentityMode identity = IdentityMode::automatic;
    bool serve_c10d = false;
    bool help = false;  // print it and leave, whatever else was said
    bool version = false;
};

// The words behind the program's name; --name=value and --name value are the same. Possible errors:
// usage, with the option and what was expected.
Result<DaemonOptions> read_daemon_options(const std::vector<std::string_view>& words);

std::string daemon_help();

}  // namespace ddprun::rendezvous
