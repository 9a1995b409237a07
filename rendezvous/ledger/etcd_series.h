// A numbered series of keys in etcd: `PATH/SERIES/ledger` with its claim (ledger_claim.h), and
// `PATH/SERIES/entry-000001` for each entry. Finds or begins the series of a job, and reads and
// creates entries in it. Each value is opened and closed with the job's seal here.
//
// Possible errors of all: those of EtcdClient, and malformed (a value is not our JSON or bears no
// seal of ours; the sentence names its key).
//
// Thread: that of the client. The arguments must outlive the coroutines.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/ledger_format/ledger_place.h"
#include "rendezvous/ledger_format/ledger_seal.h"
#include "rendezvous/model/events.h"

namespace ddprun::rendezvous {

struct EtcdSeries {
    std::string prefix;  // of its keys: "ddprun/8812.0/1/"
    std::uint64_t mark = 0;
    bool follows_end = false;  // the one before it is finished, and of the same command
};

// What could be read.
struct EtcdEntries {
    std::vector<LedgerEntry> whole;  // up to the first that is missing or cannot be read
    std::optional<Error> fault;  // malformed: the first bad entry; any other: why nothing was read
};

// Opens the series of a job that begins: the first that is neither finished nor another command's.
boost::asio::awaitable<Result<EtcdSeries>> begin_series(EtcdClient& client, const LedgerSeal& seal,
                                                        const LedgerPlace& place,
                                                        const LedgerOwner& owner, const Log& log);
// The series with the mark that is sought; for kAnyMark the newest one of this command. Possible
// errors also: not_found.
boost::asio::awaitable<Result<EtcdSeries>> find_series(EtcdClient& client, const LedgerSeal& seal,
                                                       const LedgerPlace& place,
                                                       const LedgerOwner& owner);
// The claim of the newest series, whoever began it. Possible errors also: not_found.
boost::asio::awaitable<Result<LedgerClaim>> newest_claim(EtcdClient& client, const LedgerSeal& seal,
                                                         const LedgerPlace& place);

boost::asio::awaitable<EtcdEntries> read_series(EtcdClient& client, const LedgerSeal& seal,
                                                const EtcdSeries& series, EntryNumber from);
boost::asio::awaitable<LedgerCreated> create_in_series(EtcdClient& client, const LedgerSeal& seal,
                                                       const EtcdSeries& series,
                                                       const LedgerEntry& entry);
// The highest restart count among the entries; -1: there are none.
Result<int> newest_requeue(const EtcdEntries& entries);

}  // namespace ddprun::rendezvous
