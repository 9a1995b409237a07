// The process group over Gloo: results, order and wrong calls. Each rank is a real process on
// loopback. Ranks that make different calls must get an error with names on all of them, and never
// a hang or a wrong result. process_group_failures_test.cc has the ranks that are lost.
#include "trainer/backend/make_process_group.h"
#include "trainer/gloo/process_group_gloo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>

#include "tests/trainer/group_rank.h"
#include "trainer/choice/backend_choice.h"
#include "trainer/group/group_memory.h"
#include "trainer/snapshot/format/snapshot_manifest.h"

namespace ddprun::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;

using Rank = test::GroupRank;

// 1001 elements, which three ranks cannot divide evenly. Rank r holds r + 1.
template <class T>
bool reduces(ProcessGroup& group, ReduceOp op, double expected) {
    std::vector<T> values(1001, static_cast<T>(group.rank() + 1));
    if (!group.all_reduce(buffer_of(std::span<T>(values)), op)) return false;
    return std::all_of(values.begin(), values.end(),
                       [&](T v) { return static_cast<double>(v) == expected; });
}

// Three ranks hold 1, 2 and 3: sum, average, least and greatest, in each type.
TEST(ProcessGroup, Reduces) {
    auto ends = run_ranks(3, [](const Context& context) {
        Rank me(context);
        auto& g = *me.group;
        const bool sums = reduces<float>(g, ReduceOp::sum, 6) &&
                          reduces<double>(g, ReduceOp::sum, 6) &&
                          reduces<std::int32_t>(g, ReduceOp::sum, 6) &&
                          reduces<std::int64_t>(g, ReduceOp::sum, 6);
        const bool averages =
            reduces<float>(g, ReduceOp::avg, 2) && reduces<double>(g, ReduceOp::avg, 2);
        const bool ends = reduces<float>(g, ReduceOp::min, 1) &&
                          reduces<double>(g, ReduceOp::max, 3) &&
                          reduces<std::int32_t>(g, ReduceOp::max, 3) &&
                          reduces<std::int64_t>(g, ReduceOp::min, 1);
        return sums && averages && ends ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Each rank is the root once. Buffers of an odd size, and at last one without any element.
TEST(ProcessGroup, BroadcastsFromEachRoot) {
    auto ends = run_ranks(4, [](const Context& context) {
        Rank me(context);
        for (int root = 0; root < 4; ++root) {
            std::vector<std::uint8_t> values(7777, static_cast<std::uint8_t>(me.group->rank()));
            if (!me.group->broadcast(buffer_of(std::span(values)), root)) return 1;
            if (values.front() != root || values.back() != root) return 2;
            if (!me.group->barrier()) return 3;
        }
        return me.group->broadcast({}, 0) ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
}

// The order of additions changes the last bits of a sum. It is fixed, so all ranks and a second run
// have equal bits. Without this, parameters drift apart, and no resume can be compared.
TEST(ProcessGroup, GivesTheSameBitsOnAllRanksAndInEachRun) {
    test::TemporaryFolder folder;
    for (int run = 0; run < 2; ++run) {
        auto ends = run_ranks(4, [&](const Context& context) {
            Rank me(context);
            std::vector<float> values(300'001);
            for (std::size_t i = 0; i < values.size(); ++i) {
                values[i] =
                    // Numbers whose sums round.
                    std::sin(static_cast<float>(i) * static_cast<float>(me.group->rank() + 1));
            }
            if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
            // One file for each run and rank: its checksum.
            const auto name = std::to_string(run) + std::to_string(me.group->rank());
            test::write_all(folder.path() / name, checksum_of(std::as_bytes(std::span(values))));
            return 0;
        });
        ASSERT_EQ(ends, Ends({0, 0, 0, 0}));
    }
    const std::string first = test::read_all(folder.path() / "00");
    for (const char* name : {"01", "02", "03", "10", "11", "12", "13"}) {
        EXPECT_EQ(test::read_all(folder.path() / name), first) << name;
    }
}

// Two ranks bring buffers of unequal size. Gloo itself would end the process. The ranks compare the
// call first, and both get an error with both sizes.
TEST(ProcessGroup, RefusesUnequalSizes) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context);
        std::vector<float> values(context.is_first() ? 100 : 1'000'000);
        auto done = me.group->all_reduce(buffer_of(std::span(values)));
        if (done || done.error().code() != ErrorCode::refused) return 1;
        const std::string text = done.error().sentence();
        const bool named = text.find("number 1 of 100 F32") != std::string::npos &&
                           text.find("number 1 of 1000000 F32") != std::string::npos;
        // The group is over, and says the same again.
        return named && me.group->barrier().error() == done.error() ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The ranks have agreed on a shape, and then one of them brings another shape. No process dies, and
// both get an error.
TEST(ProcessGroup, SurvivesAnOldShapeAgainstANewOne) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, milliseconds(700));
        std::vector<float> values(10), more(100'000);
        if (!me.group->all_reduce(buffer_of(std::span(values)))) return 1;
        return me.group->all_reduce(buffer_of(std::span(context.is_first() ? values : more))) ? 2
                                                                                              : 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Without a GPU, "automatic" is Gloo on all ranks, and a demand for NCCL is refused with the
// reason. Ranks that chose differently would wait for each other.
TEST(ProcessGroup, ChoosesTheSameBackendOnAllRanks) {
    auto ends = run_ranks(2, [](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        std::string note;
        auto chosen = make_process_group(
            context, *store, {Backend::automatic, seconds(10), [&](auto& t) { note = t; }});
        if (!chosen) return 1;
        // A machine with a GPU for each rank: there is nothing to refuse.
        if (std::string((*chosen)->backend()) == "nccl") return 0;
        if (!note.starts_with("using Gloo: rank 0 has no GPU")) return 2;
        // Another part of the store: the ranks' GPUs of the first group are still in this one.
        auto other = store->another("demanded").value();
        auto demanded = make_process_group(context, *other, {Backend::nccl, seconds(10), {}});
        if (demanded || demanded.error().code() != ErrorCode::refused) return 3;
        return test::expects_error(demanded.error(), "rank 0 has no GPU that NCCL can use");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// NCCL needs a GPU for each rank. Ranks that share one are named with the GPU, and so is a rank
// without any. Each text is a rank's GPU as host/number.
TEST(BackendChoice, NeedsAGpuForEachRank) {
    EXPECT_EQ(choose_backend({"a/0", "a/1", "b/0"}).backend, Backend::nccl);
    const auto shared = choose_backend({"a/0", "a/1", "b/0", "a/1"});
    EXPECT_EQ(shared.backend, Backend::gloo);
    EXPECT_EQ(shared.reason, "ranks 1 and 3 share the GPU a/1");
    EXPECT_EQ(choose_backend({"a/0", ""}).reason, "rank 1 has no GPU that NCCL can use");
}

// A caller's mistake is refused before anything moves, and leaves the group usable. A world of one
// needs no network.
TEST(ProcessGroup, RefusesWrongArguments) {
    Context context;
    Rank me(context);
    std::vector<std::int32_t> values{1, 2};
    EXPECT_FALSE(me.group->all_reduce(buffer_of(std::span(values)), ReduceOp::avg));
    EXPECT_FALSE(me.group->broadcast(buffer_of(std::span(values)), 1));
    EXPECT_FALSE(me.group->all_reduce({nullptr, 3, DataType::float32}));
    EXPECT_TRUE(me.group->all_reduce(buffer_of(std::span(values))));
    EXPECT_EQ(values, (std::vector<std::int32_t>{1, 2}));
}

// Ten calls are begun before the first one is waited for, and a blocking call takes its turn behind
// them: three ranks make 3 of 1, and 9 of the buffer that is summed twice. The handles outlive the
// group.
TEST(ProcessGroup, CarriesOutWhatWasBegunInOrder) {
    auto ends = run_ranks(3, [](const Context& context) {
        auto me = std::make_unique<Rank>(context);
        std::vector<std::vector<float>> values(10, std::vector<float>(5000, 1.0f));
        std::vector<Work> works;
        for (auto& v : values)
            works.push_back(me->group->begin(Operation::all_reduce(buffer_of(std::span(v)))));
        // A blocking call takes its turn behind them.
        if (!me->group->all_reduce(buffer_of(std::span(values[0])))) return 1;
        // The group ends here, and with it everything that was begun.
        me.reset();
        for (const auto& work : works) {
            if (!work.done() || !work.wait() || work.ended().time_since_epoch().count() <= 0)
                return 2;
        }
        return values[0][7] == 9.0f && values[9][4999] == 3.0f ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Calls that were begun may be under way together, but not on one buffer: the second needs the
// result of the first. The whole, its second half and the whole again give factors of 9 and 27.
TEST(ProcessGroup, TakesTurnsOnOneBuffer) {
    auto ends = run_ranks(3, [](const Context& context) {
        Rank me(context);
        std::vector<float> values(200'000, 1.0f);
        const auto whole = std::span(values);
        std::vector<Work> works;
        for (auto part : {whole, whole.subspan(100'000), whole})
            works.push_back(me.group->begin(Operation::all_reduce(buffer_of(part))));
        for (const auto& work : works)
            if (!work.wait()) return 1;
        return values[7] == 9.0f && values[199'999] == 27.0f ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Even and odd ranks form groups of their own, and rank 4 joins none. The parts work side by side,
// can be split again, and leave the whole group usable.
TEST(ProcessGroup, Splits) {
    auto ends = run_ranks(5, [](const Context& context) {
        Rank me(context);
        const int rank = context.rank.value;
        auto part = me.group->split(rank == 4 ? -1 : rank % 2);
        if (!part) return 1;
        if (rank == 4) return *part ? 2 : me.group->barrier() ? 0 : 3;
        if ((*part)->size() != 2 || (*part)->rank() != rank / 2) return 4;
        std::vector<double> sum{static_cast<double>(rank)};
        if (!(*part)->all_reduce(buffer_of(std::span(sum)))) return 5;
        if (sum[0] != (rank % 2 ? 4 : 2)) return 6;
        auto again = (*part)->split(0);
        if (!again || !(*again)->all_reduce(buffer_of(std::span(sum)))) return 7;
        if (sum[0] != (rank % 2 ? 8 : 4)) return 8;
        return me.group->barrier() ? 0 : 9;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0, 0}));
}

// Ranks that call different things (round 0), or the same with another type (round 1): a usual
// mistake after an `if (rank == 0)`. Both get an error that has both calls.
TEST(ProcessGroup, TellsWhoDisagrees) {
    auto ends = run_ranks(2, [](const Context& context) {
        for (int round = 0; round < 2; ++round) {
            GroupOptions options{Backend::gloo, seconds(10), {}};
            auto store = connect_store(context, seconds(10)).value();
            // A failed group stays failed, so each round has its own group in its own part of the
            // store.
            auto own = store->another("round" + std::to_string(round)).value();
            auto group = make_gloo_group(context, std::move(own), options).value();
            std::vector<float> floats(8);
            std::vector<std::int32_t> ints(8);
            const Buffer mine = context.is_first() || round == 0 ? buffer_of(std::span(floats))
                                                                 : buffer_of(std::span(ints));
            if (!group->barrier()) return 1;
            auto done = context.is_first() || round == 1 ? group->all_reduce(mine, ReduceOp::max)
                                                         : group->broadcast(mine, 1);
            if (done || done.error().code() != ErrorCode::refused) return 2;
            const std::string text = done.error().sentence();
            const auto* words = round == 0
                                    ? "broadcast number 2 of 8 F32 (32 bytes), root 1"
                                    : "all_reduce number 2 of 8 I32 (32 bytes), operator max";
            if (text.find(words) == std::string::npos) return 3;
            if (text.find("all_reduce number 2 of 8 F32 (32 bytes), operator max") ==
                std::string::npos)
                return 4;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A message between two ranks has another size than the receiver expects. It is refused there,
// before data are written, and the sender learns of it.
TEST(ProcessGroup, RefusesAMessageOfAnotherSize) {
    auto ends = run_ranks(2, [](const Context& context) {
        Rank me(context, seconds(20));
        std::vector<float> values(context.is_first() ? 10 : 2'000'000);
        auto done = context.is_first() ? me.group->receive(buffer_of(std::span(values)), 1)
                                       : me.group->send(buffer_of(std::span(values)), 0);
        if (done) return 1;
        return test::expects_error(done, "rank 1 sends 2000000 F32, this rank expects 10 F32");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// Whether the kernel may use huge pages at an address: "hg" among the flags of its mapping.
bool asks_for_huge_pages(const void* at) {
    std::ifstream maps("/proc/self/smaps");
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long first = 0, last = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
            inside = first <= address && address < last;
        if (inside && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
    }
    return false;
}

// A rank reads another one's memory two to three times as fast in huge pages. Only whole ones are
// asked for, memory is zeroed whatever its size, and it can be had and given back often.
TEST(GroupMemory, IsInHugePagesWhereItIsLarge) {
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    const bool there = std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000}, kHuge - 4096, kHuge - 1,
                                    kHuge, kHuge + 1, 3 * kHuge - 1, 20 * kHuge}) {
        for (int i = 0; i < 20; ++i) {
            const auto memory = GroupMemory::make(Memory::host, bytes).value();
            const std::span<char> all(static_cast<char*>(memory.data()), bytes);
            ASSERT_TRUE(std::all_of(all.begin(), all.end(), [](char c) { return c == 0; }));
            std::fill(all.begin(), all.end(), 'x');
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
            ASSERT_TRUE(!there || bytes < kHuge || asks_for_huge_pages(memory.data())) << bytes;
        }
    }
}

}  // namespace
}  // namespace ddprun::trainer
