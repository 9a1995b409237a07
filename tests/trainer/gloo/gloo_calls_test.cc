// The collectives of the Gloo backend, below the process group: several threads on one mesh of real
// connections.
#include "trainer/gloo/gloo_calls.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/trainer/ranks.h"
#include "trainer/gloo/gloo_mesh.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::Ends;

// An all-reduce that has been begun. Its values name channel and rank, so a sum of another call's
// messages is a wrong number. They are small whole numbers, which floats add exactly.
struct Begun {
    Begun(GlooCalls& calls, GlooCalls::Channel channel, int rank)
        : values(30'000, static_cast<float>(channel) + static_cast<float>(rank)),
          operation(Operation::all_reduce(buffer_of(std::span(values)))),
          ring(calls.start(operation, channel)) {}

    std::vector<float> values;
    const Operation operation;
    std::unique_ptr<GlooRing> ring;
};

bool all_are(const std::vector<float>& values, float expected) {
    return std::all_of(values.begin(), values.end(), [&](float v) { return v == expected; });
}

// Three threads start 40 reductions each, while a fourth one carries out 40 others. No reduction
// may take the messages of another one. Each has a channel of its own, the same on all ranks.
int start_beside_each_other(GlooMesh& mesh, int rank, int world) {
    constexpr GlooCalls::Channel kStarters = 3, kEach = 40;
    auto& calls = mesh.calls();
    // The sum over all ranks of channel + rank.
    const auto sum = [&](GlooCalls::Channel channel) {
        return static_cast<float>(channel) * static_cast<float>(world) +
               static_cast<float>(world * (world - 1) / 2);
    };
    std::vector<std::vector<std::unique_ptr<Begun>>> begun(kStarters);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kStarters; ++t) {
        threads.emplace_back([&, t] {
            for (GlooCalls::Channel i = 0; i < kEach; ++i)
                begun[t].push_back(std::make_unique<Begun>(calls, 1 + t * kEach + i, rank));
        });
    }
    // The fourth thread is this one. It works with channels above those of the three others.
    bool right = true;
    for (GlooCalls::Channel i = 0; i < kEach; ++i) {
        const GlooCalls::Channel channel = 1 + kStarters * kEach + i;
        std::vector<float> values(30'000, static_cast<float>(channel) + static_cast<float>(rank));
        calls.run(Operation::all_reduce(buffer_of(std::span(values))), channel);
        right = right && all_are(values, sum(channel));
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t t = 0; t < kStarters; ++t) {
        for (GlooCalls::Channel i = 0; i < kEach; ++i) {
            Begun& one = *begun[t][i];
            // Only one thread may finish calls. It does so when all have been started.
            one.ring->finish();
            right = right && all_are(one.values, sum(1 + t * kEach + i));
        }
    }
    return right ? 0 : 1;
}

// begin() of a group sends its first messages in the caller's thread, while the group's own thread
// is at work on the same connections. This is that meeting, with more threads than there ever are.
TEST(GlooCalls, StartFromAnyThread) {
    for (bool shares_memory : {true, false}) {
        auto ends = test::run_ranks(3, [&](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto mesh = GlooMesh::connect(context, *store, GlooMesh::Clock::now() + seconds(20),
                                          seconds(20), shares_memory)
                            .value();
            const int code = start_beside_each_other(*mesh, context.rank.value, context.world_size);
            // No rank leaves before all are done, on a channel that nobody else uses.
            mesh->calls().run(Operation::barrier(), 1'000'000);
            mesh->leave(*store);
            return code;
        });
        EXPECT_EQ(ends, Ends({0, 0, 0}));
    }
}

}  // namespace
}  // namespace ddprun::trainer
