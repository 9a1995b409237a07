// The group over NCCL, asynchronous: what streams order and the host does not wait for. On the
// played GPU, with the double of NCCL, whose ranks are processes.
#include <gtest/gtest.h>

#include <thread>

#include "tests/trainer/gpu_rank.h"
#include "trainer/gpu/gpu_copier.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::GpuFloats;
using test::GpuRank;
using test::run_gpu_ranks;

// The numbers come from a kernel of any stream, are summed, and are read by another stream: right
// for each seed, and nothing is reported.
TEST(NcclAsync, ComesBetweenTheStreamsThatWriteAndRead) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
        auto ends = run_gpu_ranks(2, [seed](const Context& context) {
            GpuRank me(context);
            Device::get().seed(seed);
            const GpuStream streams[] = {test::make_stream(), test::make_non_blocking_stream(),
                                         gpu_thread_stream(), nullptr};
            GpuFloats numbers(1000);
            for (GpuStream writer : streams)
                for (GpuStream reader : streams) {
                    numbers.fill(writer, static_cast<float>(context.rank.value + 1));
                    auto work = me.group->begin(Operation::all_reduce(numbers.buffer()).on(writer));
                    if (!work.wait(reader)) return 1;
                    numbers.scale(reader, 2);
                    if (!numbers.are(6, reader)) return 2;
                }
            return all_is_ordered() ? 0 : 3;
        });
        ASSERT_EQ(ends, Ends({0, 0})) << "seed " << seed;
    }
}

// While the GPU does nothing at all, a program gives it its step: kernels, calls, and waits of
// streams. Nothing of it waits on the host.
TEST(NcclAsync, NeverBlocksTheHost) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        const GpuStream stream = test::make_stream();
        GpuFloats numbers(1000);
        // The first calls of a shape are compared, which takes both ranks.
        for (int i = 0; i < 3; ++i)
            if (!me.group->all_reduce(numbers.buffer())) return 1;
        Device::get().hold(true);
        numbers.fill(stream, 1);
        std::vector<Work> works;
        for (int i = 0; i < 5; ++i) {
            works.push_back(me.group->begin(Operation::all_reduce(numbers.buffer()).on(stream)));
            if (!works.back().wait(stream)) return 2;
            numbers.scale(stream, 0.5f);
        }
        for (const Work& work : works)
            if (work.done()) return 3;
        Device::get().hold(false);
        for (const Work& work : works)
            if (!work.wait() || work.ended() == Work::Time()) return 4;
        return numbers.are(1, stream) && all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// All operations, once each, and calls between two ranks.
