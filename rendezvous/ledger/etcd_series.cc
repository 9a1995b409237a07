// The keys of a series and their values (etcd_series.h).
#include "rendezvous/ledger/etcd_series.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/system/random_bytes.h"
#include "rendezvous/ledger/ledger.h"
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

Result<LedgerEntry> parse_entry(const LedgerSeal& seal, std::uint64_t mark, const std::string& key,
                                const std::string& stored) {
    const auto text = seal.open(key, mark, stored);
    auto entry = text ? from_json(*text) : Result<LedgerEntry>(text.error());
    if (entry) return entry;
    return Error(entry.error().code(),
                 "ledger entry " + key + " in etcd " + entry.error().sentence());
}

LedgerCreated series_failed(LedgerEntry entry, std::string sentence) {
    return {LedgerCreated::Outcome::failed, std::move(entry), std::move(sentence)};
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
Result<EtcdSeries> made(const std::string& prefix, std::uint64_t mark, bool follows_end = false) {
    return EtcdSeries{prefix, mark, follows_end};
}

// What cannot be read may be what a running job relies on, or was written by a stranger.
Error unreadable(const Error& fault) {
    return Error(fault.code(),
                 fault.sentence() + "; delete it if no job needs it, or choose another run id");
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

}  // namespace

asio::awaitable<EtcdEntries> read_series(EtcdClient& client, const LedgerSeal& seal,
                                         const EtcdSeries& series, EntryNumber from) {
    const std::string first = entry_key(series.prefix, from),
                      behind = series.prefix + kBehindEntries;
    const auto found = co_await client.range(first, behind);
    EtcdEntries entries;
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
Result<int> newest_requeue(const EtcdEntries& entries) {
    int newest = -1;
    for (const LedgerEntry& entry : entries.whole) newest = std::max(newest, entry.requeue);
    if (newest < 0 && entries.fault) return *entries.fault;
    return newest;
}

// etcd returns what stands under the key, ours or another's; created() tells which.
asio::awaitable<LedgerCreated> create_in_series(EtcdClient& client, const LedgerSeal& seal,
                                                const EtcdSeries& series,
                                                const LedgerEntry& entry) {
    const std::string key = entry_key(series.prefix, entry.number);
    const std::string wanted = seal.close(key, series.mark, to_json(entry, JsonStyle::compact));
    const auto text = co_await client.create(key, wanted);
    if (!text) co_return series_failed(entry, text.error().sentence());
    auto stands = parse_entry(seal, series.mark, key, *text);
    if (!stands) co_return series_failed(entry, stands.error().sentence());
    co_return created(entry, std::move(*stands));
}

// One request creates the claim of a series or reads the one that exists, so two jobs cannot both
// begin it.
asio::awaitable<Result<EtcdSeries>> begin_series(EtcdClient& client, const LedgerSeal& seal,
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
        const EtcdSeries here{series, claim->mark};
        const EtcdEntries entries = co_await read_series(client, seal, here, EntryNumber{0});
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

asio::awaitable<Result<EtcdSeries>> find_series(EtcdClient& client, const LedgerSeal& seal,
                                                const LedgerPlace& place,
                                                const LedgerOwner& owner) {
    Result<EtcdSeries> newest = not_found(place);
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

asio::awaitable<Result<LedgerClaim>> newest_claim(EtcdClient& client, const LedgerSeal& seal,
                                                  const LedgerPlace& place) {
    Result<LedgerClaim> newest = not_found(place);
    for (int number = 1;; ++number) {
        const std::string series = series_of(place, number);
        const auto text = co_await claim_text(client, series);
        if (!text) co_return text.error();
        if (!*text) co_return newest;
        newest = parse_claim(seal, series, **text);
    }
}

}  // namespace ddprun::rendezvous
