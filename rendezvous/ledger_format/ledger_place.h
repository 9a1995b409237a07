// Where a ledger lies: the value of --ledger, and the place that one job uses within it. Pure.
//
//   memory                      in the leader's process
//   directory:PATH              one folder below PATH for each job, on a shared file system
//   etcd:HOST:PORT,…            keys below ddprun/ in etcd, version 3
//   etcds:HOST:PORT,…           the same over TLS
//
// Under Slurm the place of a job is named by cluster, job id and step, else by the run id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddprun::rendezvous {

struct EtcdEndpoint {
    std::string host;
    std::uint16_t port = 0;
    bool operator==(const EtcdEndpoint&) const = default;
};

struct LedgerPlace {
    enum class Kind { memory, directory, etcd };
    Kind kind = Kind::memory;
    std::string path;                     // directory: the folder; etcd: what its keys begin with
    std::vector<EtcdEndpoint> endpoints;  // etcd: at least one
    bool tls = false;                     // etcd: over TLS
    bool operator==(const LedgerPlace&) const = default;
};

// The files that the user has given for etcd, each with its option; empty: not given. What is in
// them is read by ledger/etcd_files.h.
struct EtcdFiles {
    std::string user;    // --etcd-user-file: NAME:PASSWORD
    std::string cacert;  // --etcd-cacert: whose servers are believed
    std::string cert;    // --etcd-cert and --etcd-key: by which a server knows us
    std::string key;
    bool any() const { return *this != EtcdFiles{}; }
    bool operator==(const EtcdFiles&) const = default;
};

// Whether these files suit that place. Errors: usage (a certificate without its key, files for TLS
// and an etcd without it). For another kind of ledger they have no effect: a site may give them to
// all its users.
Result<> check_etcd_files(const EtcdFiles& files, const LedgerPlace& place);

// Reads the value of --ledger, without a job yet. A path with a slash in it is a directory. IPv6
// addresses are in brackets. Errors: usage, with the accepted forms.
Result<LedgerPlace> read_ledger_place(std::string_view text);

// The place of the job `name` within the chosen one. Two names never share a place: characters that
// a file name or key cannot hold become %XX. Errors: usage (too long for a file name).
Result<LedgerPlace> of_job(LedgerPlace chosen, std::string_view name);

// What depends on the kind. Nobody else compares kinds, but ledger_open.cc, which opens them.
//
// Whether several nodes can read it, so that another node can lead when the leader is lost.
bool is_shared(const LedgerPlace& place);
bool is_in_etcd(const LedgerPlace& place);
std::string folder_of(const LedgerPlace& place);  // empty: in none
LedgerPlace in_folder(std::string path);          // of kind directory

// How a check speaks of a shared ledger.
struct LedgerWords {
    std::string another;  // what a node has found that sees another ledger: "a different etcd"
    std::string fix;      // what to do then: "; give --ledger=…"
    // The errors of this kind say themselves what to do.
    bool errors_have_fix = false;
};
LedgerWords words_of(const LedgerPlace& place);

std::string to_text(const EtcdEndpoint& endpoint);
std::string to_text(const std::vector<EtcdEndpoint>& endpoints);  // "a:2379,b:2379"
// In the syntax of --ledger: "directory:/home/u/.ddprun/lab.8812.0", "etcd:a:2379,b:2379".
std::string to_text(const LedgerPlace& place);

}  // namespace ddprun::rendezvous
