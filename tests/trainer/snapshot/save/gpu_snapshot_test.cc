// Snapshots of tensors on a GPU, copied beside the program. On the played GPU, where an access that
// nothing orders is reported.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/gpu_rank.h"
#include "trainer/snapshot/save/snapshot_writer.h"

namespace ddprun::trainer {
namespace {

using std::chrono::seconds;
using test::all_is_ordered;
using test::Device;
using test::Ends;
using test::GpuFloats;
using test::run_gpu_ranks;

constexpr std::size_t kCount = 5000;

// Weights on the GPU, and a writer that reads them behind `stream`.
struct Saved {
    Saved(const Context& context, const std::string& folder, GpuTensors from)
        : store(connect_store(context, seconds(10)).value()) {
        WriterOptions options;
        options.file_bytes = 8000;  // so each tensor has a file
        options.timeout = seconds(10);
        options.gpu = from;
        auto kept = SnapshotFolder::open(context, folder, 9, {});
        writer = SnapshotWriter::make(context, *store, std::move(*kept), options).value();
    }
    std::vector<TensorView> views() const {
        const auto one = std::span<const float>(a.values(), kCount);
        const auto two = std::span<const float>(b.values(), kCount);
        return {tensor_view("a", {kCount}, one), tensor_view("b", {kCount}, two)};
    }
    void fill(GpuStream stream, float value) {
        a.fill(stream, value, "optimizer of a");
        b.fill(stream, value, "optimizer of b");
    }

    GpuFloats a{kCount}, b{kCount};
    std::unique_ptr<Store> store;
    std::unique_ptr<SnapshotWriter> writer;
};

// Whether the newest snapshot is of this step, and all its numbers are this one.
bool holds(const Context& context, const std::string& folder, std::int64_t step, float value) {
    auto snapshot = SnapshotFolder::open(context, folder, 9, {})->load_newest();
    if (!snapshot || !*snapshot || (*snapshot)->manifest.name.step != step) return false;
    for (const char* name : {"a", "b"}) {
        const auto* found = (*snapshot)->content.find(name);
        if (!found || found->data.size() != kCount * 4) return false;
        const auto* numbers = reinterpret_cast<const float*>(found->data.data());
        if (std::any_of(numbers, numbers + kCount, [&](float n) { return n != value; }))
            return false;
    }
    return true;
}

// Three steps, each saved while the GPU does nothing: save() waits for none of it. The next
// optimizer comes behind the copies, by the stream's own order or by before_change(). Without
// either it is found. The pages are pinned as long as the writer lives.
TEST(GpuSnapshot, IsCopiedBesideTheProgram) {
    enum class Order { stream, before_change, none };
    for (Order order : {Order::stream, Order::before_change, Order::none}) {
        test::TemporaryFolder folder;
        auto ends = run_gpu_ranks(1, [&](const Context& context) {
            const GpuStream stream = test::make_non_blocking_stream();
            Saved me(context, folder, {stream, order != Order::stream});
            for (int step = 1; step <= 3; ++step) {
                if (!me.writer->wait()) return 1;
                Device::get().hold(true);
                me.fill(stream, static_cast<float>(step));
                if (!me.writer->save(step, me.views(), {})) return 2;
                test::launch("forward", stream, {test::reads(me.a.values(), me.a.bytes())}, [] {});
                if (order == Order::before_change && !me.writer->before_change(stream)) return 3;
                me.fill(stream, -1);
                Device::get().hold(false);
            }
            if (!me.writer->wait() || test::pinned_ranges() != 4) return 4;
            me.writer.reset();
            if (test::pinned_ranges() != 0) return 5;
            if (order == Order::none) return Device::get().reports().empty() ? 6 : 0;
            return holds(context, folder, 3, 3) && all_is_ordered() ? 0 : 7;
        });
        EXPECT_EQ(ends, Ends({0})) << static_cast<int>(order);
    }
}

// A save whose second file cannot be laid out has copies of the first one under way. It fails, its
// memory stays until they are done, and the next save succeeds, also with larger tensors.
TEST(GpuSnapshot, GoesOnAfterAnError) {
    test::TemporaryFolder folder;
    auto ends = run_gpu_ranks(1, [&](const Context& context) {
        const GpuStream stream = test::make_non_blocking_stream();
        Saved me(context, folder, {stream, false});
        auto small = me.views(), wrong = me.views();
        for (auto& view : small) {
            view.shape = {10};
            view.data = view.data.first(40);
        }
        me.writer->prepare(small);
        me.fill(stream, 1);
        if (!me.writer->save(1, small, {})) return 1;
        wrong[1].shape = {kCount + 1};
        if (me.writer->save(2, wrong, {}) || me.writer->wait()) return 2;
        for (int step = 3; step <= 4; ++step)
            if (!me.writer->save(step, me.views(), {})) return 3;
        if (!me.writer->wait() || test::pinned_ranges() != 4) return 4;
        return holds(context, folder, 4, 1) && all_is_ordered() ? 0 : 5;
    });
    EXPECT_EQ(ends, Ends({0}));
}

}  // namespace
}  // namespace ddprun::trainer
