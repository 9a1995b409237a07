// Judges a job that stands still, and says what it found.
#include "rendezvous/hangs/standstill.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {
namespace {

using Kind = Standstill::Kind;

constexpr auto kToldAfter = std::chrono::seconds{15};
constexpr int kUsualPauses = 10;
// With --hang-timeout=auto.
constexpr auto kCannotEnd = std::chrono::minutes{1}, kNothingMoves = std::chrono::minutes{5};

bool is(const RankStill& rank, Doing doing) { return rank.doing == doing; }

// Splits the ranks; false when all or none are odd.
bool split(Standstill& found, Kind kind, const std::vector<RankStill>& ranks,
           const std::function<bool(const RankStill&)>& is_odd) {
    found.kind = kind;
    found.odd.clear();
    found.ordinary.clear();
    for (const RankStill& rank : ranks) (is_odd(rank) ? found.odd : found.ordinary).push_back(rank);
    return !found.odd.empty() && !found.ordinary.empty();
}

// The place at which most ranks are; 0: none is known.
std::uint32_t usual_place(const std::vector<RankStill>& ranks) {
    std::map<std::uint32_t, int> counts;
    for (const RankStill& rank : ranks)
        if (rank.place != 0) ++counts[rank.place];
    const auto most =
        std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    return most == counts.end() ? 0 : most->first;
}

// The ranks whose network is lost. A connection has two ends, and the fault may be at either: it is
// at the one that most lost connections have in common. Where nobody can tell, all that send.
bool split_by_network(Standstill& found, const std::vector<RankStill>& ranks) {
    std::map<std::uint32_t, int> counts;
    for (const RankStill& rank : ranks)
        if (rank.lost_from != 0) ++counts[rank.lost_from], ++counts[rank.lost_to];
    if (counts.empty()) return false;
    const auto most = std::ranges::max_element(counts, {}, [](const auto& count) {
                          return count.second;
                      })->second;
    std::vector<std::uint32_t> best;
    for (const auto& [host, count] : counts)
        if (count == most) best.push_back(host);
    const auto at_best = [&](const RankStill& rank) {
        return best.size() == 1 && rank.lost_from == best.front();
    };
    if (split(found, Kind::no_network, ranks, at_best)) return true;
    split(found, Kind::no_network, ranks,
          [](const RankStill& rank) { return rank.lost_from != 0; });
    return true;
}

std::string verb(Doing doing) {
    switch (doing) {
        case Doing::waits:
            return "waits";
        case Doing::in_collective:
            return "waits in a collective";
        case Doing::meets:
            return "waits to meet the others";
        case Doing::computes:
            return "computes";
        case Doing::sleeps:
            return "sleeps";
        case Doing::reads:
            return "reads";
        case Doing::writes:
            return "writes";
        case Doing::waits_for_child:
            return "waits for a process that it has started";
        case Doing::hangs_in_kernel:
            return "hangs in the kernel (D)";
        case Doing::is_stopped:
            return "is stopped by a signal";
        case Doing::has_ended:
            return "has ended";
    }
    return "waits";
}

std::string count_of(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " rank has" : " ranks have");
}

std::string which(const RankStill& rank, const FindWhereabouts& find) {
    const Whereabouts found = find(rank.rank);
    return found.who + ", which " + verb(rank.doing) +
           (found.where.empty() ? "" : " in " + found.where) +
           (found.gpu.empty() ? "" : ", with " + found.gpu);
}

std::string named(const RankStill& rank, const FindWhereabouts& find) {
    return find(rank.rank).who;
}

// "it sleeps", about a rank that has been named.
std::string does(const RankStill& rank, const FindWhereabouts& find) {
    const Whereabouts found = find(rank.rank);
    return verb(rank.doing) + (found.where.empty() ? "" : " in " + found.where) +
           (found.gpu.empty() ? "" : ", with " + found.gpu);
}

