// Compares what an operator asks with what holds and who is here (limit_change.h).
#include "rendezvous/rules/limit_change.h"

#include "rendezvous/model/node_name.h"
#include "rendezvous/rules/restart_policy.h"

namespace ddprun::rendezvous {
namespace {

std::string text(int number) { return std::to_string(number); }

std::string described_limit(int min, int max, int restarts, const LimitsNow& now) {
    std::string nodes = plural_of(now.hold.order);
    if (max == 1) nodes.pop_back();
    return (min < max ? text(min) + " to " + text(max) : text(max)) + " " + nodes + ", " +
           text(now.restarts_used) + " of " + text(restarts) + " restarts used";
}

std::string why_not(int min, int max, int restarts, const LimitsNow& now) {
    const std::string nodes = plural_of(now.hold.order);
    if (min < 1 || max > kMostNodes)
        return "MIN is " + text(min) + " and MAX " + text(max) + "; both must be from 1 to " +
               text(kMostNodes);
    if (min > max) return "--min-nodes=" + text(min) + " is more than --max-nodes=" + text(max);
    if (restarts < 0 || restarts > kMostRestarts)
        return "--max-restarts=" + text(restarts) + " is not from 0 to " + text(kMostRestarts);
    if (min > now.hold.min_nodes && min > now.here)
        return "--min-nodes=" + text(min) + " is more than the " + text(now.here) + " " + nodes +
               " that are here, so the next generation would wait for nodes that nobody has seen; "
               "ask again when they have come";
    return {};
}

}  // namespace

std::string described(const Limits& limits, int restarts_used) {
    return described_limit(limits.min_nodes, limits.max_nodes, restart_budget(limits.max_restarts),
                           {.hold = limits, .restarts_used = restarts_used});
}

LimitChange decide_limits(const OperatorLimits& asked, const LimitsNow& now) {
    using What = LimitChange::What;
    const Limits& hold = now.hold;
    const int budget = restart_budget(hold.max_restarts);
    const int min = asked.min_nodes.value_or(hold.min_nodes);
    const int max = asked.max_nodes.value_or(hold.max_nodes);
    const int restarts = asked.max_restarts.value_or(budget);
    if (std::string why = why_not(min, max, restarts, now); !why.empty())
        return {What::refused, {}, std::move(why)};
    const std::string holds = described_limit(min, max, restarts, now);
    // A number also replaces "auto", which does not restart what has never met.
    const bool restarts_stay = !asked.max_restarts || restarts == hold.max_restarts;
    if (min == hold.min_nodes && max == hold.max_nodes && restarts_stay)
        return {What::holds_already, {}, "these limits hold already: " + holds};
    OperatorLimits to{.min_nodes = {}, .max_nodes = {}, .max_restarts = asked.max_restarts};
    if (asked.min_nodes || asked.max_nodes) to.min_nodes = min, to.max_nodes = max;
    std::string sentence = holds;
    if (asked.max_restarts && restarts <= now.restarts_used)
        sentence += ": the next failure of a worker ends the job";
    return {What::changes, to, std::move(sentence)};
}

}  // namespace ddprun::rendezvous
