// One worker of a check: exchanges addresses, calls its peers, stores its findings; rank 0 reports.
#include "launcher/check/check_node.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/exit_code.h"
#include "launcher/check/check_look.h"
#include "launcher/check/check_reach.h"
#include "launcher/check/check_report.h"
#include "launcher/plan/check_plan.h"
#include "store/client/client.h"

namespace ddprun::launcher {
namespace {

using store::StoreClient;
using Steady = std::chrono::steady_clock;
// For one exchange of addresses, and for all findings together. The second is longer, because a
// node may first wait for file systems and peers that do not answer.
constexpr auto kPlaceLimit = std::chrono::seconds{20}, kFactsLimit = std::chrono::seconds{60};

// The time of day. Comparing this clock between nodes is one purpose of the check.
double wall_clock() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

class Check {
  public:
    Check(const JobInput& input, const Products& products, StoreClient store,
          std::unique_ptr<Reach> reach)
        : input_(input),
          products_(products),
          rank_(number("RANK")),
          nodes_(number("WORLD_SIZE")),
          store_(std::move(store)),
          reach_(std::move(reach)) {}

    // Looks at this host first, then at the others: a host's own findings need nobody.
    Result<> look() {
        NodeFacts facts = look_at_node(input_, products_);
        if (nodes_ > 1) {
            auto peers = find_peers();
            if (!peers) return peers.error();
            auto outcome = reach_->call(std::move(*peers));
            facts.unreached = std::move(outcome.unreached);
            facts.reached = outcome.reached;
            facts.clock = outcome.clock;
        }
        return store_.set("check/facts/" + std::to_string(rank_), to_json(facts), kFactsLimit);
    }

    // Rank 0 alone collects the findings. One deadline covers all nodes, so that several silent
    // nodes cost no more than one. A node that does not answer becomes an empty entry, which the
    // report turns into a finding.
    CheckReport report() {
        const auto until = Steady::now() + kFactsLimit;
        CheckedJob job{.run_id = input_.plan.run_id,
                       .expected = input_.plan.limits.order,
                       .nodes_wanted = input_.plan.limits.max_nodes,
                       .meeting_place = input_.plan.endpoint.host,
                       .ledger = input_.plan.ledger.place,
                       .nodes = {},
                       .seconds = 0};
        for (int rank = 0; rank < nodes_; ++rank) {
            const auto left = std::chrono::duration_cast<StoreClient::Timeout>(
                // After the deadline each remaining node still gets 10 ms: its findings may be in
                // the store already.
                std::max(until - Steady::now(), Steady::duration{std::chrono::milliseconds{10}}));
            const auto text = store_.get("check/facts/" + std::to_string(rank), left);
            const auto facts = text ? facts_from_json(*text) : text.error();
            job.nodes.push_back(facts ? std::optional(*facts) : std::nullopt);
        }
        job.seconds = std::chrono::duration<double>(Steady::now() - begun_).count();
        return make_check_report(std::move(job));
    }

    // If this fails, the others stop waiting by themselves.
    void end() { (void)store_.set("check/end", "1", kPlaceLimit); }
    void await_end() { (void)store_.get("check/end", 2 * kFactsLimit); }
    bool tells() const { return rank_ == 0; }

  private:
    // RANK and WORLD_SIZE, as ddprun sets them for every worker.
    int number(const char* name) const {
        const auto found = input_.environment.find(name);
        return found == input_.environment.end() ? 0 : std::atoi(found->second.c_str());
    }
    const std::string& master() const { return input_.environment.at("MASTER_ADDR"); }

    // The host name or address under which the others reach this node. Rank 0 uses the name under
    // which its workers are called in a job. Any other node uses the address of the interface that
    // leads to rank 0: in a job it offers that one.
    std::string own_host() const {
        if (input_.plan.local_addr) return *input_.plan.local_addr;
        return rank_ == 0 ? master() : address_towards(master()).value_or(input_.plan.node_name);
    }

    // Exchanges the addresses of all listeners. Rank 0 collects them into one value, so that each
    // node reads one key. With one key a node, n nodes would make n² requests to the store.
    Result<std::vector<Reach::Peer>> find_peers() {
        const auto key = [](int rank) { return "check/place/" + std::to_string(rank); };
        const std::string own =
            own_host() + " " + std::to_string(reach_->port()) + " " + reach_->word();
        if (auto set = store_.set(key(rank_), own, kPlaceLimit); !set) return set.error();
        if (rank_ == 0) {
            StoreClient::Keys keys;
            for (int rank = 0; rank < nodes_; ++rank) keys.push_back(key(rank));
            auto found = store_.multi_get(std::move(keys), kPlaceLimit);
            if (!found) return found.error();
            std::string all;
            for (const std::string& place : *found) all += place + "\n";
            if (auto set = store_.set("check/places", all, kPlaceLimit); !set) return set.error();
        }
        // Twice the limit: rank 0 may itself wait for up to one limit before it writes this key.
        const auto places = store_.get("check/places", 2 * kPlaceLimit);
        if (!places) return places.error();
        std::vector<Reach::Peer> by_rank;
        std::istringstream lines(*places);
        for (Reach::Peer peer; lines >> peer.host >> peer.port >> peer.word; ++peer.rank)
            by_rank.push_back(peer);
        std::vector<Reach::Peer> peers;
        for (const int rank : peers_of(rank_, static_cast<int>(by_rank.size())))
            peers.push_back(by_rank[static_cast<std::size_t>(rank)]);
        return peers;
    }

    const JobInput& input_;
    const Products& products_;
    int rank_, nodes_;
    StoreClient store_;
    std::unique_ptr<Reach> reach_;
    Steady::time_point begun_ = Steady::now();
};

// The check itself failed, so nothing is known about the nodes.
int fail(const Error& error) {
    std::fprintf(stderr, "ddprun --check: %s\n", error.sentence().c_str());
    return kInternalCode;
}

}  // namespace

int check_node(const JobInput& input, CheckFormat format, const Products& products) {
    const auto address = input.environment.find("MASTER_ADDR"),
               port = input.environment.find("MASTER_PORT");
    if (address == input.environment.end() || port == input.environment.end())
        return fail(usage_error("this is not a worker; use ddprun --check"));
    auto store = StoreClient::connect(
        address->second, static_cast<std::uint16_t>(std::atoi(port->second.c_str())), kPlaceLimit);
    if (!store) return fail(store.error());
    auto reach = Reach::listen(wall_clock);
    if (!reach) return fail(reach.error());
    Check check(input, products, std::move(*store), std::move(*reach));
    if (auto looked = check.look(); !looked) return fail(looked.error());
    // Slower nodes may still call this node's listener, so it must stay until all findings are in.
    if (!check.tells()) {
        check.await_end();
        return 0;
    }
    const CheckReport report = check.report();
    const std::string text = format == CheckFormat::json ? check_json(report) : check_text(report);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    check.end();
    return report.good() ? 0 : kCheckWrong;
}

}  // namespace ddprun::launcher
