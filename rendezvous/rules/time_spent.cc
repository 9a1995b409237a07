// Shares out the time between two ledger entries, and puts the sums into words (time_spent.h).
#include "rendezvous/rules/time_spent.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/count_text.h"

namespace ddprun::rendezvous {
namespace {

Duration took(const LedgerEntry& entry, RestartPhase phase) {
    return entry.restart.times[static_cast<std::size_t>(phase)].took;
}

// Takes `wanted` from what is left. The clocks of two hosts differ a little, so no part gets more
// than there is.
Duration take(Duration& left, Duration wanted) {
    const Duration taken = std::clamp(wanted, Duration{}, left);
    left -= taken;
    return taken;
}

bool has_succeeded(const LedgerEntry& entry) {
    return entry.end() && entry.end()->verdict == Verdict::succeeded;
}

// Between the entry of a generation and the next one of the same allocation.
void share_out(TimeRecord& record, const LedgerEntry& next, Duration left, const TimeFacts& facts) {
    using enum RestartPhase;
    TimeSpent& spent = record.spent;
    const Duration waited = std::min(took(next, met), facts.over);
    spent.restarting += take(left, facts.over - waited);
    spent.waiting += take(left, waited);
    spent.importing += take(left, took(next, started) + took(next, contact));
    spent.setting_up += take(left, took(next, progress));
    // A program that reports no progress trains from when its workers have met, if they ever do.
    const bool trained = record.progresses ? facts.reached == progress
                         : next.met        ? facts.reached >= contact
                                           : true;
    if (!facts.reached) {
        spent.restarting += left;
    } else if (!trained) {
        (facts.reached == contact ? spent.setting_up : spent.importing) += left;
    } else {
        if (record.saves && !has_succeeded(next)) spent.lost += take(left, facts.unsaved);
        spent.saving += take(left, facts.saving);
        spent.training += left;
    }
}

std::string percent_of(Duration part, Duration all) {
    const double share = static_cast<double>(part.count()) / static_cast<double>(all.count());
    return std::to_string(std::lround(100 * share)) + " %";
}

// A second, or a percent.
bool is_worth_telling(Duration part, Duration all) {
    return part >= std::chrono::seconds{1} && 100 * part >= all;
}

// How causes are counted, in the order of RestartCause.
constexpr std::array<const char*, kRestartCauses> kCauseWords = {
    "failed worker", "hang", "lost node", "planned restart", "requeue", "suspension"};

}  // namespace

TimeRecord time_until(const LedgerEntry& next, const LedgerEntry* newest, const TimeFacts& facts) {
    TimeRecord record = newest ? newest->time : TimeRecord{};
    // An older ddprun has recorded nothing: the time counts from here.
    if (record.begun == Duration{}) record.begun = record.at = newest ? facts.now : facts.began;
    if (next.takes_over()) return record;
    Duration between = std::max(facts.now - record.at, Duration{});
    record.at += between;
    // The first progress: the generations before it have not trained.
    const bool progressed = newest && facts.reached == RestartPhase::progress;
    if (!std::exchange(record.progresses, record.progresses || progressed) && progressed)
        record.spent.setting_up += std::exchange(record.spent.training, {});
    // The first snapshot: the generations before it have begun anew, each time.
    if (!std::exchange(record.saves, record.saves || facts.saves) && facts.saves)
        record.spent.lost += std::exchange(record.spent.training, {});
    if (!newest || !(newest->makes_generation() || newest->takes_over()))
        record.spent.waiting += between;
    else if (newest->requeue != next.requeue)
        record.spent.unknown += between;
    else
        share_out(record, next, between, facts);
    return record;
}

std::vector<TimePart> parts_of(const TimeSpent& spent) {
    return {{"training", "training", spent.training},
            {"lost", "training that no snapshot has kept", spent.lost},
            {"saving", "saving snapshots", spent.saving},
            {"importing", "starting workers and importing", spent.importing},
            {"setting_up", "setting up until the first progress", spent.setting_up},
            {"restarting", "restarting", spent.restarting},
            {"waiting", "waiting for nodes or in the queue", spent.waiting},
            {"unknown", "in an allocation that was lost", spent.unknown}};
}

std::vector<std::string> time_lines(const LedgerEntry& last) {
    const TimeSpent& spent = last.time.spent;
    const Duration all = spent.all();
    if (all <= Duration{}) return {};
    std::vector<std::string> lines{
        "of " + to_text(all) + ", " + to_text(spent.training) + " were training" +
        (last.time.saves ? " that is kept" : "") + " (" + percent_of(spent.training, all) + ")" +
        (last.time.saves ? ""
                         : "; no snapshot was reported, so nobody knows how much of it is kept")};
    std::string rest;
    for (const TimePart& part : parts_of(spent))
        if (is_worth_telling(part.took, all) && part.name != std::string_view("training"))
            rest += (rest.empty() ? "the rest: " : ", ") + to_text(part.took) + " " + part.words;
    if (!rest.empty()) lines.push_back(rest);
    std::string causes;
    for (std::size_t i = 0; i < kRestartCauses; ++i)
        if (const int count = last.restart.totals.causes[i]; count > 0)
            causes +=
                (causes.empty() ? "restarts by cause: " : ", ") + count_text(count, kCauseWords[i]);
    if (!causes.empty()) lines.push_back(causes);
    return lines;
}

}  // namespace ddprun::rendezvous
