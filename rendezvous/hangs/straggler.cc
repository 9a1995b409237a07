// Compares the slowest rank with the median of the others.
#include "rendezvous/hangs/straggler.h"

#include <algorithm>

namespace ddprun::rendezvous {
namespace {

constexpr double kFactor = 2;
constexpr int kPercentMore = 30;

// Stands for so many workers.
struct OutsideShare {
    int outside = 0, workers = 0;
};

// 0: there are no workers.
int median(std::vector<OutsideShare> shares) {
    std::ranges::sort(shares, {}, &OutsideShare::outside);
    int workers = 0, passed = 0;
    for (const OutsideShare& share : shares) workers += share.workers;
    for (const OutsideShare& share : shares)
        if (2 * (passed += share.workers) > workers) return std::max(1, share.outside);
    return 0;
}

std::string one_decimal(double value) {
    const auto tenths = static_cast<long>(10 * value + 0.5);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace

std::optional<Straggler> find_straggler(const std::vector<NodePace>& nodes) {
    const auto unknown = [](const NodePace& node) { return node.pace.outside == 0; };
    if (nodes.empty() || std::ranges::any_of(nodes, unknown)) return std::nullopt;
    const auto slowest =
        std::ranges::max_element(nodes, {}, [](const NodePace& node) { return node.pace.outside; });
    std::vector<OutsideShare> others;
    for (const NodePace& node : nodes) {
        if (&node != &*slowest) others.push_back({node.pace.outside, 1});
        if (node.workers > 1) others.push_back({node.pace.others, node.workers - 1});
    }
    const Straggler found{slowest->first_rank + slowest->pace.slowest, slowest->pace.outside,
                          median(std::move(others))};
    if (found.others == 0 || found.factor() < kFactor ||
        found.outside - found.others < kPercentMore)
        return std::nullopt;
    return found;
}

std::string straggler_sentence(const Straggler& straggler, const std::string& who) {
    return who + " is slow, not stuck: it has been outside of collectives " +
           std::to_string(straggler.outside) + " % of the time, the others " +
           std::to_string(straggler.others) + " %, so it takes " + one_decimal(straggler.factor()) +
           " times as long";
}

}  // namespace ddprun::rendezvous