TEST(NcclAsync, DoesEachOperation) {
    auto ends = run_gpu_ranks(3, [](const Context& context) {
        GpuRank me(context);
        ProcessGroup& group = *me.group;
        const GpuStream stream = test::make_stream();
        const auto mine = static_cast<float>(context.rank.value);
        const int next = (context.rank.value + 1) % 3, last = (context.rank.value + 2) % 3;
        GpuFloats part(4), whole(12), got(4);
        const auto done = [&](const Operation& o) { return group.call(o.on(stream)); };
        part.fill(stream, mine);
        if (!done(Operation::broadcast(part.buffer(), 2)) || !part.are(2, stream)) return 1;
        part.fill(stream, mine);
        if (!done(Operation::reduce(part.buffer(), ReduceOp::max, 1))) return 2;
        if (context.rank.value == 1 && !part.are(2, stream)) return 3;
        part.fill(stream, mine);
        if (!done(Operation::all_gather(part.buffer(), whole.buffer()))) return 4;
        if (whole.values()[0] != 0 || whole.values()[5] != 1 || whole.values()[11] != 2) return 5;
        if (!done(Operation::reduce_scatter(whole.buffer(), got.buffer()))) return 6;
        if (!got.are(3 * mine, stream)) return 7;
        if (!done(Operation::gather(part.buffer(), whole.buffer(), 0))) return 8;
        if (!done(Operation::scatter(whole.buffer(), got.buffer(), 0)) || !got.are(mine, stream))
            return 9;
        if (!done(Operation::all_gather(part.buffer(), whole.buffer()))) return 10;
        GpuFloats turned(12);
        if (!done(Operation::all_to_all(whole.buffer(), turned.buffer())) ||
            !turned.are(mine, stream))
            return 11;
        if (!done(Operation::exchange(part.buffer(), next, got.buffer(), last)) ||
            !got.are(static_cast<float>(last), stream))
            return 12;
        double values[] = {1.5};
        if (!group.all_reduce_values(values) || values[0] != 4.5) return 13;
        if (!group.barrier() || !group.monitored_barrier()) return 14;
        return all_is_ordered() ? 0 : 15;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// A group and its part are given calls in turn: all ranks launch them in the order of the program.
TEST(NcclAsync, LaunchesAGroupAndItsPartsInOneOrder) {
    auto ends = run_gpu_ranks(3, [](const Context& context) {
        GpuRank me(context);
        auto part = me.group->split(context.rank.value == 2 ? -1 : 0).value();
        if (static_cast<bool>(part) == (context.rank.value == 2)) return 1;
        const std::size_t before = test::nccl_launches().size();
        GpuFloats numbers(10), others(20);
        std::vector<Work> works;
        for (int i = 0; i < 5; ++i) {
            if (part) works.push_back(part->begin(Operation::all_reduce(numbers.buffer())));
            works.push_back(me.group->begin(Operation::all_reduce(others.buffer())));
        }
        for (const Work& work : works)
            if (!work.wait()) return 2;
        const auto launches = test::nccl_launches();
        for (std::size_t i = before; i < launches.size(); ++i) {
            const bool of_part = part && (i - before) % 2 == 0;
            if (launches[i] != (of_part ? "2: all_reduce of 10" : "3: all_reduce of 20")) return 3;
        }
        part.reset();
        return all_is_ordered() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// The average over one rank costs no kernel: NCCL has one for it, and none for a sum in place.
TEST(NcclAsync, SumsWhereOneRankAverages) {
    auto ends = run_gpu_ranks(1, [](const Context& context) {
        GpuRank me(context);
        const GpuStream stream = test::make_non_blocking_stream();
        GpuFloats numbers(10);
        numbers.fill(stream, 3);
        const auto average = Operation::all_reduce(numbers.buffer(), ReduceOp::avg).on(stream);
        if (!me.group->call(average)) return 1;
        if (test::nccl_launches().back() != "1: all_reduce of 10") return 2;
        return numbers.are(3, stream) && all_is_ordered() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0}));
    ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        GpuFloats numbers(10);
        if (!me.group->all_reduce(numbers.buffer(), ReduceOp::avg)) return 1;
        return test::nccl_launches().back() == "2: all_reduce of 10, avg" ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A communicator may not be ready for the next call: after a split the parent is not, though the
// call returned success; after any other call NCCL says so.
TEST(NcclAsync, MakesNoCallBeforeTheLastOneIsOver) {
    for (int busy : {0, 5}) {
        auto ends = run_gpu_ranks(2, [busy](const Context& context) {
            GpuRank me(context);
            test::nccl_faults().busy = busy;
            GpuFloats numbers(10);
            for (int color : {0, context.rank.value, context.rank.value - 1}) {
                auto part = me.group->split(color);
                if (!part) return std::fprintf(stderr, "%s\n", part.error().sentence().c_str());
                for (int i = 0; i < 3; ++i) {
                    if (!me.group->all_reduce(numbers.buffer())) return 1;
                    if (*part && !(*part)->all_reduce(numbers.buffer())) return 2;
                }
            }
            return all_is_ordered() ? 0 : 3;
        });
        EXPECT_EQ(ends, Ends({0, 0})) << busy;
    }
}

// A step in a graph: the call is captured with the kernels around it, and each replay sums anew.
// The watch of the group looks at it all the time and breaks nothing.
TEST(NcclAsync, IsCapturedIntoAGraph) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        const GpuStream stream = test::make_non_blocking_stream();
        GpuFloats numbers(100), other(100);
        Device::get().begin_capture(stream);
        numbers.fill(stream, static_cast<float>(context.rank.value + 1));
        auto work = me.group->begin(Operation::all_reduce(numbers.buffer()).on(stream));
        if (!work.wait(stream)) return 1;
        numbers.scale(stream, 2);
        const auto waited = work.wait();
        if (waited || waited.error().code() != ErrorCode::usage) return 2;
        const auto graph = Device::get().end_capture(stream);
        for (int i = 0; i < 3; ++i) {
            Device::get().launch(graph, stream);
            if (!numbers.are(6, stream)) return 3;
            // Around a graph the group works as ever.
            other.fill(stream, 1);
            if (!me.group->call(Operation::all_reduce(other.buffer()).on(stream))) return 4;
        }
        return other.are(2, stream) && all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// A snapshot's copy runs beside the program: behind the step that it is of, in front of the next
// optimizer, and while kernels read. The same without the wait is found.
TEST(NcclAsync, CopiesASnapshotBesideTheProgram) {
    for (bool waits : {true, false}) {
        auto ends = run_gpu_ranks(1, [waits](const Context&) {
            const GpuStream stream = test::make_stream();
            GpuFloats weights(1000), other(1000);
            std::vector<float> kept(1000);
            auto pinned = PinnedPages::pin(kept.data(), kept.size() * 4);
            auto copier = GpuCopier::make().value();
            weights.fill(stream, 5);
            if (!pinned || !copier.begin(stream)) return 1;
            if (!copier.copy(kept.data(), weights.values(), weights.bytes())) return 2;
            auto copied = copier.end().value();
            test::launch("forward", stream,
                         {test::reads(weights.values(), weights.bytes()),
                          test::writes(other.values(), other.bytes())},
                         [] {});
            if (waits && !copied.before(stream)) return 3;
            weights.fill(stream, 6, "optimizer");
            if (!copied.wait()) return 4;
            if (waits && kept != std::vector<float>(1000, 5)) return 5;
            return test::Device::get().reports().empty() == waits ? 0 : 6;
        });
        EXPECT_EQ(ends, Ends({0})) << waits;
    }
}

// Memory that the network reads best, and memory of the program that it is told of.
TEST(NcclAsync, GivesMemoryForItsCalls) {
    auto ends = run_gpu_ranks(2, [](const Context& context) {
        GpuRank me(context);
        auto memory = me.group->allocate(1000);
        if (!memory || reinterpret_cast<std::uintptr_t>(memory->data()) % 256) return 1;
        GpuFloats own(10);
        const auto registered = me.group->registered(own.buffer().data, own.bytes());
        if (!registered) return 2;
        const Buffer numbers{memory->data(), 250, DataType::float32};
        return me.group->all_reduce(numbers) && me.group->all_reduce(own.buffer()) ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
