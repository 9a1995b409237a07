// Finds or begins a series of keys in etcd, and reads and creates entries in it, one call after the
// other. Each value is opened and closed with the job's seal here.
#include "rendezvous/ledger/ledger_etcd.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <deque>
#include <optional>
#include <random>
#include <utility>

#include "base/system/random_bytes.h"
#include "rendezvous/ledger/etcd_client.h"
#include "rendezvous/ledger_format/ledger_json.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

namespace {

constexpr const char* kClaim = "ledger";
constexpr const char* kEntries = "entry-";
// The first key after all entries: '.' follows '-'.
constexpr const char* kBehindEntries = "entry.";

// Leading zeros, so that etcd's order of keys is the order of numbers.
std::string entry_key(const std::string& series, EntryNumber number) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%06lld",
                  static_cast<long long>(std::max<std::int64_t>(number.value, 0)));
    return series + kEntries + digits;
}

// Series are numbered from 1 on.
std::string series_of(const LedgerPlace& place, int number) {
    return place.path + "/" + std::to_string(number) + "/";
}

// An exception in a coroutine here means that memory is exhausted. It ends the process.
void rethrow(std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
}

const LedgerSeal& seal_of(const LedgerAccessPointer& access) {
    static const LedgerSeal none;
    return access ? access->seal : none;
}

// A series of keys, with the mark of its claim.
struct Series {
    std::string prefix;
    std::uint64_t mark = 0;
    bool follows_end = false;  // the one before it is finished
};

// What could be read.
struct Entries {
    std::vector<LedgerEntry> whole;  // up to the first that is missing or cannot be read
    std::optional<Error> fault;  // malformed: the first bad entry; any other: why nothing was read
};

Result<LedgerEntry> parse_entry(const LedgerSeal& seal, std::uint64_t mark, const std::string& key,
                                const std::string& stored) {
    const auto text = seal.open(key, mark, stored);
    auto entry = text ? from_json(*text) : Result<LedgerEntry>(text.error());
    if (entry) return entry;
    return Error(entry.error().code(),
                 "ledger entry " + key + " in etcd " + entry.error().sentence());
}

asio::awaitable<Entries> read_entries(EtcdClient& client, const LedgerSeal& seal,
                                      const Series& series, EntryNumber from) {
    const std::string first = entry_key(series.prefix, from),
                      behind = series.prefix + kBehindEntries;
    const auto found = co_await client.range(first, behind);
    Entries entries;
    if (!found) entries.fault = found.error();
    if (!found) co_return entries;
    EntryNumber next{std::max<std::int64_t>(from.value, 0)};
    for (const auto& [key, value] : *found) {
        // A gap ends the ledger: nothing behind it counts.
        if (key != entry_key(series.prefix, next)) break;
        auto entry = parse_entry(seal, series.mark, key, value);
        if (entry && entry->number != next)
            entry = Error(ErrorCode::malformed, "ledger entry " + key + " in etcd has the number " +
                                                    std::to_string(entry->number.value));
        if (!entry) entries.fault = entry.error();
        if (!entry) break;
        entries.whole.push_back(std::move(*entry));
        ++next.value;
    }
    co_return entries;
}

// A newer allocation may have written any kind of entry after its own first one.
Result<int> newest_requeue(const Entries& entries) {
    int newest = -1;
    for (const LedgerEntry& entry : entries.whole) newest = std::max(newest, entry.requeue);
    if (newest < 0 && entries.fault) return *entries.fault;
    return newest;
}

LedgerCreated failed(LedgerEntry entry, std::string sentence) {
    return {LedgerCreated::Outcome::failed, std::move(entry), std::move(sentence)};
}

// etcd returns what stands under the key, ours or another's; created() tells which.
asio::awaitable<LedgerCreated> create_entry(EtcdClient& client, const LedgerSeal& seal,
                                            const Series& series, const LedgerEntry& entry) {
    const std::string key = entry_key(series.prefix, entry.number);
    const std::string wanted = seal.close(key, series.mark, to_json(entry, JsonStyle::compact));
    const auto text = co_await client.create(key, wanted);
    if (!text) co_return failed(entry, text.error().sentence());
    auto stands = parse_entry(seal, series.mark, key, *text);
    if (!stands) co_return failed(entry, stands.error().sentence());
    co_return created(entry, std::move(*stands));
}

Result<LedgerClaim> parse_claim(const LedgerSeal& seal, const std::string& series,
                                const std::string& stored) {
    const std::string key = series + kClaim;
    const auto text = seal.open(key, 0, stored);
    auto claim = text ? claim_from_json(*text) : Result<LedgerClaim>(text.error());
    if (claim) return claim;
    return Error(claim.error().code(),
                 "ledger key " + key + " in etcd " + claim.error().sentence());
}

// g++ 12 may destroy temporaries within a co_await expression twice (aggregates, both arms of ?:).
// So such values get a name here, or are made by a function.
Result<Series> made(const std::string& prefix, std::uint64_t mark, bool follows_end = false) {
    return Series{prefix, mark, follows_end};
}

// What cannot be read may be what a running job relies on, or was written by a stranger.
Error unreadable(const Error& fault) {
    return Error(fault.code(),
                 fault.sentence() + "; delete it if no job needs it, or choose another run id");
}

