// The played GPU keeps CUDA's rules, and reports what they do not order. Each test has a process of
// its own, since a process has one device.
#include <gtest/gtest.h>

#include "tests/trainer/gpu_host/gpu_host.h"
#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::launch;
using test::make_non_blocking_stream;
using test::make_stream;
using test::reads;
using test::run_ranks;
using test::writes;

Ends in_a_process(const std::function<int()>& body) {
    return run_ranks(1, [&](const Context&) { return body(); });
}

// A number on the GPU.
struct Number {
    int* data = static_cast<int*>(gpu_allocate(sizeof(int)).value());
    void set(GpuStream stream, int value, const std::string& name = "set") {
        launch(name, stream, {writes(data, sizeof(int))}, [to = data, value] { *to = value; });
    }
    void copy(GpuStream stream, Number& from) {
        launch("copy", stream, {reads(from.data, sizeof(int)), writes(data, sizeof(int))},
               [to = data, read = from.data] { *to = *read; });
    }
    int read() {
        int value = 0;
        (void)gpu_copy(&value, data, sizeof value);
        return value;
    }
};

// What is ordered by a stream, an event or the host has its right values, whatever the delays, and
// is not reported.
TEST(Device, CarriesOutWhatIsOrdered) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
        auto ends = in_a_process([seed] {
            Device::get().seed(seed);
            const GpuStream one = make_non_blocking_stream(), two = make_non_blocking_stream();
            Number a, b, c;
            for (int i = 1; i <= 20; ++i) a.set(one, i);
            auto written = GpuEvent::record(one).value();
            // Behind the event, so what comes after it does not see this.
            if (!written.before(two)) return 1;
            b.copy(two, a);
            auto read = GpuEvent::record(two).value();
            if (!read.wait()) return 2;
            a.set(one, 99);
            if (!GpuEvent::record(one)->wait()) return 3;
            c.copy(two, a);
            if (!GpuEvent::record(two)->wait()) return 4;
            if (*b.data != 20 || *c.data != 99) return 5;
            return all_is_ordered() ? 0 : 6;
        });
        EXPECT_EQ(ends, Ends({0})) << "seed " << seed;
    }
}

// The legacy stream waits for blocking streams and the default streams of threads, and they for it.
TEST(Device, OrdersTheLegacyStreamWithBlockingStreams) {
    auto ends = in_a_process([] {
        const GpuStream blocking = make_stream();
        Number a, b, c;
        a.set(blocking, 1);
        b.copy(nullptr, a);
        c.copy(gpu_thread_stream(), b);
        a.set(blocking, 2);
        b.copy(gpu_legacy_stream(), c);
        if (b.read() != 1) return 1;
        return all_is_ordered() ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// Two blocking streams, a non-blocking stream and the legacy one, the default streams of two
// threads: nothing orders these.
TEST(Device, ReportsWhatNothingOrders) {
    auto ends = in_a_process([] {
        Number a, b, c, d;
        a.set(make_stream(), 1, "first");
        a.set(make_stream(), 2, "second");
        if (Device::get().reports().size() != 1) return 1;
        const auto report = Device::get().reports()[0];
        std::fprintf(stderr, "%s\n", report.c_str());
        if (report !=
            "kernel second on stream 2 writes memory 1 from byte 0, which kernel first on stream 1 "
            "writes; nothing orders them")
            return 2;
        b.set(make_non_blocking_stream(), 1);
        b.set(nullptr, 2);
        if (Device::get().reports().size() != 2) return 3;
        std::thread other([&] { c.set(gpu_thread_stream(), 1); });
        other.join();
        c.set(gpu_thread_stream(), 2);
        if (Device::get().reports().size() != 3) return 4;
        // Reading twice is no conflict; reading beside a write is one.
        Number e, f;
        e.copy(make_non_blocking_stream(), d);
        f.copy(make_non_blocking_stream(), d);
        if (Device::get().reports().size() != 3) return 5;
        d.set(make_non_blocking_stream(), 1);
        return Device::get().reports().size() == 5 ? 0 : 6;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// An event orders what was before it when it was recorded, not what came later.
TEST(Device, TakesAnEventForThePointWhereItWasRecorded) {
    auto ends = in_a_process([] {
        const GpuStream one = make_non_blocking_stream(), two = make_non_blocking_stream();
        Number a, b;
        auto early = GpuEvent::record(one).value();
        a.set(one, 1);
        (void)early.before(two);
        b.copy(two, a);
        return Device::get().reports().size() == 1 ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// The host that touches memory too early, and one that has waited.
TEST(Device, ReportsAHostThatDoesNotWait) {
    auto ends = in_a_process([] {
        const GpuStream stream = make_stream();
        Number a;
        a.set(stream, 1);
        Device::get().host_touches("the program", reads(a.data, sizeof(int)));
        if (Device::get().reports().size() != 1) return 1;
        if (!GpuEvent::record(stream)->wait()) return 2;
        Device::get().host_touches("the program", reads(a.data, sizeof(int)));
        return Device::get().reports().size() == 1 ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// A graph of two streams, replayed: its arrows order it, and each replay comes in the stream's
// turn.
TEST(Device, ReplaysAGraph) {
    auto ends = in_a_process([] {
        const GpuStream main = make_non_blocking_stream(), side = make_non_blocking_stream();
        Number a, b;
        Device::get().begin_capture(main);
        launch("add", main, {writes(a.data, sizeof(int))}, [&] { ++*a.data; });
        auto forth = GpuEvent::record(main).value();
        if (!forth.before(side) || !gpu_is_captured(side)) return 1;
        b.copy(side, a);
        auto back = GpuEvent::record(side).value();
        (void)back.before(main);
        const auto graph = Device::get().end_capture(main);
        if (*a.data != 0 || graph.size() != 2) return 2;
        for (int i = 0; i < 3; ++i) Device::get().launch(graph, main);
        if (!GpuEvent::record(main)->wait()) return 3;
        if (*a.data != 3 || *b.data != 3) return 4;
        return all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0}));
}

// What CUDA forbids during a capture: the legacy stream, a host that waits, and a stream that does
// not come back.
TEST(Device, ReportsWhatBreaksACapture) {
    auto ends = in_a_process([] {
        const GpuStream main = make_non_blocking_stream(), side = make_non_blocking_stream();
        Number a, b;
        auto before = GpuEvent::record(side).value();
        Device::get().begin_capture(main);
        a.set(nullptr, 1);
        (void)before.wait();
        std::thread watch([&] {
            gpu_watches_only();
            (void)before.seen();
        });
        watch.join();
        if (Device::get().reports().size() != 2) return 1;
        (void)GpuEvent::record(main)->before(side);
        b.set(side, 1);
        (void)Device::get().end_capture(main);
        return Device::get().reports().size() == 3 ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
