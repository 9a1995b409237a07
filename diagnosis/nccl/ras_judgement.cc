// Goes over all communicators, then says what it found in the largest one.
#include "diagnosis/nccl/ras_judgement.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace ddprun::agent {
namespace {

using Kind = RasJudgement::Kind;
using Process = RasJudgement::Process;

// Ranks that a sentence names.
constexpr std::size_t kNamed = 4;

Process process_of(const RasRank& rank) { return {rank.host, rank.pid}; }

std::uint64_t most_of(const RasCounts& counts) {
    return std::ranges::max(counts.sides, {}, &RasSide::count).count;
}

// What is told of each process, over all communicators.
struct Told {
    std::map<Process, std::string> behind, ahead, lost;  // the operation, or what is wrong
    // Of the communicator of all processes, the side without names: behind, or ahead.
    bool unnamed_behind = false, unnamed_ahead = false;
};

bool is_world(const RasAnswer& answer, const RasCommunicator& communicator) {
    return communicator.size > 0 && communicator.size >= answer.processes;
}

void add(Told& told, const RasAnswer& answer, const RasCommunicator& communicator) {
    for (const RasFault& fault : communicator.faults)
        if (fault.who.pid != 0) told.lost.emplace(process_of(fault.who), fault.error);
    for (const RasCounts& counts : communicator.counts) {
        if (counts.sides.size() < 2) continue;
        const std::uint64_t most = most_of(counts);
        const std::uint64_t least = std::ranges::min(counts.sides, {}, &RasSide::count).count;
        for (const RasSide& side : counts.sides) {
            for (const RasRank& rank : side.ranks) {
                if (rank.pid == 0) continue;
                if (side.count < most) told.behind.emplace(process_of(rank), counts.operation);
                if (side.count > least) told.ahead.emplace(process_of(rank), counts.operation);
            }
            if (!side.ranks.empty() || !is_world(answer, communicator)) continue;
            told.unnamed_behind |= side.count < most;
            told.unnamed_ahead |= side.count > least;
        }
    }
}

std::string plural(const std::string& text, std::size_t count) {
    return text + (count == 1 ? "" : "s");
}

// "rank 12"; of a part of the job "rank 2 of the 4 of communicator 5d1c (process 71 on 10.0.0.2)".
std::string name_of(const RasRank& rank, const RasCommunicator& communicator, bool world) {
    const std::string process =
        rank.pid == 0 ? "" : "process " + std::to_string(rank.pid) + " on " + rank.host;
    if (rank.rank < 0) return process;
    std::string name = "rank " + std::to_string(rank.rank);
    if (world) return name;
    name +=
        " of the " + std::to_string(communicator.size) + " of communicator " + communicator.hash;
    return process.empty() ? name : name + " (" + process + ")";
}

// The most of them are only counted.
std::string names_of(const RasSide& side, const RasCommunicator& communicator, bool world,
                     bool most) {
    const auto count = static_cast<std::size_t>(side.size);
    if (side.ranks.size() != count || count > kNamed || (most && count > 1))
        return std::to_string(count) + plural(" rank", count);
    std::string names;
    for (const RasRank& rank : side.ranks)
        names += (names.empty() ? "" : " and ") + name_of(rank, communicator, world);
    return names;
}

// "rank 12 has launched 640 AllGather operations, and 31 ranks 641"
std::string sentence_of(const RasCounts& counts, const RasCommunicator& communicator, bool world) {
    std::vector<RasSide> sides = counts.sides;
    std::ranges::stable_sort(sides, {}, &RasSide::size);
    std::string text;
    for (std::size_t i = 0; i < std::min(sides.size(), kNamed); ++i) {
        const RasSide& side = sides[i];
        text +=
            (i == 0 ? "" : ", and ") + names_of(side, communicator, world, i + 1 == sides.size());
        if (i == 0) text += side.size == 1 ? " has launched" : " have launched";
        text += " " + std::to_string(side.count);
        if (i > 0) continue;
        if (!counts.operation.empty()) text += " " + counts.operation;
        text += side.count == 1 ? " operation" : " operations";
    }
    if (sides.size() > kNamed) text += ", and others other numbers";
    return text;
}

std::string sentence_of(const RasFault& fault, const RasCommunicator& communicator, bool world) {
    std::string name = name_of(fault.who, communicator, world);
    if (world && fault.who.pid != 0)
        name += " (process " + std::to_string(fault.who.pid) + " on " + fault.who.host + ")";
    switch (fault.kind) {
        case RasFault::Kind::silent:
            return name + " does not answer";
        case RasFault::Kind::dead:
            return name + " has not answered for a minute";
        case RasFault::Kind::absent:
            return name + " is missing in its communicator";
        case RasFault::Kind::failed:
            return name + " reports: " + fault.error;
    }
    return name;
}

// Those that the sentence is about come first: the larger communicator, then the order of RAS.
std::vector<const RasCommunicator*> largest_first(const RasAnswer& answer) {
    std::vector<const RasCommunicator*> all;
    for (const RasCommunicator& communicator : answer.communicators)
        if (!communicator.ends) all.push_back(&communicator);
    std::ranges::stable_sort(all, std::greater(), &RasCommunicator::size);
    return all;
}

std::string lost_sentence(const RasAnswer& answer) {
    std::string text;
    std::size_t count = 0;
    const auto say = [&](const std::string& one) {
        if (++count <= kNamed) text += (text.empty() ? "" : "; ") + one;
    };
    std::set<Process> said;
    for (const RasCommunicator* communicator : largest_first(answer))
        for (const RasFault& fault : communicator->faults)
            if (fault.who.pid == 0 ? answer.processes_lost.empty()
                                   : said.insert(process_of(fault.who)).second)
                say(sentence_of(fault, *communicator, is_world(answer, *communicator)));
    for (const RasFault& fault : answer.processes_lost)
        if (said.insert(process_of(fault.who)).second)
            say(sentence_of(fault, RasCommunicator(), false));
    if (count > kNamed) text += "; and " + std::to_string(count - kNamed) + " more";
    return text;
}

bool is_about(const RasCounts& counts, const std::map<Process, std::string>& odd) {
    const std::uint64_t most = most_of(counts);
    return odd.empty() || std::ranges::any_of(counts.sides, [&](const RasSide& side) {
               return side.count < most && std::ranges::any_of(side.ranks, [&](const RasRank& r) {
                          return odd.contains(process_of(r));
                      });
           });
}

// Of `differ` all counts of the communicator, else those in which an odd rank is behind.
std::string behind_sentence(const RasAnswer& answer, const RasJudgement& found) {
    for (const RasCommunicator* communicator : largest_first(answer)) {
        std::string text;
        for (const RasCounts& counts : communicator->counts) {
            if (counts.sides.size() < 2) continue;
            if (found.kind == Kind::behind && !is_about(counts, found.odd)) continue;
            const std::string one =
                sentence_of(counts, *communicator, is_world(answer, *communicator));
            text += (text.empty() ? "" : "; ") + one;
            if (found.kind == Kind::behind) break;
        }
        if (!text.empty()) return text;
    }
    return {};
}

// In the communicator with most ranks, the operation that was launched most.
std::string even_sentence(const RasAnswer& answer) {
    for (const RasCommunicator* communicator : largest_first(answer)) {
        if (communicator->counts.empty()) continue;
        const RasCounts& counts = std::ranges::max(communicator->counts, {}, most_of);
        if (counts.sides.size() != 1 || counts.sides.front().count == 0) continue;
        const RasSide& side = counts.sides.front();
        return "no rank is behind, all " + std::to_string(side.size) + " have launched " +
               std::to_string(side.count) + " " + counts.operation +
               (side.count == 1 ? " operation" : " operations") +
               ": if they wait in it, the network or a kernel stands still";
    }
    return {};
}

std::set<Process> named_in(const RasAnswer& answer) {
    std::set<Process> named;
    if (!answer.names_all) return named;
    for (const RasCommunicator& communicator : answer.communicators) {
        for (const RasFault& fault : communicator.faults) named.insert(process_of(fault.who));
        for (const RasCounts& counts : communicator.counts)
            for (const RasSide& side : counts.sides)
                for (const RasRank& rank : side.ranks) named.insert(process_of(rank));
    }
    return named;
}

// Text does not name the many that are ahead in a small communicator. Where some of those that are
// behind in a large one are behind in a small one, too, the others of them wait there.
void narrow(std::map<Process, std::string>& odd, const RasAnswer& answer) {
    for (const RasCommunicator* communicator : largest_first(answer))
        for (const RasCounts& counts : communicator->counts) {
            std::map<Process, std::string> behind;
            for (const RasSide& side : counts.sides)
                for (const RasRank& rank : side.ranks)
                    if (side.count < most_of(counts) && odd.contains(process_of(rank)))
                        behind.emplace(process_of(rank), counts.operation);
            const bool unnamed = std::ranges::any_of(counts.sides, [&](const RasSide& side) {
                return side.ranks.empty() && side.count == most_of(counts);
            });
            if (!behind.empty() && behind.size() < odd.size() && unnamed) odd = std::move(behind);
        }
}

}  // namespace

