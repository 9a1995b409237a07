// The barriers of PMI over the workers' store.
#include "agent/pmi/pmi_rounds.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "base/loop/file_thread.h"
#include "store/client/client.h"

namespace ddprun::agent::pmi {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Brought = Result<std::vector<std::string>>;

constexpr auto kConnect = 60s, kAnswer = 30s;
// A line says so when a round has waited for so long, and again after twice as long.
constexpr auto kSayAfter = 30s;
constexpr auto kAgain = 1s;  // pause before a store that has failed is asked again

std::string key_of(std::int64_t round, int node) {
    return "ddprun/pmi/" + std::to_string(round) + "/" + std::to_string(node);
}

// One round, as the thread works on it. It may outlive its owner.
struct Exchange {
    explicit Exchange(const rendezvous::NodePlace& at) : place(at) {}

    const rendezvous::NodePlace place;
    std::optional<store::StoreClient> client;
    std::int64_t round = 0;
    std::string bring;
    Brought brought = std::vector<std::string>();

    Brought run();
};

// Writing the same text twice changes nothing, and so does removing a key that is gone.
Brought Exchange::run() {
    if (!client) {
        auto there = store::StoreClient::connect(place.master_address, place.master_port, kConnect);
        if (!there) return Error(ErrorCode::unavailable, there.error().sentence());
        client.emplace(std::move(*there));
    }
    std::vector<std::string> keys;
    for (int node = 0; node < place.nodes; ++node) keys.push_back(key_of(round, node));
    const auto own = static_cast<std::size_t>(place.node_rank);
    if (const auto set = client->set(keys[own], bring, kAnswer); !set) return set.error();
    auto all = client->multi_get(std::move(keys), kSayAfter);
    if (!all || round == 0) return all;
    const auto gone = client->delete_key(key_of(round - 1, place.node_rank), kAnswer);
    return gone ? all : gone.error();
}

}  // namespace

// Lives as long as its owner, or the handler that runs.
struct Rounds::State : std::enable_shared_from_this<State> {
    State(boost::asio::io_context& io, const rendezvous::NodePlace& at, OnOver over, Say tell)
        : loop(io),
          on_over(std::move(over)),
          say(std::move(tell)),
          thread(io),
          pause(io),
          exchange(std::make_shared<Exchange>(at)) {}

    void attempt();
    void attempted();
    void say_late(const Error& why);

    boost::asio::io_context& loop;
    OnOver on_over;
    Say say;
    bool is_over = false;  // the owner is gone
    FileThread thread;     // calls of the store's client block
    boost::asio::steady_timer pause;
    std::shared_ptr<Exchange> exchange;
    Steady::time_point began, say_at;
};

Rounds::Rounds(boost::asio::io_context& loop, const rendezvous::NodePlace& place, OnOver on_over,
               Say say)
    : state_(std::make_shared<State>(loop, place, std::move(on_over), std::move(say))) {}

// A call that is under way ends by its own time limit, and nobody hears of it.
Rounds::~Rounds() {
    state_->is_over = true;
    state_->pause.cancel();
    state_->thread.let_go();
}

void Rounds::begin(std::string bring) {
    if (state_->exchange->place.nodes == 1)
        return boost::asio::post(state_->loop, [state = state_, bring = std::move(bring)] {
            if (!state->is_over) state->on_over({bring});
        });
    state_->exchange->bring = std::move(bring);
    state_->began = Steady::now();
    state_->say_at = state_->began + kSayAfter;
    state_->attempt();
}

// The thread may be the last to know of `done`, and must not be the one that ends this object.
void Rounds::State::attempt() {
    thread.post([at = exchange] { at->brought = at->run(); },
                [weak = weak_from_this()] {
                    if (const auto self = weak.lock()) self->attempted();
                });
}

void Rounds::State::attempted() {
    if (is_over) return;
    if (exchange->brought) {
        ++exchange->round;
        return on_over(*exchange->brought);
    }
    const Error& why = exchange->brought.error();
    say_late(why);
    if (why.code() == ErrorCode::timed_out) return attempt();
    exchange->client.reset();
    pause.expires_after(kAgain);
    pause.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && !self->is_over) self->attempt();
    });
}

void Rounds::State::say_late(const Error& why) {
    const auto now = Steady::now();
    if (now < say_at) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began);
    say(why.code() == ErrorCode::timed_out ? "PMI: since " + std::to_string(seconds.count()) +
                                                 " s all workers of this node are at a barrier, "
                                                 "and wait for workers of other nodes"
                                           : "PMI: " + why.sentence() + "; it is asked again");
    say_at = now + 2 * (now - began);
}

}  // namespace ddprun::agent::pmi
