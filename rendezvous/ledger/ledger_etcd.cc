// Passes the calls of a ledger to its series of keys in etcd (etcd_series.h), one after the other.
#include "rendezvous/ledger/ledger_etcd.h"

#include <boost/asio/co_spawn.hpp>
#include <deque>
#include <optional>
#include <utility>

#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger/etcd_series.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

// An exception in a coroutine here means that memory is exhausted. It ends the process.
void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
}

const LedgerSeal& seal_of(const LedgerAccessPointer& access) {
    static const LedgerSeal none;
    return access ? access->seal : none;
}

}  // namespace

// The calls of one ledger. They are carried out one after the other, so that answers come in the
// order of the calls.
struct LedgerEtcd::State : std::enable_shared_from_this<LedgerEtcd::State> {
    struct Call {
        EntryNumber from;                  // for a read
        ReadDone read_done;                // null for a create
        std::optional<LedgerEntry> entry;  // for a create
        CreateDone create_done;
        LookDone look_done;  // for a look, from `from` on
    };

    State(asio::io_context& l, std::unique_ptr<EtcdClient> c, LedgerAccessPointer a, EtcdSeries s)
        : loop(l), client(std::move(c)), access(std::move(a)), series(std::move(s)) {}

    void post(Call call);
    static asio::awaitable<void> work(std::shared_ptr<State> self);
    static asio::awaitable<void> answer(std::shared_ptr<State> self, Call call);

    asio::io_context& loop;
    std::unique_ptr<EtcdClient> client;  // null: the ledger is destroyed, nobody is called any more
    const LedgerAccessPointer access;
    const EtcdSeries series;
    std::deque<Call> waiting;
    bool working = false;
};

void LedgerEtcd::State::post(Call call) {
    waiting.push_back(std::move(call));
    if (!std::exchange(working, true)) asio::co_spawn(loop, work(shared_from_this()), rethrow);
}

asio::awaitable<void> LedgerEtcd::State::work(std::shared_ptr<State> self) {
    while (self->client && !self->waiting.empty()) {
        Call call = std::move(self->waiting.front());
        self->waiting.pop_front();
        co_await answer(self, std::move(call));
    }
    self->working = false;
}

// The ledger may be destroyed during a co_await, so `client` is looked at after each.
asio::awaitable<void> LedgerEtcd::State::answer(std::shared_ptr<State> self, Call call) {
    if (call.entry) {
        auto created = co_await create_in_series(*self->client, seal_of(self->access), self->series,
                                                 *call.entry);
        if (self->client) call.create_done(std::move(created));
        co_return;
    }
    // etcd answers each read from its newest state (linearizable), so a look is one, too.
    auto entries =
        co_await read_series(*self->client, seal_of(self->access), self->series, call.from);
    if (!self->client) co_return;
    if (call.look_done) {
        call.look_done(newest_requeue(entries));
        co_return;
    }
    if (entries.fault)
        call.read_done(*entries.fault);
    else
        call.read_done(std::move(entries.whole));
}

LedgerEtcd::LedgerEtcd(asio::io_context& loop, std::unique_ptr<EtcdClient> client,
                       LedgerAccessPointer access, std::string series, std::uint64_t mark,
                       bool follows_end)
    : state_(std::make_shared<State>(loop, std::move(client), std::move(access),
                                     EtcdSeries{std::move(series), mark, follows_end})) {}

LedgerEtcd::~LedgerEtcd() { state_->client.reset(); }

void LedgerEtcd::read(EntryNumber from, ReadDone done) {
    state_->post({from, std::move(done), std::nullopt, nullptr, nullptr});
}

void LedgerEtcd::create(LedgerEntry entry, CreateDone done) {
    state_->post({{}, nullptr, std::move(entry), std::move(done), nullptr});
}

void LedgerEtcd::look(EntryNumber from, LookDone done) {
    state_->post({from, nullptr, std::nullopt, nullptr, std::move(done)});
}

std::string LedgerEtcd::name() const {
    return state_->client->name() + " (" + state_->series.prefix + ")";
}

std::uint64_t LedgerEtcd::mark() const { return state_->series.mark; }
bool LedgerEtcd::follows_end() const { return state_->series.follows_end; }

namespace {

// The parameters are shared pointers and copies: the coroutine outlives its caller.
asio::awaitable<void> open_here(asio::io_context& loop, std::shared_ptr<const LedgerPlace> place,
                                LedgerAccessPointer access,
                                std::shared_ptr<const LedgerOwner> owner, Log log,
                                LedgerOpened opened) {
    auto client = std::make_unique<EtcdClient>(loop, *place, access);
    Result<EtcdSeries> series = Error();
    if (owner->mark)
        series = co_await find_series(*client, seal_of(access), *place, *owner);
    else
        series = co_await begin_series(*client, seal_of(access), *place, *owner, log);
    if (!series) {
        opened(series.error());
        co_return;
    }
    std::unique_ptr<Ledger> ledger = std::make_unique<LedgerEtcd>(
        loop, std::move(client), access, series->prefix, series->mark, series->follows_end);
    opened(std::move(ledger));
}

}  // namespace

void open_ledger_etcd(asio::io_context& loop, LedgerPlace place, LedgerAccessPointer access,
                      LedgerOwner owner, Log log, LedgerOpened opened) {
    asio::co_spawn(loop,
                   open_here(loop, std::make_shared<LedgerPlace>(std::move(place)),
                             std::move(access), std::make_shared<LedgerOwner>(std::move(owner)),
                             std::move(log), std::move(opened)),
                   rethrow);
}

namespace {

asio::awaitable<void> read_claim_here(asio::io_context& loop, const LedgerPlace& place,
                                      LedgerAccessPointer access, Result<LedgerClaim>& newest) {
    EtcdClient client(loop, place, access);
    newest = co_await newest_claim(client, seal_of(access), place);
}

}  // namespace

Result<LedgerClaim> read_etcd_claim(const LedgerPlace& place, LedgerAccessPointer access) {
    asio::io_context loop;
    Result<LedgerClaim> newest = Error();
    asio::co_spawn(loop, read_claim_here(loop, place, std::move(access), newest), rethrow);
    loop.run();
    return newest;
}

}  // namespace ddprun::rendezvous
