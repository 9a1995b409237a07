// Tries again to pass on signals.
#include "agent/workers/passed_signals.h"

#include <algorithm>

#include "agent/death/exit_report.h"

namespace ddprun::agent {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds{250};
// A program that has no handler after minutes will hardly get one.
constexpr Duration kLongestPause = std::chrono::seconds{10};
constexpr std::size_t kNamed = 3;

}  // namespace

void PassedSignals::spared(int worker, int signal) {
    const bool waits = !open_.empty();
    open_.emplace(worker, signal);
    pause_ = kFirstPause;
    if (!waits) try_later();
}

void PassedSignals::forget() {
    open_.clear();
    timer_.cancel();
}

void PassedSignals::try_later() {
    timer_.expires_after(pause_);
    pause_ = std::min(2 * pause_, kLongestPause);
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || !alive.lock()) return;
            std::erase_if(open_,
                          [this](const auto& each) { return pass_on_(each.first, each.second); });
            if (!open_.empty()) try_later();
        });
}

std::string spared_sentence(int signal, const std::vector<int>& ranks) {
    std::string who = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i)
        who += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (ranks.size() > kNamed) who += " and " + std::to_string(ranks.size() - kNamed) + " more";
    return signal_name(signal) + " was kept from " + who +
           ", which would die of it; a rank gets it as soon as it has a handler for it";
}

}  // namespace ddprun::agent
