// A ledger as keys in etcd: `PATH/SERIES/ledger` (ledger_claim.h) and one
// `PATH/SERIES/entry-000001` an entry, the same JSON as in a folder, compact. A key is written by a
// transaction that creates it if it is absent; nothing is ever overwritten or moved, so a name has
// series: the first that is neither finished nor another command's is the job's, and a job that
// ends leaves its series behind for good (`etcdctl del --prefix ddprun/NAME/` forgets them).
//
// An entry must fit into one request of etcd (--max-request-bytes, 1.5 MiB by default).
//
// Thread: the loop's. Nothing here blocks; an etcd that is silent or gone is answered as `failed`
// or unavailable, after 2 s for each endpoint, and is asked again by whoever asks again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

class EtcdClient;

class LedgerEtcd final : public Ledger {
  public:
    // `series`: what the keys begin with, "ddprun/8812.0/1/"; open_ledger_etcd() finds it.
    LedgerEtcd(boost::asio::io_context& loop, std::unique_ptr<EtcdClient> client,
               std::string series, std::uint64_t mark);
    ~LedgerEtcd() override;

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Finds or begins the job's series; `opened` is called on the loop. Errors: unavailable (no
// endpoint answers; the sentence has each one's reason), malformed (an entry is no JSON of ours:
// the sentence names its key), not_found (owner.mark is given, and no series bears it).
void open_ledger_etcd(boost::asio::io_context& loop, LedgerPlace place, LedgerOwner owner, Log log,
                      LedgerOpened opened);

// The claim of the newest series, whoever has begun it: for one who only looks whether etcd is
// reached from here. Blocks, with a loop of its own. Errors: unavailable and malformed, as above;
// not_found (there is no series).
Result<LedgerClaim> read_claim(const LedgerPlace& place);

}  // namespace ddprun::rendezvous
