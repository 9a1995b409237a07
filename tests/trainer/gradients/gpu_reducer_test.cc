// Gradients on a GPU, written by any stream or thread: averaged in order, and what is not in order
// is found. On the played GPU, with the double of NCCL.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/trainer/gpu_rank.h"
#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::GpuFloats;
using test::GpuRank;
using test::launch;
using test::reads;
using test::run_gpu_ranks;
using test::writes;

// Three layers on the GPU, each in a bucket of its own.
struct Model {
    GpuFloats a{300}, b{10}, c{50};
    std::vector<NamedBuffer> parameters() {
        return {{"a", a.buffer()}, {"b", b.buffer()}, {"c", c.buffer()}};
    }
};
ReducerOptions small() {
    ReducerOptions options;
    options.first_bucket_bytes = options.bucket_bytes = 4;
    // The comparison waits on the host, which most tests here must not.
    options.verify_replicas = {0, 0};
    return options;
}

// The kernel of backward that writes a gradient.
void add(const GradientReducer& reducer, std::size_t parameter, float what, GpuStream stream) {
    const Buffer g = reducer.gradient(parameter);
    launch("backward " + std::to_string(parameter), stream, {writes(g.data, g.bytes())}, [g, what] {
        for (std::size_t i = 0; i < g.count; ++i) static_cast<float*>(g.data)[i] += what;
    });
}

// The optimizer's kernel that reads all gradients. Waits, and says whether they all had this value.
bool all_are(const GradientReducer& reducer, float expected, GpuStream stream, float within = 0) {
    bool right = true;
    for (const auto& [name, g] : reducer.gradients())
        launch("optimizer of " + name, stream, {reads(g.data, g.bytes())},
               [&right, g, expected, within] {
                   for (std::size_t i = 0; i < g.count; ++i)
                       right &= std::abs(static_cast<float*>(g.data)[i] - expected) <= within;
               });
    return GpuEvent::record(stream)->wait() && right;
}

// Each layer's gradient is written by another stream, one of them in another thread, in two halves
// with accumulation. The mean is right for each seed, and nothing is reported.
TEST(GpuReducer, AveragesWhatAnyStreamHasWritten) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
        auto ends = run_gpu_ranks(2, [seed](const Context& context) {
            GpuRank me(context);
            Device::get().seed(seed);
            Model model;
            auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
            const GpuStream main = test::make_stream(), side = test::make_non_blocking_stream();
            const auto mine = static_cast<float>(context.rank.value + 1);
            for (int step = 0; step < 3; ++step) {
                if (!reducer->zero(main)) return 1;
                if (!GpuEvent::record(main)->before(side)) return 2;
                for (int half = 0; half < 2; ++half) {
                    std::optional<GradientReducer::NoSync> quiet;
                    if (half == 0) quiet.emplace(*reducer);
                    add(*reducer, 2, mine, side);
                    if (!reducer->ready(2, side)) return 3;
                    bool in_thread = false;
                    const auto zeroed = GpuEvent::record(main).value();
                    std::thread autograd([&] {
                        const GpuStream own = gpu_thread_stream();
                        // The two halves come from two threads, so two streams.
                        if (!zeroed.before(own)) return;
                        add(*reducer, 1, mine, own);
                        in_thread = static_cast<bool>(reducer->ready(1, own));
                        in_thread &= static_cast<bool>(GpuEvent::record(own)->before(main));
                    });
                    autograd.join();
                    if (!in_thread) return 4;
                    add(*reducer, 0, mine, nullptr);
                    if (!reducer->ready(0)) return 5;
                }
                if (!reducer->finish(main)) return 6;
                if (!all_are(*reducer, 3, main)) return 7;
                if (!GpuEvent::record(main)->before(side)) return 8;
            }
            return all_is_ordered() ? 0 : 9;
        });
        ASSERT_EQ(ends, Ends({0, 0})) << "seed " << seed;
    }
}

