// Assigns ranks: earlier members keep their places, new nodes fill the gaps (rank_assignment.h).
#include "rendezvous/rules/rank_assignment.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "rendezvous/model/node_name.h"

namespace ddprun::rendezvous {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The run of digits at `at` without leading zeros, and where it ends.
std::pair<std::string, std::size_t> digits(const std::string& text, std::size_t at) {
    while (at + 1 < text.size() && text[at] == '0' && is_digit(text[at + 1])) ++at;
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    return {text.substr(at, end - at), end};
}

// The order of nodes that have no place yet.
struct First {
    std::unordered_map<std::string_view, std::size_t> order;

    explicit First(const std::vector<std::string>& names) {
        for (const std::string& name : names) order.emplace(name, order.size());
    }
    std::size_t index_of(const std::string& name) const {
        const auto found = order.find(name);
        return found == order.end() ? order.size() : found->second;
    }
    bool operator()(const Candidate& a, const Candidate& b) const {
        const int ra = a.offer.node_rank.value_or(1 << 30),
                  rb = b.offer.node_rank.value_or(1 << 30);
        if (ra != rb) return ra < rb;
        const auto ia = index_of(a.node.name), ib = index_of(b.node.name);
        if (ia != ib) return ia < ib;
        if (natural_less(a.node.name, b.node.name) != natural_less(b.node.name, a.node.name))
            return natural_less(a.node.name, b.node.name);
        if (a.node.name != b.node.name) return a.node.name < b.node.name;  // "n1" and "n01"
        return a.node.incarnation < b.node.incarnation;
    }
};

// Fills free places of `previous` with candidates for which `same` holds, and removes these from
// `left`.
template <class Same>
void place(std::deque<Candidate>& left, const std::vector<Member>& previous,
           std::vector<std::optional<Candidate>>& places, Same same) {
    for (std::size_t i = 0; i < previous.size(); ++i) {
        if (places[i]) continue;
        const auto it = std::find_if(left.begin(), left.end(), [&](const Candidate& c) {
            return same(c.node, previous[i].node);
        });
        if (it == left.end()) continue;
        places[i] = *it;
        left.erase(it);
    }
}

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        if (is_digit(a[i]) && is_digit(b[j])) {
            const auto [da, ia] = digits(a, i);
            const auto [db, jb] = digits(b, j);
            if (da.size() != db.size()) return da.size() < db.size();
            if (da != db) return da < db;
            i = ia;
            j = jb;
        } else if (a[i] != b[j]) {
            return a[i] < b[j];
        } else {
            ++i;
            ++j;
        }
    }
    return a.size() - i < b.size() - j;
}

std::vector<Member> assign_ranks(const std::vector<Candidate>& candidates,
                                 const std::vector<Member>& previous,
                                 const std::vector<std::string>& order, int max_nodes) {
    std::deque<Candidate> left(candidates.begin(), candidates.end());
    const First first(order);
    std::sort(left.begin(), left.end(), std::cref(first));
    std::vector<std::optional<Candidate>> places(previous.size());
    // First the same processes, then new processes on the same nodes: data on a host often belongs
    // to its ranks.
    place(left, previous, places, [](const NodeId& a, const NodeId& b) { return a == b; });
    place(left, previous, places,
          [](const NodeId& a, const NodeId& b) { return a.name == b.name; });
    int room =
        max_nodes - static_cast<int>(std::count_if(places.begin(), places.end(),
                                                   [](const auto& p) { return p.has_value(); }));
    for (auto& p : places) {
        if (p || room <= 0 || left.empty()) continue;
        p = left.front();
        left.erase(left.begin());
        --room;
    }
    for (; room > 0 && !left.empty(); --room) {
        places.emplace_back(left.front());
        left.erase(left.begin());
    }
    std::vector<Member> members;
    int offset = 0;
    for (const auto& p : places) {
        if (!p || static_cast<int>(members.size()) == max_nodes) continue;
        members.push_back({p->node, p->offer, offset});
        offset += p->offer.slots;
    }
    return members;
}

std::vector<Candidate> of_whole_hosts(std::vector<Candidate> candidates,
                                      const std::vector<std::string>& order, int max_nodes) {
    // With room for all tasks nobody is left out, and without tasks each node is a whole host.
    if (order.size() <= static_cast<std::size_t>(max_nodes) ||
        std::ranges::none_of(order, is_task_node))
        return candidates;
    std::unordered_map<std::string, int> lacking;
    for (const std::string& name : order) ++lacking[host_of(name)];
    for (const Candidate& candidate : candidates) --lacking[host_of(candidate.node.name)];
    std::erase_if(candidates, [&](const Candidate& candidate) {
        return lacking[host_of(candidate.node.name)] > 0;
    });
    return candidates;
}

int world_size(const std::vector<Member>& members) {
    return members.back().rank_offset + members.back().offer.slots;
}

}  // namespace ddprun::rendezvous
