// NCCL on this machine's GPUs: each type and each collective, on as many ranks as DDPRUN_GPUS says
// (default one). Skipped where there is no GPU; what needs several ranks, where DDPRUN_GPUS does
// not say so.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/trainer/group_rank.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/gpu/gpu.h"
#include "trainer/gradients/gradient_reducer.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;

// Tests of one machine share its GPUs, so more than one must be asked for.
int wanted() {
    const char* text = std::getenv("DDPRUN_GPUS");
    return text ? std::atoi(text) : 1;
}

// GPU memory that begins with these values. is() looks at what it holds later.
template <class T>
struct OnGpu {
    explicit OnGpu(const std::vector<T>& values)
        : count(values.size()), data(gpu_allocate(count * sizeof(T)).value()) {
        (void)gpu_copy(data, values.data(), count * sizeof(T));
    }
    ~OnGpu() { gpu_free(data); }
    OnGpu(const OnGpu&) = delete;
    OnGpu& operator=(const OnGpu&) = delete;
    Buffer buffer() const { return {data, count, data_type<T>()}; }
    bool is(double expected) const {
        std::vector<T> values(count);
        if (!gpu_copy(values.data(), data, count * sizeof(T))) return false;
        for (const T& v : values)
            if (static_cast<double>(v) != expected) return false;
        return true;
    }
    std::size_t count;
    void* data;
};

// Each rank holds twos. Their sums are exact in each type, also in 8 bits of precision, so results
// are compared exactly. Says which call is wrong.
template <class T>
bool works(ProcessGroup& group) {
    const double ranks = group.size();
    const auto all = static_cast<std::size_t>(group.size());
    const T two = static_cast<T>(2.0f), zero = static_cast<T>(0.0f);
    const std::vector<T> part(1000, two), whole(1000 * all, two);
    const std::vector<T> no_part(1000, zero), nothing(1000 * all, zero);
    OnGpu<T> a(part), b(part), c(part), d(part), in(part), gathered(nothing), scattered(no_part),
        exchanged(nothing), wide(whole);
    const auto good = [](const char* call, const Result<void>& done, const OnGpu<T>& out,
                         double expected) {
        if (done && out.is(expected)) return true;
        std::fprintf(stderr, "%s: %s\n", call,
                     done ? "wrong values" : done.error().sentence().c_str());
        return false;
    };
    return good("all_reduce", group.all_reduce(a.buffer()), a, 2 * ranks) &&
           good("max", group.all_reduce(b.buffer(), ReduceOp::max), b, 2) &&
           good("broadcast", group.broadcast(c.buffer()), c, 2) &&
           good("reduce", group.reduce(d.buffer(), ReduceOp::min), d, 2) &&
           good("all_gather", group.all_gather(in.buffer(), gathered.buffer()), gathered, 2) &&
           good("reduce_scatter", group.reduce_scatter(wide.buffer(), scattered.buffer()),
                scattered, 2 * ranks) &&
           good("gather", group.gather(in.buffer(), gathered.buffer()), gathered, 2) &&
           good("scatter", group.scatter(wide.buffer(), scattered.buffer()), scattered, 2) &&
           good("all_to_all", group.all_to_all(wide.buffer(), exchanged.buffer()), exchanged, 2);
}

// Each rank on its own GPU: `body` gets its store and a group.
void on_all_gpus(int least, const std::function<int(test::StoreRank&, ProcessGroup&)>& body,
                 const test::Ends& ends) {
    if (wanted() < least) GTEST_SKIP() << "DDPRUN_GPUS is less than " << least;
    EXPECT_EQ(test::run_ranks(
                  wanted(),
                  [&](const Context& context) {
                      test::StoreRank me(context);
                      auto group =
                          make_process_group(context, *me.store, {Backend::nccl, seconds(60), {}});
                      return group ? body(me, **group)
                                   : test::expects_error(group.error(), "no error");
                  },
                  seconds(120)),
              ends);
}

test::Ends all_well() { return test::Ends(static_cast<std::size_t>(wanted()), 0); }

// Ranks in rows of two and in columns, whose calls are under way at the same time, in one order.
TEST(NcclOfSeveral, WorksInRowsAndColumns) {
    on_all_gpus(
        4,
        [](test::StoreRank&, ProcessGroup& group) {
            auto row = group.split(group.rank() / 2), column = group.split(group.rank() % 2);
            if (!row || !column) return 1;
            OnGpu<float> in_row(std::vector<float>(1 << 20, 1.0f)),
                in_column(std::vector<float>(1 << 20, 1.0f));
            for (int i = 0; i < 3; ++i) {
                const auto first = (*row)->begin(Operation::all_reduce(in_row.buffer()));
                const auto second = (*column)->begin(Operation::all_reduce(in_column.buffer()));
                if (!first.wait() || !second.wait()) return 2;
            }
            const auto cubed = [](int n) { return static_cast<double>(n * n * n); };
            if (!in_row.is(cubed((*row)->size())) || !in_column.is(cubed((*column)->size())))
                return 3;
            return group.barrier() ? 0 : 4;
        },
        all_well());
}

