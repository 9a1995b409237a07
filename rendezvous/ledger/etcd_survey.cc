// Reads the names and entries of ledgers in etcd (etcd_survey.h).
#include "rendezvous/ledger/etcd_survey.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>

#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger/etcd_series.h"

namespace ddprun::rendezvous {
namespace {

namespace asio = boost::asio;

const std::string kRoot = "ddprun/", kBehindRoot = "ddprun0";  // '0' follows '/'

void rethrow_failure(const std::exception_ptr& failed) {
    if (failed) std::rethrow_exception(failed);
}

asio::awaitable<void> read_names(asio::io_context& loop, const LedgerPlace& place,
                                 LedgerAccessPointer access,
                                 Result<std::vector<std::string>>& names) {
    EtcdClient client(loop, place, std::move(access));
    const auto found = co_await client.range(kRoot, kBehindRoot);
    if (!found) {
        names = found.error();
        co_return;
    }
    std::vector<std::string> all;
    for (const auto& [key, value] : *found) {
        const std::string name =
            key.substr(kRoot.size(), key.find('/', kRoot.size()) - kRoot.size());
        if (all.empty() || all.back() != name) all.push_back(name);
    }
    names = std::move(all);
}

asio::awaitable<void> read_one(asio::io_context& loop, const LedgerPlace& place,
                               LedgerAccessPointer access, Result<EtcdLedger>& ledger) {
    const LedgerSeal seal = access ? access->seal : LedgerSeal();
    EtcdClient client(loop, place, access);
    const auto claim = co_await newest_claim(client, seal, place);
    if (!claim) {
        ledger = claim.error();
        co_return;
    }
    const LedgerOwner owner{claim->command_digest, 0, claim->mark};
    const auto series = co_await find_series(client, seal, place, owner);
    if (!series) {
        ledger = series.error();
        co_return;
    }
    EtcdEntries entries = co_await read_series(client, seal, *series, EntryNumber{0});
    if (entries.whole.empty() && entries.fault && entries.fault->code() != ErrorCode::malformed) {
        ledger = *entries.fault;
        co_return;
    }
    ledger = EtcdLedger{series->mark, std::move(entries.whole), std::move(entries.fault)};
}

}  // namespace

Result<std::vector<std::string>> names_in_etcd(const LedgerPlace& place,
                                               LedgerAccessPointer access) {
    asio::io_context loop;
    Result<std::vector<std::string>> names = Error();
    asio::co_spawn(loop, read_names(loop, place, std::move(access), names), rethrow_failure);
    loop.run();
    return names;
}

Result<EtcdLedger> read_etcd_ledger(LedgerPlace place, LedgerAccessPointer access,
                                    const std::string& name) {
    place.path = kRoot + name;
    asio::io_context loop;
    Result<EtcdLedger> ledger = Error();
    asio::co_spawn(loop, read_one(loop, place, std::move(access), ledger), rethrow_failure);
    loop.run();
    return ledger;
}

}  // namespace ddprun::rendezvous
