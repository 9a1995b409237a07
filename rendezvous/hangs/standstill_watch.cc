// When a standstill is told (standstill_watch.h).
#include "rendezvous/hangs/standstill_watch.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "rendezvous/rules/hang.h"

namespace ddprun::rendezvous {
namespace {

// Until when a node must have answered where its workers are.
constexpr auto kAnswered = std::chrono::seconds{10};
constexpr int kToldAgain = 4;
// So long after its end the workers that have died of it are known.
constexpr auto kGoesOn = std::chrono::seconds{5};

// The innermost own function of "in evaluate (eval.py:88), called by main (train.py:20)", which is
// the first line about a process of Python.
std::string innermost(const std::vector<std::string>& stack) {
    constexpr std::string_view kIn = "in ";
    if (stack.empty() || !stack.front().starts_with(kIn)) return {};
    const std::string& line = stack.front();
    return line.substr(kIn.size(), line.find(", called by ") - kIn.size());
}

// "GPU 3 at 100 %", which is the first line or follows it; empty: not known.
std::string gpu_in(const std::vector<std::string>& stack) {
    for (std::size_t i = 0; i < std::min<std::size_t>(2, stack.size()); ++i)
        if (stack[i].starts_with("GPU ")) return stack[i];
    return {};
}

}  // namespace

void StandstillWatch::forget() {
    const Duration longest = longest_;
    *this = StandstillWatch();
    longest_ = longest;
}

bool StandstillWatch::looks() {
    if (events_left_out_ == 0) return true;
    --events_left_out_;
    return false;
}

std::optional<std::string> StandstillWatch::judged(Time now,
                                                   const std::optional<Standstill>& found) {
    const std::optional<Standstill> before = std::exchange(found_, found);
    const bool nobody_moved = before && found && found->lasted >= before->lasted;
    // It may be seen in another way, as a rank that saves computes now and waits for the disk then.
    // That is not worth another line.
    if (!nobody_moved || !found->same_as(*before)) asks_until_.reset();
    if (!before || nobody_moved) return settle(now);
    const bool told = std::exchange(told_, Duration{}) != Duration{};
    const Over last = over_.value_or(Over{});
    // The short ones of each step teach nothing.
    if (told || last.told || before->lasted > std::max(longest_, last.lasted))
        over_ = Over{now, std::max(before->lasted, last.lasted), told || last.told};
    return settle(now);
}

std::optional<std::string> StandstillWatch::settle(Time now) {
    if (!over_ || now < over_->at + kGoesOn) return std::nullopt;
    longest_ = std::max(longest_, over_->lasted);
    // They moved for a moment only: the line is to be taken back later.
    if (over_->told && found_ && found_->lasted >= kGoesOn) return std::nullopt;
    const Over over = *std::exchange(over_, std::nullopt);
    if (!over.told) return std::nullopt;
    return "the job goes on; all its ranks had stood still for " + to_text(over.lasted);
}

bool StandstillWatch::is_due(bool hangs) const {
    if (!found_ || asks()) return false;
    const Duration told = told_ == Duration{} ? told_after(*found_) : kToldAgain * told_;
    return found_->lasted >= told || hangs;
}

bool StandstillWatch::is_hung(const Limits& limits) const {
    return found_ && rendezvous::is_hang(*found_, limits, longest_);
}

std::vector<int> StandstillWatch::ask(Time now) {
    asks_until_ = now + kAnswered;
    asked_about_ = *found_;
    seen_.clear();
    recorded_.clear();
    return worth_asking(*found_);
}

void StandstillWatch::answered(const NodeId& node, const Report& report) {
    if (!asks() || unanswered_.erase(node) == 0) return;
    for (const WorkerOutcome& outcome : report.outcomes) seen_[outcome.rank] = outcome;
    recorded_.insert(recorded_.end(), report.recorded.begin(), report.recorded.end());
}

bool StandstillWatch::is_complete(Time now) const {
    return asks() && (unanswered_.empty() || now >= *asks_until_);
}

std::optional<std::string> StandstillWatch::take(int world_size, const RankName& name) {
    asks_until_.reset();
    if (!found_ || !found_->same_as(asked_about_)) return std::nullopt;
    told_ = found_->lasted;
    const auto find = [&](int rank) {
        const auto seen = seen_.find(rank);
        if (seen == seen_.end()) return Whereabouts{name(rank)};
        return Whereabouts{name(rank), innermost(seen->second.stack), gpu_in(seen->second.stack)};
    };
    line_ = standstill_sentence(*found_, find) + nccl_sentence(seen_) +
            recorded_sentence(recorded_, world_size, name);
    return line_;
}

WorkerOutcome StandstillWatch::outcome(const std::string& sentence, const RankName& name) const {
    const std::vector<int> ranks = worth_asking(asked_about_);
    WorkerOutcome whole;
    whole.rank = ranks.front();
    whole.hung = true;
    whole.sentence = sentence;
    for (const int rank : ranks) {
        const auto seen = seen_.find(rank);
        const WorkerOutcome* answer = seen == seen_.end() ? nullptr : &seen->second;
        add_stack(whole, name(rank), answer);
        if (!answer || rank != whole.rank) continue;
        whole.pid = answer->pid;
        whole.local_rank = answer->local_rank;
        whole.tail = answer->tail;
    }
    return whole;
}

}  // namespace ddprun::rendezvous
