// Stands in for the ledger in etcd where ddprun is built without it (DDPRUN_ETCD=OFF). The options
// for it are refused before.
#include "rendezvous/ledger/etcd_files.h"
#include "rendezvous/ledger/etcd_survey.h"
#include "rendezvous/ledger/ledger_etcd.h"

namespace ddprun::rendezvous {
namespace {

Error built_without_etcd() {
    return {ErrorCode::unavailable, "this program was built without etcd; choose another ledger"};
}

}  // namespace

Result<LedgerAccessPointer> read_ledger_access(const EtcdFiles&, const LedgerPlace& place,
                                               std::string_view) {
    if (is_in_etcd(place)) return built_without_etcd();
    return LedgerAccessPointer();
}

void open_ledger_etcd(boost::asio::io_context&, LedgerPlace, LedgerAccessPointer, LedgerOwner, Log,
                      LedgerOpened opened) {
    opened(built_without_etcd());
}

Result<LedgerClaim> read_etcd_claim(const LedgerPlace&, LedgerAccessPointer) {
    return built_without_etcd();
}

Result<std::vector<std::string>> names_in_etcd(const LedgerPlace&, LedgerAccessPointer) {
    return built_without_etcd();
}

Result<EtcdLedger> read_etcd_ledger(LedgerPlace, LedgerAccessPointer, const std::string&) {
    return built_without_etcd();
}

}  // namespace ddprun::rendezvous
