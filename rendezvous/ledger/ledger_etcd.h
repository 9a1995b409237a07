// A ledger as a series of keys in etcd (etcd_series.h): the same JSON as in a folder, in compact
// form.
//
// A transaction creates a key if it is absent. Nothing is ever overwritten or moved, so a name has
// numbered series: the job uses the first one that is neither finished nor another command's. A
// finished job leaves its series behind (`etcdctl del --prefix ddprun/NAME/` removes them).
//
// Where the nodes have a --secret-file, each value is sealed with it (ledger_seal.h). A value
// without a seal, or with a wrong one, is refused by the name of its key, and so is a sealed one
// where there is no secret.
//
// An entry must fit into one request of etcd (--max-request-bytes, 1.5 MiB by default).
//
// Thread: the loop's. Nothing here blocks, but for read_etcd_claim(). An etcd that is silent or
// gone causes `failed` or unavailable after 2 s for each endpoint; the caller asks again.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "rendezvous/ledger/ledger.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_claim.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

class EtcdClient;

class LedgerEtcd final : public Ledger {
  public:
    // `series` is the prefix of the keys, "ddprun/8812.0/1/"; open_ledger_etcd() finds it. `access`
    // may be null.
    LedgerEtcd(boost::asio::io_context& loop, std::unique_ptr<EtcdClient> client,
               LedgerAccessPointer access, std::string series, std::uint64_t mark,
               bool follows_end = false);
    ~LedgerEtcd() override;

    void read(EntryNumber from, ReadDone done) override;
    void create(LedgerEntry entry, CreateDone done) override;
    void look(EntryNumber from, LookDone done) override;
    std::string name() const override;
    std::uint64_t mark() const override;
    bool follows_end() const override;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

// Finds or begins the job's series. `opened` is called on the loop. Possible errors: unavailable
// (no endpoint answers; the sentence has each one's reason), malformed (an entry is not our JSON or
// bears no seal of ours; the sentence names its key), not_found (owner.mark is given, and no series
// contains it).
void open_ledger_etcd(boost::asio::io_context& loop, LedgerPlace place, LedgerAccessPointer access,
                      LedgerOwner owner, Log log, LedgerOpened opened);

// The claim of the newest series, whoever began it: to find out whether this host reaches etcd.
// Blocks, with a loop of its own. Possible errors: unavailable and malformed, as above; not_found
// (there is no series).
Result<LedgerClaim> read_etcd_claim(const LedgerPlace& place, LedgerAccessPointer access);

}  // namespace ddprun::rendezvous
