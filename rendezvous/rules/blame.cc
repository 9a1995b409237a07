// Blame: which hosts are blamed, and which candidates are left out for it (blame.h).
#include "rendezvous/rules/blame.h"

#include <algorithm>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

constexpr std::int64_t kWithin = 5;  // generations
constexpr std::ptrdiff_t kOften = 2;

bool is_blamed(const Blame& blame, const std::string& host) {
    return std::find(blame.nodes.begin(), blame.nodes.end(), host) != blame.nodes.end();
}

}  // namespace

Blame with_cause(Blame blame, const FirstCause& cause) {
    // Old causes are forgotten, so that rare faults in a long job never add up. Each generation
    // counts once.
    std::erase_if(blame.causes, [&](const FirstCause& old) {
        return old.generation.value <= cause.generation.value - kWithin ||
               old.generation == cause.generation;
    });
    const std::string host = host_of(cause.node);
    blame.causes.push_back({cause.generation, host});
    const auto times = std::count_if(blame.causes.begin(), blame.causes.end(),
                                     [&](const FirstCause& each) { return each.node == host; });
    if (times >= kOften && !is_blamed(blame, host)) blame.nodes.push_back(host);
    return blame;
}

std::vector<Candidate> without_blamed(std::vector<Candidate> candidates, const Blame& blame,
                                      int most) {
    // The condition is checked before each removal, so at least `most` candidates stay.
    for (auto it = candidates.begin();
         it != candidates.end() && static_cast<int>(candidates.size()) > most;)
        it = is_blamed(blame, host_of(it->node.name)) ? candidates.erase(it) : it + 1;
    return candidates;
}

std::string blame_sentence(const Blame& blame, const std::string& node, bool replaced) {
    std::vector<std::string> generations;
    for (const FirstCause& cause : blame.causes)
        if (cause.node == node) generations.push_back(std::to_string(cause.generation.value));
    std::string list;
    for (std::size_t i = 0; i < generations.size(); ++i)
        list += (i == 0 ? "" : i + 1 == generations.size() ? " and " : ", ") + generations[i];
    return node + " caused the end of generations " + list +
           (replaced ? "; a spare replaces it (--blame=off keeps it)"
                     : "; there is no spare to replace it");
}

std::string exclude_option(const Blame& blame) {
    std::string list;
    for (const std::string& node : blame.nodes) list += (list.empty() ? "" : ",") + node;
    return "for the next submission: sbatch --exclude=" + list;
}

}  // namespace ddprun::rendezvous