// A rank whose parameters drift apart is named in the same step.
TEST(NcclOfSeveral, NamesTheReplicaThatDrifts) {
    on_all_gpus(
        2,
        [](test::StoreRank&, ProcessGroup& group) {
            OnGpu<float> weights(std::vector<float>(1000, static_cast<float>(group.rank())));
            auto reducer = GradientReducer::make(group, {{"w", weights.buffer()}});
            if (!reducer || !weights.is(0)) return 1;
            const float drifted = 1e-6f;
            for (int step = 1; step <= 2; ++step) {
                if (step == 2 && group.rank() == 1)
                    (void)gpu_copy(weights.data, &drifted, sizeof drifted);
                if (!(*reducer)->zero() || !(*reducer)->ready(0)) return 2;
                const auto done = (*reducer)->finish();
                if (step == 1 && !done) return 3;
                if (step == 2) return test::expects_error(done, "the content of \"w\" is not");
            }
            return 4;
        },
        all_well());
}

// A rank is killed while the others are in a collective. They end with an error that names it, long
// before the time-out.
TEST(NcclOfSeveral, NoticesAKilledRank) {
    auto ends = all_well();
    ends.back() = -SIGKILL;
    on_all_gpus(
        2,
        [](test::StoreRank& me, ProcessGroup& group) {
            OnGpu<float> values(std::vector<float>(1 << 20, 1.0f));
            if (!group.all_reduce(values.buffer())) return 1;
            if (group.rank() + 1 == group.size()) {
                (void)me.hear("waits");
                (void)raise(SIGKILL);
            }
            if (group.rank() == 0) (void)me.say("waits");
            const auto begun = std::chrono::steady_clock::now();
            const auto done = group.all_reduce(values.buffer());
            if (std::chrono::steady_clock::now() - begun > seconds(30)) return 2;
            return test::expects_error(done, "rank " + std::to_string(group.size() - 1));
        },
        ends);
}

// For tests/gpu.sh, which prints its lines.
TEST(NcclOfSeveral, DISABLED_Speed) {
    on_all_gpus(
        2,
        [](test::StoreRank&, ProcessGroup& group) {
            for (const std::size_t mib : {1, 16, 256}) {
                OnGpu<float> values(std::vector<float>((mib << 20) / sizeof(float)));
                constexpr int kWarmUp = 5, kCalls = 20;
                auto begun = std::chrono::steady_clock::now();
                for (int i = 0; i < kWarmUp + kCalls; ++i) {
                    if (i == kWarmUp) begun = std::chrono::steady_clock::now();
                    if (!group.all_reduce(values.buffer())) return 1;
                }
                const std::chrono::duration<double> each =
                    (std::chrono::steady_clock::now() - begun) / kCalls;
                if (group.rank() == 0)
                    std::printf("speed: all_reduce of %zu MiB over %d ranks: %.3f ms\n", mib,
                                group.size(), 1000 * each.count());
            }
            std::fflush(stdout);
            return 0;
        },
        all_well());
}

// The two backends have one interface. What the tests of Gloo check in detail must at least work
// here.
TEST(Nccl, MovesEveryTypeInEveryWay) {
    // Asked in a child: a process that has used CUDA cannot fork ranks that use it.
    auto has_gpu = test::run_ranks(1, [](const Context&) { return gpu_count() ? 0 : 77; });
    if (has_gpu != test::Ends({0})) GTEST_SKIP() << "no GPU here";
    auto ends = test::run_ranks(
        wanted(),
        [](const Context& context) {
            auto store = connect_store(context, seconds(30)).value();
            auto group =
                make_process_group(context, *store, {Backend::nccl, seconds(60), {}}).value();
            if (!works<float>(*group) || !works<double>(*group) || !works<Half>(*group)) return 1;
            if (!works<BFloat16>(*group) || !works<std::int32_t>(*group)) return 2;
            if (!works<std::int64_t>(*group) || !works<std::uint8_t>(*group)) return 3;
            double values[] = {1.5};
            if (!group->all_reduce_values(values) || values[0] != 1.5 * group->size()) return 4;
            auto part = group->split(0);
            if (!part) {
                std::fprintf(stderr, "split: %s\n", part.error().sentence().c_str());
                return 5;
            }
            if (!works<float>(**part)) return 5;
            // 4 MB, so that the call is still under way when begin() returns.
            OnGpu<float> begun(std::vector<float>(1 << 20, 1.0f));
            auto work = group->begin(Operation::all_reduce(begun.buffer()));
            if (!work.wait() || !begun.is(group->size())) return 6;
            return group->barrier() && group->monitored_barrier() ? 0 : 7;
        },
        seconds(120));
    EXPECT_EQ(ends, test::Ends(static_cast<std::size_t>(wanted()), 0));
}

}  // namespace
}  // namespace ddprun::trainer
