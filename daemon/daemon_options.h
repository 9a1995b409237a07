// The command line of ddprun-rendezvous. Pure.
//
// It has few options on purpose. The number of nodes, the restarts and the lease are on each job's
// own command line; its first node brings them along (Hello::limits).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/model/identity_mode.h"

namespace ddprun::rendezvous {

// The options with their defaults.
struct DaemonOptions {
    std::string host = "127.0.0.1";  // an address to listen on, never a name
    std::uint16_t port = 29400;      // torchrun's default; 0: any free one
    LedgerPlace ledger;              // not yet the place of one run
    EtcdFiles etcd;                  // for a ledger in etcd
    std::string secret_file;         // empty: not given
    IdentityMode identity = IdentityMode::automatic;
    bool serve_c10d = false;  // also serve PyTorch's own torchrun
    bool help = false;        // print the help and exit, whatever else was given
    bool version = false;
};

// Reads the words after the program's name; --name=value and --name value are equal. Possible
// errors: usage, with the option and what was expected.
Result<DaemonOptions> read_daemon_options(const std::vector<std::string_view>& words);

// The text of --help.
std::string daemon_help();

}  // namespace ddprun::rendezvous