// A whole step is given to a GPU that does nothing meanwhile: the host waits for none of it, and
// all buckets are on the stream before finish().
TEST(GpuReducer, NeverBlocksTheHost) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        const GpuStream main = test::make_stream();
        const auto step = [&] {
            if (!reducer->zero(main)) return false;
            for (std::size_t i = 3; i-- > 0;) {
                add(*reducer, i, 1, main);
                const int before = test::nccl_calls();
                if (!reducer->ready(i, main) || test::nccl_calls() != before + 1) return false;
            }
            return reducer->finish(main) && reducer->begin_clip(1e9, main);
        };
        // The first calls of a shape are compared, which takes both ranks.
        for (int i = 0; i < 3; ++i)
            if (!step()) return 1;
        Device::get().hold(true);
        for (int i = 0; i < 3; ++i)
            if (!step()) return 2;
        Device::get().hold(false);
        if (!all_are(*reducer, 1, main)) return 3;
        return std::abs(reducer->norm(main).value() - std::sqrt(360)) < 1e-6 && all_is_ordered()
                   ? 0
                   : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The streams that have written gradients are gone before the bucket is launched, and the next one
// may have the address of an earlier one. Their kernels still come first.
TEST(GpuReducer, WaitsForStreamsThatAreGone) {
    auto ends = run_gpu_ranks(1, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters()).value();
        const GpuStream main = test::make_non_blocking_stream();
        if (!reducer->zero(main) || !GpuEvent::record(main)->wait()) return 1;
        for (std::size_t i = 3; i-- > 0;) {
            auto own = OwnGpuStream::make().value();
            add(*reducer, i, 1, own.get());
            if (!reducer->ready(i, own.get())) return 2;
        }
        if (!reducer->finish(main) || !all_are(*reducer, 1, main)) return 3;
        return all_is_ordered() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// Rank 1 does not reach layer 2, whose bucket goes first. Its zeros were written by a non-blocking
// stream, and are reduced behind that.
TEST(GpuReducer, FindsUnusedParametersInOrder) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto options = small();
        options.find_unused = true;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        const GpuStream main = test::make_non_blocking_stream();
        if (!reducer->zero(main)) return 1;
        for (std::size_t i : {2, 1, 0}) {
            if (i == 2 && !context.is_first()) continue;
            add(*reducer, i, i == 2 ? 4 : 2, main);
            if (!reducer->ready(i, main)) return 2;
        }
        if (!reducer->finish(main)) return 3;
        return all_are(*reducer, 2, main) && all_is_ordered() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Each floating type is clipped on the GPU. 400 values of 3 have the norm 60.
TEST(GpuReducer, ClipsEachType) {
    auto ends = run_gpu_ranks(1, [](const Context& context) {
        GpuRank me(context);
        for (DataType type :
             {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
            GpuFloats memory(1000);
            auto reducer =
                GradientReducer::make(*me.group, {{"w", {memory.values(), 400, type}}}).value();
            const GpuStream main = test::make_non_blocking_stream();
            const Buffer g = reducer->gradient(0);
            if (!reducer->zero(main)) return 1;
            launch("backward", main, {writes(g.data, g.bytes())}, [g] {
                for (std::size_t i = 0; i < g.count; ++i) {
                    if (g.type == DataType::float32) static_cast<float*>(g.data)[i] = 3;
                    if (g.type == DataType::float64) static_cast<double*>(g.data)[i] = 3;
                    if (g.type == DataType::float16) static_cast<Half*>(g.data)[i] = Half(3);
                    if (g.type == DataType::bfloat16)
                        static_cast<BFloat16*>(g.data)[i] = BFloat16(3);
                }
            });
            if (!reducer->ready(0, main) || !reducer->finish(main)) return 2;
            if (std::abs(reducer->clip(30, main).value() - 60) > 1e-9) return 3;
            if (std::abs(reducer->clip(30, main).value() - 30) > 1e-6) return 4;
        }
        return all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// A NaN of rank 1 in a bfloat16 gradient is named, before it is spread.
TEST(GpuReducer, NamesTheRankOfANan) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats memory(100);
        const std::vector<NamedBuffer> parameters{
            {"first", {memory.values(), 10, DataType::bfloat16}},
            {"second", {memory.values() + 50, 10, DataType::bfloat16}}};
        auto options = small();
        options.find_not_finite = true;
        auto reducer = GradientReducer::make(*me.group, parameters, options).value();
        const GpuStream main = test::make_non_blocking_stream();
        for (int step = 0; step < 3; ++step) {
            if (!reducer->zero(main)) return 1;
            const Buffer g = reducer->gradient(1);
            const bool wrong = step == 1 && context.rank.value == 1;
            launch("backward", main, {writes(g.data, g.bytes())}, [g, wrong] {
                static_cast<BFloat16*>(g.data)[3] =
                    BFloat16(wrong ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
            });
            if (!reducer->ready(1, main) || !reducer->ready(0, main)) return 2;
            const auto done = reducer->finish(main);
            if (static_cast<bool>(done) == (step == 1)) return 3;
            if (!done && (done.error().sentence().find("\"second\"") == std::string::npos ||
                          done.error().sentence().find("rank 1") == std::string::npos))
                return std::fprintf(stderr, "%s\n", done.error().sentence().c_str()) ? 4 : 4;
        }
        return all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The block is the program's: the gradients lie in it in the order of the parameters, and are
// reduced there. One that is too small, or not aligned, is refused with the numbers.
TEST(GpuReducer, UsesABlockOfTheProgram) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto options = small();
        GpuFloats block(512);
        options.block = block.values();
        options.block_bytes = block.bytes() - 512;
        auto none = GradientReducer::make(*me.group, model.parameters(), options);
        if (none || none.error().sentence().find("has 1536 bytes") == std::string::npos) return 1;
        options.block = block.values() + 1;
        options.block_bytes = block.bytes();
        none = GradientReducer::make(*me.group, model.parameters(), options);
        if (none || none.error().sentence().find("4 above a multiple of 256") == std::string::npos)
            return 2;
        options.block = block.values();
        const GpuStream main = test::make_non_blocking_stream();
        options.stream = main;
        block.fill(main, 7, "what was there before");
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        if (reducer->gradient(0).data != block.values() ||
            reducer->gradient(1).data != block.values() + 320 ||
            reducer->gradient(2).data != block.values() + 384)
            return 3;
        for (std::size_t i : {2, 1, 0}) {
            add(*reducer, i, static_cast<float>(context.rank.value), main);
            if (!reducer->ready(i, main)) return 4;
        }
        if (!reducer->finish(main) || !all_are(*reducer, 0.5f, main)) return 5;
        // Nothing that was there before is counted.
        if (std::abs(reducer->clip(1e9, main).value() - 0.5 * std::sqrt(360)) > 1e-6) return 6;
        return all_is_ordered() ? 0 : 7;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The compressing hook's kernels are on the reducer's stream, around the call.
TEST(GpuReducer, CompressesToBFloat16) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto options = small();
        options.hook = std::make_shared<Bfloat16Hook>();
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        const GpuStream main = test::make_non_blocking_stream();
        for (int step = 0; step < 3; ++step) {
            if (!reducer->zero(main)) return 1;
            for (std::size_t i : {2, 1, 0}) {
                add(*reducer, i, context.is_first() ? 0.3f : 1.7f, main);
                if (!reducer->ready(i, main)) return 2;
            }
            if (!reducer->finish(main) || !all_are(*reducer, 1, main, 0.01f)) return 3;
        }
        return all_is_ordered() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A whole step in a graph: zeros, backward on two streams, the reduction, and clipping by a norm
// that never leaves the GPU. Each replay is a step.
TEST(GpuReducer, StepsInAGraph) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto reducer = GradientReducer::make(*me.group, model.parameters(), small()).value();
        const GpuStream main = test::make_non_blocking_stream(),
                        side = test::make_non_blocking_stream();
        Device::get().begin_capture(main);
        if (!reducer->zero(main)) return 1;
        if (!GpuEvent::record(main)->before(side)) return 2;
        const auto mine = static_cast<float>(context.rank.value + 1);
        for (std::size_t i : {2, 1, 0}) {
            const GpuStream stream = i == 1 ? side : main;
            add(*reducer, i, 2 * mine, stream);
            if (!reducer->ready(i, stream)) return 3;
        }
        if (!reducer->finish(main) || !reducer->begin_clip(std::sqrt(360.0), main)) return 4;
        const auto graph = Device::get().end_capture(main);
        for (int step = 0; step < 4; ++step) {
            Device::get().launch(graph, main);
            // The mean is 3, clipped to 1.
            if (!all_are(*reducer, 1, main, 1e-6f)) return 5;
            if (std::abs(reducer->norm(main).value() - 3 * std::sqrt(360)) > 1e-6) return 6;
        }
        return all_is_ordered() ? 0 : 7;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The parameters of two ranks are compared after the kernels that write them. Steps that go into a
// graph are left out.
TEST(GpuReducer, NamesTheReplicaThatDrifts) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        Model model;
        auto options = small();
        options.verify_replicas = {10, 0};
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        const GpuStream main = test::make_non_blocking_stream();
        Device::get().begin_capture(main);
        const auto step = [&] {
            for (std::size_t i : {2, 1, 0})
                if (!reducer->ready(i, main)) return Result<void>(usage_error("ready"));
            return reducer->finish(main);
        };
        if (!step()) return 1;
        (void)Device::get().end_capture(main);
        for (int number = 2; number <= 4; ++number) {
            const float value = number == 4 && !context.is_first() ? 7 : 6;
            const Buffer b = model.b.buffer();
            launch("update", main, {writes(b.data, b.bytes())},
                   [b, value] { static_cast<float*>(b.data)[3] = value; });
            const auto done = step();
            if (number < 4 && !done) return number;
            if (number == 4 &&
                (done || done.error().sentence().find("in step 4 of this reducer the content of "
                                                      "\"b\" is not the same on rank 1") != 0))
                return 8;
        }
        return all_is_ordered() ? 0 : 9;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Three mistakes that the library could have, planted by a hook: the bucket waits for the legacy
// stream (and not for the one that has written it), its mean is completed on another stream, and
// nobody waits for the call.
enum class Mistake { legacy_stream, other_stream, no_wait };
struct Planted final : CommunicationHook {
    explicit Planted(Mistake which) : mistake(which) {}
    Result<Work> begin(ProcessGroup& group, std::size_t, const Buffer& bucket,
                       GpuStream stream) override {
        const auto operation = Operation::all_reduce(bucket, ReduceOp::avg);
        if (mistake == Mistake::legacy_stream) return group.begin(operation);
        auto work = group.begin(operation.on(stream));
        if (mistake == Mistake::no_wait) {
            kept.push_back(work);
            return Work::finished({});
        }
        return work;
    }
    Result<void> end(std::size_t index, const Buffer& bucket, GpuStream) override {
        if (mistake == Mistake::other_stream)
            launch("completing " + std::to_string(index), other,
                   {writes(bucket.data, bucket.bytes())}, [] {});
        return {};
    }
    const Mistake mistake;
    const GpuStream other = test::make_non_blocking_stream();
    std::vector<Work> kept;
};

// What is reported of a step with a mistake.
std::vector<std::string> reports_of(Mistake mistake, unsigned seed) {
    test::TemporaryFolder folder;
    auto ends = run_gpu_ranks(2, [&](const Context& context) {
        GpuRank me(context);
        Device::get().seed(seed);
        Model model;
        auto options = small();
        options.hook = std::make_shared<Planted>(mistake);
        auto reducer = GradientReducer::make(*me.group, model.parameters(), options).value();
        const GpuStream main = test::make_non_blocking_stream();
        for (std::size_t i : {2, 1, 0}) {
            add(*reducer, i, 1, main);
            if (!reducer->ready(i, main)) return 1;
        }
        if (!reducer->finish(main)) return 2;
        (void)all_are(*reducer, 1, main);
        std::string text;
        for (const auto& report : Device::get().reports()) text += report + "\n";
        test::write_all(folder.path() / std::to_string(context.rank.value), text);
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    std::vector<std::string> all;
    for (const char* rank : {"0", "1"}) all.push_back(test::read_all(folder.path() / rank));
    return all;
}

TEST(GpuReducer, IsFoundOutIfItForgetsAnOrder) {
    using testing::AllOf;
    using testing::Each;
    using testing::HasSubstr;
    EXPECT_THAT(reports_of(Mistake::legacy_stream, 1),
                Each(AllOf(HasSubstr("all_reduce call"), HasSubstr("kernel backward 2 on"),
                           HasSubstr("nothing orders them"))));
    EXPECT_THAT(reports_of(Mistake::other_stream, 1),
                Each(AllOf(HasSubstr("kernel completing 0 on"), HasSubstr("all_reduce call"),
                           HasSubstr("kernel optimizer of c on"))));
    EXPECT_THAT(reports_of(Mistake::no_wait, 1),
                Each(AllOf(HasSubstr("kernel optimizer of c on"), HasSubstr("all_reduce call"))));
}

// The same seed, the same report; the order of the streams does not matter for it either.
TEST(GpuReducer, IsFoundOutInTheSameWordsEachTime) {
    const auto first = reports_of(Mistake::legacy_stream, 1);
    EXPECT_EQ(reports_of(Mistake::legacy_stream, 1), first);
    EXPECT_EQ(reports_of(Mistake::legacy_stream, 2), first);
}

}  // namespace
}  // namespace ddprun::trainer
