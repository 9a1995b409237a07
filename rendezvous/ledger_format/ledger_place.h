// Where a ledger lies: --ledger's value, and the place it makes for one job. Pure.
//
//   memory                      in the leader's process
//   directory:PATH              a folder of PATH for each job, on a file system all nodes share
//   etcd:HOST:PORT,…            keys below ddprun/ in etcd, version 3
//
// A job's part of it is named by cluster, job id and step under Slurm, else by the run id.
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
    bool operator==(const LedgerPlace&) const = default;
};

// --ledger's value, without a job yet; a path with a slash in it is a directory. IPv6 addresses
// stand in brackets. Errors: usage, with what to give instead.
Result<LedgerPlace> read_ledger_place(std::string_view text);

// That of the job `name` within what --ledger has chosen. Two names never share a place: what a
// file name or key cannot hold stands as %XX. Errors: usage (too long for a file name).
Result<LedgerPlace> of_job(LedgerPlace chosen, std::string_view name);

std::string folder_of(const LedgerPlace& place);  // empty: in none

std::string to_text(const EtcdEndpoint& endpoint);
std::string to_text(const std::vector<EtcdEndpoint>& endpoints);  // "a:2379,b:2379"
// As --ledger takes it: "directory:/home/u/.ddprun/lab.8812.0", "etcd:a:2379,b:2379".
std::string to_text(const LedgerPlace& place);

}  // namespace ddprun::rendezvous
