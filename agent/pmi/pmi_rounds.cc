// The barriers of PMI over the workers' store.
#include "agent/pmi/pmi_rounds.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>

#include "agent/pmi/async_client.h"
#include "base/count_text.h"

namespace ddprun::agent::pmi {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;

constexpr auto kConnect = 60s, kAnswer = 30s;
// A line says so when a round has waited for so long, and again after twice as long.
constexpr auto kSayAfter = 30s;
constexpr auto kAgain = 1s;  // pause before a store that has failed is asked again

std::string key_of(std::int64_t round, int node) {
    return "ddprun/pmi/" + std::to_string(round) + "/" + std::to_string(node);
}

}  // namespace

// Lives as long as the exchange or its owner, whichever is longer.
struct Rounds::State {
    State(boost::asio::io_context& io, const rendezvous::NodePlace& at, OnOver over, Say tell)
        : loop(io), place(at), on_over(std::move(over)), say(std::move(tell)) {}

    awaitable<void> exchange(std::shared_ptr<State> self, std::string bring);
    awaitable<Result<std::vector<std::string>>> try_exchange(const std::string& bring);
    awaitable<bool> connected();

    boost::asio::io_context& loop;
    const rendezvous::NodePlace place;
    OnOver on_over;
    Say say;
    bool is_over = false;  // the owner is gone
    std::int64_t round = 0;
    std::optional<store::AsyncStoreClient> client;
    boost::asio::cancellation_signal stop;
};

Rounds::Rounds(boost::asio::io_context& loop, const rendezvous::NodePlace& place, OnOver on_over,
               Say say)
    : state_(std::make_shared<State>(loop, place, std::move(on_over), std::move(say))) {}

// Posted: the exchange may be what has led here, and it must not be cancelled from within itself.
Rounds::~Rounds() {
    state_->is_over = true;
    boost::asio::post(state_->loop, [state = state_] {
        state->stop.emit(boost::asio::cancellation_type::terminal);
    });
}

void Rounds::begin(std::string bring) {
    if (state_->place.nodes == 1)
        return boost::asio::post(state_->loop, [state = state_, bring = std::move(bring)] {
            if (!state->is_over) state->on_over({bring});
        });
    boost::asio::co_spawn(state_->loop, state_->exchange(state_, std::move(bring)),
                          boost::asio::bind_cancellation_slot(
                              state_->stop.slot(), [state = state_](const std::exception_ptr&) {}));
}

awaitable<bool> Rounds::State::connected() {
    if (client) co_return true;
    client.emplace(loop.get_executor(), place.master_address, place.master_port);
    const Result<> there = co_await client->connect(kConnect);
    if (!there) {
        if (!is_over) say("PMI: " + there.error().sentence());
        client.reset();
    }
    co_return there.has_value();
}

// It holds the state, which may outlive its owner.
awaitable<void> Rounds::State::exchange(std::shared_ptr<State> /*self*/, std::string bring) {
    const auto began = std::chrono::steady_clock::now();
    auto say_at = began + kSayAfter;
    while (!is_over) {
        Result<std::vector<std::string>> brought = co_await try_exchange(bring);
        if (is_over) co_return;
        if (brought) {
            ++round;
            co_return on_over(*brought);
        }
        const auto now = std::chrono::steady_clock::now();
        const bool waits = brought.error().code() == ErrorCode::timed_out;
        if (now >= say_at) {
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began);
            say(waits ? "PMI: since " + std::to_string(seconds.count()) +
                            " s all workers of this node are at a barrier, and wait for workers "
                            "of other nodes"
                      : "PMI: " + brought.error().sentence() + "; it is asked again");
            say_at = now + 2 * (now - began);
        }
        if (waits) continue;
        client.reset();
        boost::asio::steady_timer pause(loop, kAgain);
        co_await pause.async_wait(boost::asio::use_awaitable);
    }
}

// Writing the same text twice changes nothing, and so does removing a key that is gone.
awaitable<Result<std::vector<std::string>>> Rounds::State::try_exchange(const std::string& bring) {
    if (!co_await connected()) co_return Error(ErrorCode::unavailable, "the store does not answer");
    std::vector<std::string> keys;
    for (int node = 0; node < place.nodes; ++node) keys.push_back(key_of(round, node));
    const auto own = static_cast<std::size_t>(place.node_rank);
    if (const auto set = co_await client->run(store::tasks::set(keys[own], bring), kAnswer); !set)
        co_return set.error();
    auto brought = co_await client->run(store::tasks::multi_get(std::move(keys)), kSayAfter);
    if (!brought || round == 0) co_return brought;
    if (const auto gone = co_await client->run(
            store::tasks::delete_key(key_of(round - 1, place.node_rank)), kAnswer);
        !gone)
        co_return gone.error();
    co_return brought;
}

}  // namespace ddprun::agent::pmi