using Describe = std::string(const RankStill& rank, const FindWhereabouts& find);

std::string list(const std::vector<RankStill>& odd, const FindWhereabouts& find,
                 Describe* describe = which) {
    std::string text;
    for (std::size_t i = 0; i < std::min(odd.size(), kSlowest); ++i)
        text += (text.empty() ? "" : "; ") + describe(odd[i], find);
    if (odd.size() > kSlowest) text += "; and " + std::to_string(odd.size() - kSlowest) + " more";
    return text;
}

// The call that ends a place: "init_process_group" in "main (FILE:12, init_process_group)".
std::string call_in(const std::string& where) {
    const std::size_t comma = where.rfind(", ");
    if (comma == where.npos || !where.ends_with(")")) return {};
    const std::string call = where.substr(comma + 2, where.size() - comma - 3);
    return call.find_first_of(" (") == call.npos ? call : "";  // "called by main (...)"
}

// Whom the others wait for, until all have come: what these have not called, and what they do.
std::string unmet_sentence(const Standstill& standstill, const FindWhereabouts& find,
                           const std::string& where) {
    const std::string call = call_in(where);
    const bool one = standstill.odd.size() == 1, alone = standstill.ordinary.size() == 1;
    const RankStill& first = standstill.odd.front();
    return (one ? named(first, find) + " has"
                : std::to_string(standstill.odd.size()) + " ranks have") +
           (call.empty() ? " not come yet to where all ranks meet"
                         : " not called " + call + " yet") +
           "; " + std::to_string(standstill.ordinary.size()) +
           (alone ? " rank waits" : " ranks wait") + " for " + (one ? "it" : "them") + ", " +
           to_text(standstill.lasted) + " so far" + (where.empty() ? "" : ", in " + where) + "; " +
           (one ? "it " + does(first, find) : list(standstill.odd, find));
}

std::optional<Standstill> kind_of(const std::vector<RankStill>& ranks, int world_size) {
    if (ranks.empty() || ranks.size() != static_cast<std::size_t>(world_size)) return std::nullopt;
    Standstill found;
    found.lasted = std::ranges::min(ranks, {}, &RankStill::lasted).lasted;
    found.usual = std::ranges::max(ranks, {}, &RankStill::usual).usual;
    const auto inside = [](const RankStill& rank) {
        return is(rank, Doing::in_collective) || is(rank, Doing::meets);
    };
    // Nobody waits for anybody: a program that does something else.
    if (std::ranges::none_of(ranks, inside)) return std::nullopt;
    if (split(found, Kind::stopped, ranks,
              [](const RankStill& rank) { return is(rank, Doing::is_stopped); }))
        return found;
    if (split(found, Kind::in_kernel, ranks,
              [](const RankStill& rank) { return is(rank, Doing::hangs_in_kernel); }))
        return found;
    if (split(found, Kind::never_came, ranks,
              [](const RankStill& rank) { return !is(rank, Doing::meets); })) {
        // Since the first one has come. Before that nobody has waited.
        found.lasted = std::ranges::max(found.ordinary, {}, &RankStill::lasted).lasted;
        return found;
    }
    if (split(found, Kind::waits_for, ranks, [&](const RankStill& rank) { return !inside(rank); }))
        return found;
    if (split_by_network(found, ranks)) return found;
    const std::uint32_t usual = usual_place(ranks);
    if (split(found, Kind::mismatch, ranks,
              [&](const RankStill& rank) { return rank.place != usual && rank.place != 0; }))
        return found;
    // That has found no odd ones.
    found.kind = Kind::all_inside;
    return found;
}

// Some ranks are in a collective in which the others will never be.
bool cannot_end(const Standstill& standstill) {
    return standstill.kind == Kind::mismatch ||
           (standstill.kind == Kind::never_came &&
            std::ranges::all_of(standstill.odd, [](const RankStill& rank) {
                return is(rank, Doing::in_collective);
            }));
}

