// Modules and optimizers as tensors with Python's names, and back: bit for bit, and with the name
// of what does not fit.
#include "trainer/torch/module_state.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <set>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {
namespace {

using torch::Tensor;

struct Net : torch::nn::Module {
    explicit Net(std::int64_t width = 8) {
        first = register_module("first", torch::nn::Linear(6, width));
        norm = register_module("norm", torch::nn::BatchNorm1d(width));
        last = register_module("last", torch::nn::Linear(width, 1));
    }
    Tensor forward(const Tensor& x) { return last(norm(first(x))); }
    torch::nn::Linear first{nullptr}, last{nullptr};
    torch::nn::BatchNorm1d norm{nullptr};
};

// One step with samples that depend on its number.
void take_step(Net& net, torch::optim::Optimizer& optimizer, int step) {
    torch::manual_seed(static_cast<std::uint64_t>(step));
    optimizer.zero_grad();
    net.forward(torch::randn({16, 6})).square().mean().backward();
    optimizer.step();
}

// The bytes of a file with this state, and their content.
struct File {
    explicit File(const ModuleState& state) {
        EXPECT_TRUE(lay_out(state.tensors, bytes, [](std::byte* to, const TensorView& tensor) {
            std::copy(tensor.data.begin(), tensor.data.end(), to);
            return Result<void>();
        }));
        content = parse_safetensors(bytes.bytes()).value();
    }
    PageBuffer bytes;
    Safetensors content;
};

bool equal(const Net& a, const Net& b) {
    for (std::size_t i = 0; i < a.parameters().size(); ++i)
        if (!torch::equal(a.parameters()[i], b.parameters()[i])) return false;
    for (std::size_t i = 0; i < a.buffers().size(); ++i)
        if (!torch::equal(a.buffers()[i], b.buffers()[i])) return false;
    return true;
}

// Saves after three steps, goes on for two; loads into another network and repeats the two.
template <class Optimizer, class Options>
void goes_on(const Options& options, const std::set<std::string>& names) {
    torch::manual_seed(1);
    Net net;
    Optimizer optimizer(net.parameters(), options);
    for (int step = 0; step < 3; ++step) take_step(net, optimizer, step);
    const File file(state_of(net, &optimizer).value());
    std::set<std::string> found;
    for (const auto& tensor : file.content.tensors)
        if (tensor.name.find("first.weight") != std::string::npos ||
            tensor.name.find("norm.num") != std::string::npos)
            found.insert(tensor.name);
    EXPECT_EQ(found, names);
    for (int step = 3; step < 5; ++step) take_step(net, optimizer, step);
    torch::manual_seed(2);
    Net again;
    Optimizer other(again.parameters(), options);
    take_step(again, other, 9);
    ASSERT_TRUE(restore(file.content, again, &other));
    for (int step = 3; step < 5; ++step) take_step(again, other, step);
    EXPECT_TRUE(equal(net, again));
}

TEST(ModuleState, GoesOnWithSgd) {
    goes_on<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9),
                               {"first.weight", "norm.num_batches_tracked",
                                "optimizer.state.first.weight.momentum_buffer"});
}

TEST(ModuleState, GoesOnWithAdamW) {
    goes_on<torch::optim::AdamW>(
        torch::optim::AdamWOptions(0.01).amsgrad(true),
        {"first.weight", "norm.num_batches_tracked", "optimizer.state.first.weight.exp_avg",
         "optimizer.state.first.weight.exp_avg_sq", "optimizer.state.first.weight.max_exp_avg_sq",
         "optimizer.state.first.weight.step"});
}

// Another width: the tensor with both shapes; nothing has been changed.
TEST(ModuleState, NamesWhatDoesNotFit) {
    torch::manual_seed(1);
    Net net;
    const File file(state_of(net).value());
    torch::manual_seed(2);
    Net wide(9), before(9);
    ASSERT_TRUE(restore(File(state_of(wide).value()).content, before));
    const auto done = restore(file.content, wide);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sentence(),
              "tensor \"first.weight\" is F32 [8, 6] in the snapshot and F32 [9, 6] in the module");
    EXPECT_TRUE(equal(wide, before));
}

// A tensor that is missing, and one too many.
TEST(ModuleState, NamesWhatIsMissing) {
    Net net;
    torch::nn::Linear line(6, 8);
    const File small(state_of(*line).value()), large(state_of(net).value());
    EXPECT_EQ(restore(small.content, net).error().sentence(),
              "there is no tensor \"first.weight\" in the snapshot");
    EXPECT_EQ(restore(large.content, *net.last).error().code(), ErrorCode::usage);
    const auto extra =
        restore(small.content, *torch::nn::Linear(torch::nn::LinearOptions(6, 8).bias(false)));
    EXPECT_EQ(extra.error().sentence(),
              "the module has no tensor \"bias\", but the snapshot has; was another module saved?");
}

// A state of SGD for AdamW, and an optimizer that is not known.
TEST(ModuleState, NamesAnotherOptimizer) {
    Net net;
    torch::optim::AdamW adam(net.parameters(), torch::optim::AdamWOptions(0.1));
    take_step(net, adam, 1);
    auto state = state_of(net, &adam).value();
    std::erase_if(state.tensors, [](const TensorView& tensor) {
        return tensor.name == "optimizer.state.first.weight.exp_avg_sq";
    });
    const auto done = restore(File(state).content, net, &adam);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sentence(),
              "there is no tensor \"optimizer.state.first.weight.exp_avg_sq\" in the snapshot; was "
              "it written with another optimizer?");
    torch::optim::RMSprop other(net.parameters(), 0.1);
    EXPECT_EQ(state_of(net, &other).error().code(), ErrorCode::usage);
}

// A view with gaps is saved as its elements.
TEST(ModuleState, SavesViews) {
    struct Odd : torch::nn::Module {
        Odd() { register_buffer("part", torch::arange(6, torch::kFloat32).view({2, 3}).t()); }
    } odd;
    const File file(state_of(odd).value());
    const auto* part = file.content.find("part");
    ASSERT_TRUE(part);
    EXPECT_EQ(part->shape, (std::vector<std::uint64_t>{3, 2}));
    const auto* values = reinterpret_cast<const float*>(part->data.data());
    EXPECT_EQ(std::vector<float>(values, values + 6), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

}  // namespace
}  // namespace ddprun::trainer
