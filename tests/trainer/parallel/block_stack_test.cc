// The model that the parallel examples cut: its derivatives, and that the parts are the whole.
#include "examples/parallel/block_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "examples/parallel/samples.h"
#include "trainer/backend/make_process_group.h"
#include "trainer/snapshot/load/load_into.h"
#include "trainer/tensors/slice_list.h"
#include "trainer/worker/store.h"

namespace example {
namespace {

using namespace ddprun::trainer;

// A world of one, for the reducer in whose memory the gradients lie.
struct Alone {
    Context context;
    std::unique_ptr<Store> store = connect_store(context).value();
    std::unique_ptr<ProcessGroup> group =
        make_process_group(context, *store, {Backend::gloo, std::chrono::seconds(10), {}}).value();
};

constexpr std::int64_t kSamples = 3;

double loss_of(const BlockStack& model) {
    const auto x = inputs_of(0, kSamples);
    double loss = 0;
    (void)slope_of(x, model.forward(x, {}).output, kSamples, loss);
    return loss;
}

// One parameter of each tensor is moved a little in both directions. The difference of the losses
// is the gradient; half of a percent is what float leaves of it.
TEST(BlockStack, HasTheDerivativesOfItsLoss) {
    Alone alone;
    BlockStack model({});
    auto parameters = model.parameters();
    const auto reducer = GradientReducer::make(*alone.group, parameters).value();
    const auto x = inputs_of(0, kSamples);
    const Pass pass = model.forward(x, {});
    double loss = 0;
    (void)model.backward(pass, slope_of(x, pass.output, kSamples, loss), {}, *reducer);
    ASSERT_TRUE(reducer->finish());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        auto* values = static_cast<float*>(parameters[i].buffer.data);
        const auto* gradient = static_cast<const float*>(reducer->gradient(i).data);
        // The element with the greatest gradient, where the difference says most.
        std::size_t at = 0;
        for (std::size_t j = 0; j < parameters[i].buffer.count; ++j)
            if (std::abs(gradient[j]) > std::abs(gradient[at])) at = j;
        const float kept = values[at], step = 0.05f;
        values[at] = kept + step;
        const double above = loss_of(model);
        values[at] = kept - step;
        const double below = loss_of(model);
        values[at] = kept;
        const double expected = (above - below) / (2 * static_cast<double>(step));
        const double actual = static_cast<double>(gradient[at]);
        EXPECT_NEAR(actual, expected, 0.005 * std::abs(expected)) << parameters[i].name;
    }
}

// Two halves of the hidden units add up to the output of the whole block. The sum over ranks is
// played: the second half gets what the first one gave.
TEST(BlockStack, IsTheSumOfItsParts) {
    const auto x = inputs_of(5, kSamples);
    const BlockStack whole({0, 1, 0, kHidden}), left({0, 1, 0, kHidden / 2}),
        right({0, 1, kHidden / 2, kHidden});
    std::vector<float> from_left;
    (void)left.forward(x,
                       [&](std::span<float> part) { from_left.assign(part.begin(), part.end()); });
    const Pass parts = right.forward(x, [&](std::span<float> part) {
        for (std::size_t i = 0; i < part.size(); ++i) part[i] += from_left[i];
    });
    const auto expected = whole.forward(x, {}).output;
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(parts.output[i], expected[i], 1e-5) << i;
}

// The slices of a grid of stages and columns are whole tensors, with the bias of each block twice;
// and each value is in its place.
TEST(BlockStack, BringsSlicesOfTheWholeModel) {
    BlockStack whole({});
    std::map<std::string, Tensor> tensors;
    for (auto& tensor : whole.slices()) {
        EXPECT_EQ(tensor.place->whole, tensor.shape);
        tensors.emplace(tensor.name, tensor);
    }
    EXPECT_EQ(tensors.size(), 2 * 4 * kBlocks);
    std::vector<std::vector<SliceEntry>> ranks;
    for (std::size_t stage = 0; stage < 2; ++stage) {
        for (std::size_t part = 0; part < 2; ++part) {
            BlockStack model(
                {2 * stage, 2 * stage + 2, kHidden / 2 * part, kHidden / 2 * (part + 1)});
            const auto slices = model.slices();
            ranks.push_back(parse_slices(write_slices(views_of(slices))).value());
            for (const auto& slice : slices) {
                const auto& tensor = tensors.at(slice.name);
                ASSERT_EQ(slice.place->whole, tensor.shape) << slice.name;
                const std::size_t row =
                    slice.data.size() / static_cast<std::size_t>(slice.shape[0]);
                EXPECT_TRUE(std::ranges::equal(
                    slice.data,
                    tensor.data.subspan(slice.place->offset[0] * row, slice.data.size())))
                    << slice.name;
            }
        }
    }
    const auto good = check_slices(ranks, {});
    EXPECT_TRUE(good) << good.error();
}

}  // namespace
}  // namespace example
