#include "trainer/gloo/gloo_calls.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/trainer/ranks.h"
#include "trainer/gloo/gloo_mesh.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::Ends;

// Values that name their channel and rank, and the reduction that is begun on them.
struct Begun {
    Begun(GlooCalls& calls, GlooCalls::Channel channel, int rank)
        : values(20'000, static_cast<float>(channel) + static_cast<float>(rank)),
          operation(Operation::all_reduce(buffer_of(std::span(values)))),
          ring(calls.start(operation, channel)) {}

    std::vector<float> values;
    const Operation operation;
    std::unique_ptr<GlooRing> ring;
};

bool all_are(const std::vector<float>& values, float expected) {
    return std::all_of(values.begin(), values.end(), [&](float v) { return v == expected; });
}

// Three threads start reductions while a fourth carries others out: none takes another's messages.
int start_beside_each_other(GlooMesh& mesh, int rank, int world) {
    constexpr GlooCalls::Channel kStarters = 3, kEach = 40;
    auto& calls = mesh.calls();
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
    bool right = true;
    for (GlooCalls::Channel i = 0; i < kEach; ++i) {
        const GlooCalls::Channel channel = 1 + kStarters * kEach + i;
        std::vector<float> values(20'000, static_cast<float>(channel) + static_cast<float>(rank));
        calls.run(Operation::all_reduce(buffer_of(std::span(values))), channel);
        right = right && all_are(values, sum(channel));
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t t = 0; t < kStarters; ++t) {
        for (GlooCalls::Channel i = 0; i < kEach; ++i) {
            Begun& one = *begun[t][i];
            calls.finish(one.operation, *one.ring);
            right = right && all_are(one.values, sum(1 + t * kEach + i));
        }
    }
    return right ? 0 : 1;
}

TEST(GlooCalls, StartFromAnyThread) {
    auto ends = test::run_ranks(3, [](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto mesh = GlooMesh::connect(context, *store, seconds(20)).value();
        const int code = start_beside_each_other(*mesh, context.rank.value, context.world_size);
        mesh->calls().run(Operation::barrier(), 1'000'000);
        mesh->leave(*store);
        return code;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