RasJudgement judge_ras(const RasAnswer& answer) {
    Told told;
    for (const RasCommunicator* communicator : largest_first(answer))
        add(told, answer, *communicator);
    for (const RasFault& fault : answer.processes_lost)
        told.lost.emplace(process_of(fault.who), "");
    RasJudgement found;
    found.named = named_in(answer);
    found.sentence = lost_sentence(answer);
    if (!found.sentence.empty()) {
        found.kind = Kind::lost;
        found.odd = std::move(told.lost);
        if (!found.odd.empty()) found.others = NcclPart::waits;
        return found;
    }
    for (const auto& [process, operation] : told.behind)
        if (!told.ahead.contains(process)) found.odd.emplace(process, operation);
    if (!answer.names_all) narrow(found.odd, answer);
    const bool unnamed_odd = told.unnamed_behind && !told.unnamed_ahead;
    if (!found.odd.empty() || unnamed_odd) {
        found.kind = Kind::behind;
        found.others = unnamed_odd ? NcclPart::is_awaited : NcclPart::waits;
    } else if (!told.behind.empty()) {
        found.kind = Kind::differ;
        found.odd = std::move(told.ahead);
        found.others = NcclPart::waits;
    } else if (told.unnamed_behind) {
        found.kind = Kind::behind;
    } else {
        found.sentence = even_sentence(answer);
        found.kind = found.sentence.empty() ? Kind::nothing : Kind::even;
        return found;
    }
    found.sentence = behind_sentence(answer, found);
    return found;
}

NcclPart RasJudgement::part_of(const Process& process) const {
    if (kind != Kind::differ && odd.contains(process)) return NcclPart::is_awaited;
    if (!named.empty() && !named.contains(process)) return NcclPart::unknown;
    return others;
}

std::string RasJudgement::operation_of(const Process& process) const {
    const auto found = odd.find(process);
    return kind != Kind::differ || found == odd.end() ? std::string() : found->second;
}

}  // namespace ddprun::agent
