// Tries one smaller set of faults after the other, until no fault can be left out.
#include "tests/sim/shrink.h"

namespace ddprun::sim {
namespace {

// The first violation of a run; empty: there is none.
std::string violation_of(const WorldConfig& config, int& runs) {
    World world(config);
    world.run();
    ++runs;
    return world.violations().empty() ? std::string() : world.violations().front();
}

}  // namespace

Shrunk shrink(const WorldConfig& config) {
    Shrunk best{config, {}, 0};
    best.violation = violation_of(config, best.runs);
    // Keeps the smaller job if it still has a violation. That may be another one: any violation is
    // worth a look.
    const auto try_with = [&best](std::vector<Fault> faults) {
        WorldConfig less = best.config;
        less.faults = std::move(faults);
        const std::string violation = violation_of(less, best.runs);
        if (violation.empty()) return false;
        best.config = std::move(less);
        best.violation = violation;
        return true;
    };
    // A fault that was needed at first may be superfluous when another one is gone. So this repeats
    // until nothing changes.
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (std::size_t i = 0; i < best.config.faults.size();) {
            std::vector<Fault> without = best.config.faults;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            if (try_with(std::move(without)))
                smaller = true;
            else
                ++i;
        }
    }
    for (std::size_t i = 0; i < best.config.faults.size(); ++i)
        // Down to a sixteenth: shorter faults show no more.
        for (int halvings = 0; halvings < 4; ++halvings) {
            std::vector<Fault> shorter = best.config.faults;
            shorter[i].lasts /= 2;
            if (!try_with(std::move(shorter))) break;
        }
    return best;
}

}  // namespace ddprun::sim