// Opens the ledger of a job that begins: the first series that is neither finished nor another
// command's. One request creates the claim of a series or reads the one that exists, so two jobs
// cannot both begin it.
asio::awaitable<Result<Series>> begin_series(EtcdClient& client, const LedgerSeal& seal,
                                             const LedgerPlace& place, const LedgerOwner& owner,
                                             const Log& log) {
    bool follows_end = false;
    std::string passed;  // why the previous series was not taken
    for (int number = 1;; ++number) {
        const std::string series = series_of(place, number);
        const std::string key = series + kClaim;
        const std::string ours =
            seal.close(key, 0, to_json(LedgerClaim{owner.command_digest, random_mark()}));
        const auto text = co_await client.create(key, ours);
        if (!text) co_return text.error();
        const auto claim = parse_claim(seal, series, *text);
        if (!claim) co_return unreadable(claim.error());
        const Series here{series, claim->mark};
        const Entries entries = co_await read_entries(client, seal, here, EntryNumber{0});
        // etcd did not answer: this says nothing about the series.
        if (entries.fault && entries.fault->code() != ErrorCode::malformed)
            co_return *entries.fault;
        const auto say = [&](const std::string& sentence) {
            log({Note::Level::info, "ledger " + series + " in etcd " + sentence});
        };
        switch (decide_use(*claim, entries.whole, entries.fault.has_value(), owner)) {
            case LedgerUse::ours:
                if (!entries.whole.empty())
                    say(goes_on(entries.whole.back()));
                else if (!passed.empty())
                    // Said only here, when it is known that this series is the job's.
                    say("begins; " + passed);
                co_return made(series, claim->mark, follows_end);
            case LedgerUse::finished:
                follows_end = entries.whole.front().command_digest == owner.command_digest;
                passed = series + " belongs to a job that has ended";
                break;
            case LedgerUse::foreign:
                follows_end = false;
                passed = series + " belongs to another command with this run id";
                break;
            case LedgerUse::unreadable:
                co_return unreadable(*entries.fault);
        }
    }
}

Error not_found(const LedgerPlace& place) {
    return Error(ErrorCode::not_found,
                 "ledger " + place.path + " in " + to_text(place) +
                     " does not belong to the running job; name the same etcd on all nodes");
}

// The claim of a series; nothing if the series does not exist.
asio::awaitable<Result<std::optional<std::string>>> claim_text(EtcdClient& client,
                                                               const std::string& series) {
    const std::string key = series + kClaim, behind = key + '\0';
    const auto found = co_await client.range(key, behind);
    if (!found) co_return found.error();
    std::optional<std::string> text;
    if (!found->empty()) text = found->front().value;
    co_return text;
}

// The series with the mark that is sought; for kAnyMark the newest one of this command.
asio::awaitable<Result<Series>> find_series(EtcdClient& client, const LedgerSeal& seal,
                                            const LedgerPlace& place, const LedgerOwner& owner) {
    Result<Series> newest = not_found(place);
    for (int number = 1;; ++number) {
        const std::string series = series_of(place, number);
        const auto text = co_await claim_text(client, series);
        if (!text) co_return text.error();
        // Series are begun in order, so a missing one is the end.
        if (!*text) break;
        const auto claim = parse_claim(seal, series, **text);
        if (claim && is_sought(*claim, owner)) newest = made(series, claim->mark);
        // A leader with another secret has perhaps begun it: that says more than "not found".
        if (!claim && !newest) newest = claim.error();
        if (newest && owner.mark != kAnyMark) break;
    }
    co_return newest;
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

    State(asio::io_context& l, std::unique_ptr<EtcdClient> c, LedgerAccessPointer a, Series s)
        : loop(l), client(std::move(c)), access(std::move(a)), series(std::move(s)) {}

    void post(Call call);
    static asio::awaitable<void> work(std::shared_ptr<State> self);
    static asio::awaitable<void> answer(std::shared_ptr<State> self, Call call);

    asio::io_context& loop;
    std::unique_ptr<EtcdClient> client;  // null: the ledger is destroyed, nobody is called any more
    const LedgerAccessPointer access;
    const Series series;
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
        auto created =
            co_await create_entry(*self->client, seal_of(self->access), self->series, *call.entry);
        if (self->client) call.create_done(std::move(created));
        co_return;
    }
    // etcd answers each read from its newest state (linearizable), so a look is one, too.
    auto entries =
        co_await read_entries(*self->client, seal_of(self->access), self->series, call.from);
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
                                     Series{std::move(series), mark, follows_end})) {}

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
    Result<Series> series = Error();
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

// Walks through the series until one is missing; `newest` is that of the last one.
asio::awaitable<void> read_claim_here(asio::io_context& loop, const LedgerPlace& place,
                                      LedgerAccessPointer access, Result<LedgerClaim>& newest) {
    EtcdClient client(loop, place, access);
    for (int number = 1;; ++number) {
        const std::string series = series_of(place, number);
        const auto text = co_await claim_text(client, series);
        if (!text) newest = text.error();
        if (!text || !*text) co_return;
        newest = parse_claim(seal_of(access), series, **text);
    }
}

}  // namespace

Result<LedgerClaim> read_etcd_claim(const LedgerPlace& place, LedgerAccessPointer access) {
    asio::io_context loop;
    Result<LedgerClaim> newest = not_found(place);
    asio::co_spawn(loop, read_claim_here(loop, place, std::move(access), newest), rethrow);
    loop.run();
    return newest;
}

}  // namespace ddprun::rendezvous
