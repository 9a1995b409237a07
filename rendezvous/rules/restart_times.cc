// Adds up the phases of restarts from the marks of all nodes (restart_times.h).
#include "rendezvous/rules/restart_times.h"

#include <algorithm>
#include <string_view>

namespace ddprun::rendezvous {
namespace {

constexpr std::size_t index(RestartPhase phase) { return static_cast<std::size_t>(phase); }

// For store contact and progress the first worker counts: the job moves again. In all other phases
// the job waits for the last node.
constexpr bool first_counts(RestartPhase phase) {
    return phase == RestartPhase::contact || phase == RestartPhase::progress;
}

// What happens in a phase, for people who do not know the phases. From the workers' start to the
// first progress it is the program that is waited for.
std::string_view plain_words(RestartPhase phase, const RestartTotals& totals) {
    const int suspended = totals.causes[static_cast<std::size_t>(RestartCause::suspended)];
    switch (phase) {
        case RestartPhase::detected:
        case RestartPhase::told:
            return suspended == 0                 ? "noticing the failure"
                   : suspended == totals.restarts ? "being suspended"
                                                  : "being suspended or noticing failures";
        case RestartPhase::stopped:
        case RestartPhase::gone:
            return "stopping the workers";
        case RestartPhase::met:
            return "waiting for the nodes";
        case RestartPhase::started:
            return "starting the workers";
        case RestartPhase::contact:
        case RestartPhase::progress:
            break;
    }
    return "starting the program";
}

void add(RestartTotals& totals, const RestartTimes& times, RestartPhase from, RestartPhase to,
         Generation generation) {
    for (std::size_t i = index(from); i <= index(to); ++i) {
        totals.took[i] += times[i].took;
        if (times[i].took <= totals.longest.took) continue;
        totals.longest = times[i];
        totals.longest_phase = static_cast<RestartPhase>(i);
        totals.longest_of = generation;
    }
}

}  // namespace

void RestartWatch::began(Generation generation, Time made, const RestartTotals& totals) {
    generation_ = generation;
    made_ = made;
    failed_ = known_ = kNever;
    totals_ = totals;
    heard_.clear();
}

void RestartWatch::ended(Time since, Time now) {
    if (failed_ != kNever) return;
    failed_ = std::min(since, now);
    known_ = now;
}

void RestartWatch::heard(const NodeId& node, const Marks& marks, Time now) {
    if (marks.generation != generation_ || generation_ == kNoGeneration) return;
    auto [it, is_new] = heard_.try_emplace(node);
    if (is_new) it->second.fill(kNever);
    for (const Mark& mark : marks.passed) {
        Time& at = it->second[index(mark.phase)];
        at = std::min(at, now - mark.ago);
    }
}

RestartWatch::Moment RestartWatch::moment(RestartPhase phase) const {
    Moment found;
    for (const auto& [node, times] : heard_) {
        const Time at = times[index(phase)];
        if (at == kNever) continue;
        const bool counts = first_counts(phase) ? at < found.at : at > found.at;
        // Of two at the same moment always the same one, whatever their order here.
        if (found.at == kNever || counts || (at == found.at && node.name < found.node))
            found = {at, node.name};
    }
    return found;
}

// Lays the phases end to end, from `begin` to `end` at the latest. Clamping each moment keeps a
// late or early mark from making a phase negative, so the sum stays exact. Returns where the last
// phase ended.
Time RestartWatch::chain(RestartTimes& times, RestartPhase from, RestartPhase to, Time begin,
                         Time end) const {
    for (std::size_t i = index(from); i <= index(to); ++i) {
        const Moment passed = moment(static_cast<RestartPhase>(i));
        const Time at = passed.at == kNever ? begin : std::min(std::max(passed.at, begin), end);
        times[i].took = at - begin;
        if (at > begin) times[i].node = passed.node;
        begin = at;
    }
    return begin;
}

// If another leader saw the failure, this one knows only when nodes stopped; the earliest counts.
Time RestartWatch::over_at(Time now) const {
    Time failed = failed_ == kNever ? now : failed_;
    for (const auto& [node, times] : heard_)
        failed = std::min(failed, times[index(RestartPhase::told)]);
    return failed;
}

std::optional<RestartPhase> RestartWatch::reached() const {
    using enum RestartPhase;
    for (const RestartPhase phase : {progress, contact, started})
        if (moment(phase).at != kNever) return phase;
    return std::nullopt;
}

RestartRecord RestartWatch::record(Time now, std::optional<RestartCause> restart) const {
    using enum RestartPhase;
    RestartRecord record{{}, totals_};
    if (generation_ == kNoGeneration) return record;
    const Time failed = over_at(now);

    const Time made = made_ != kNever ? made_ : moment(started).at;
    if (made != kNever && made < failed) chain(record.times, started, progress, made, failed);
    // The job's own start is no restart.
    if (generation_ > Generation{0})
        add(record.totals, record.times, started, progress, generation_);
    if (!restart) return record;

    const Time known = known_ == kNever ? now : std::max(known_, failed);
    record.times[index(detected)].took = known - failed;
    const Time all_gone = chain(record.times, told, gone, known, now);
    record.times[index(met)].took = now - all_gone;
    ++record.totals.restarts;
    ++record.totals.causes[static_cast<std::size_t>(*restart)];
    add(record.totals, record.times, detected, met, Generation{generation_.value + 1});
    return record;
}

std::string summary_of(const RestartTotals& totals) {
    if (totals.restarts == 0) return {};
    std::map<std::string_view, Duration> in;
    Duration lost{};
    for (std::size_t i = 0; i < kRestartPhases; ++i) {
        in[plain_words(static_cast<RestartPhase>(i), totals)] += totals.took[i];
        lost += totals.took[i];
    }
    const auto most = std::ranges::max_element(
        in, [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string text = std::to_string(totals.restarts) +
                       (totals.restarts == 1 ? " restart, " : " restarts, ") + to_text(lost) +
                       " lost";
    if (lost <= Duration{}) return text;
    if (most->second * 10 >= lost * 9) return text += ", nearly all in " + std::string(most->first);
    if (most->second * 2 >= lost) return text += ", most of it in " + std::string(most->first);
    return text += ", the longest part in " + std::string(most->first);
}

std::vector<std::string> phases_of(const RestartTotals& totals) {
    if (totals.restarts == 0) return {};
    std::string parts;
    for (std::size_t i = 0; i < kRestartPhases; ++i)
        parts += (i == 0 ? "" : ", ") + to_text(totals.took[i]) + " " +
                 to_string(static_cast<RestartPhase>(i));
    std::vector<std::string> lines{"lost in restarts: " + parts};
    // No phase took any time that could be measured.
    if (totals.longest_of == kNoGeneration) return lines;
    lines.push_back("longest: generation " + std::to_string(totals.longest_of.value) + ", " +
                    to_text(totals.longest.took) + " in " + to_string(totals.longest_phase) +
                    (totals.longest.node.empty() ? "" : " (" + totals.longest.node + ")"));
    return lines;
}

}  // namespace ddprun::rendezvous