// Whether a rank outside may still come.
bool may_go_on(const Standstill& standstill) {
    return standstill.kind == Kind::waits_for ||
           (standstill.kind == Kind::never_came && !cannot_end(standstill));
}

bool is_automatic_hang(const Standstill& standstill, const Limits& limits, Duration longest) {
    const Duration lasted = standstill.lasted;
    if (lasted < told_after(standstill)) return false;
    if (cannot_end(standstill)) return lasted >= kCannotEnd;
    if (!may_go_on(standstill)) return lasted >= kNothingMoves;
    return std::min(lasted, standstill.unmoved) >= std::max<Duration>(kNothingMoves, longest) ||
           lasted >= std::max(limits.hang_timeout, 2 * longest);
}

}  // namespace

std::optional<Standstill> judge_standstill(const std::vector<RankStill>& ranks, int world_size) {
    std::optional<Standstill> found = kind_of(ranks, world_size);
    if (found && !found->odd.empty())
        found->unmoved = std::ranges::min(found->odd, {}, &RankStill::unmoved).unmoved;
    return found;
}

Duration told_after(const Standstill& standstill) {
    return std::max<Duration>(kToldAfter, kUsualPauses * standstill.usual);
}

bool is_hang(const Standstill& standstill, const Limits& limits, Duration longest) {
    if (limits.hang_timeout <= Duration{}) return false;
    if (limits.hang_auto) return is_automatic_hang(standstill, limits, longest);
    const Duration timeout = hangs_at(Time{}, limits) - Time{};
    if (!may_go_on(standstill)) return standstill.lasted >= timeout;
    return std::min(standstill.lasted, standstill.unmoved) >= std::max(timeout, longest) ||
           standstill.lasted >= std::max(timeout, 2 * longest);
}

bool Standstill::same_as(const Standstill& other) const {
    return kind == other.kind &&
           std::ranges::equal(odd, other.odd, {}, &RankStill::rank, &RankStill::rank);
}

std::vector<int> worth_asking(const Standstill& standstill) {
    std::vector<int> ranks;
    for (const RankStill& rank : standstill.odd)
        if (ranks.size() < kSlowest) ranks.push_back(rank.rank);
    if (!standstill.ordinary.empty()) ranks.push_back(standstill.ordinary.front().rank);
    return ranks;
}

std::string standstill_sentence(const Standstill& standstill, const FindWhereabouts& find) {
    const std::string lasted = " for " + to_text(standstill.lasted);
    const std::string waiting = count_of(standstill.ordinary.size()) + " waited" + lasted;
    const std::string where =
        standstill.ordinary.empty() ? std::string() : find(standstill.ordinary.front().rank).where;
    const std::string there = where.empty() ? "" : ", in " + where + ",";
    switch (standstill.kind) {
        case Kind::stopped:
        case Kind::in_kernel:
        case Kind::waits_for:
            return waiting + " in a collective" + there + " for " + list(standstill.odd, find);
        case Kind::never_came:
            return unmet_sentence(standstill, find, where);
        case Kind::no_network:
            return "all ranks have waited" + lasted + " in a collective" +
                   (where.empty() ? "" : ", in " + where) + ": the network of " +
                   list(standstill.odd, find, named) + " is lost, since nothing that " +
                   (standstill.odd.size() == 1 ? "it sends" : "they send") + " is acknowledged";
        case Kind::mismatch:
            return "all ranks have waited" + lasted +
                   " in collectives, but not in the same one: " + list(standstill.odd, find) +
                   "; the others" + (where.empty() ? " elsewhere" : " in " + where);
        case Kind::all_inside:
            return "all ranks have waited" + lasted + " in a collective" +
                   (where.empty() ? "" : ", in " + where) +
                   ": they have not made the same calls, or what they sent is lost";
    }
    return waiting;
}

}  // namespace ddprun::rendezvous
