// A program outside with libtorch: a line through points, data parallel, and its checksum.
#include <ddprun/base/failure.h>
#include <ddprun/trainer/checksum/checksum.h>
#include <ddprun/trainer/torch/data_parallel_module.h>
#include <ddprun/trainer/torch/module_state.h>
#include <ddprun/trainer/torch/torch_group.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>

using namespace ddprun;
using namespace ddprun::trainer;

int main() {
    const auto context = or_throw(Context::from_environment());
    const auto store = or_throw(connect_store(context));
    const auto group =
        or_throw(make_torch_group(context, *store, {Backend::gloo, std::chrono::minutes(1), {}}));
    torch::manual_seed(1);
    auto net = std::make_shared<torch::nn::LinearImpl>(3, 1);
    auto model = or_throw(DataParallelModule<torch::nn::LinearImpl>::make(*group, net));
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.5));
    torch::manual_seed(static_cast<std::uint64_t>(10 + context.rank.value));
    double loss = 0;
    for (int step = 0; step < 30; ++step) {
        const auto x = torch::randn({16, 3});
        optimizer.zero_grad();
        const auto error = (model.forward(x) - x.sum(1, true)).square().mean();
        error.backward();
        optimizer.step();
        loss = error.item<double>();
    }
    std::string sums;
    const ModuleState state = or_throw(state_of(*net, &optimizer));
    for (const auto& tensor : state.tensors) sums += checksum_of(tensor.data);
    if (context.is_first())
        std::printf("checksum=%s\n", checksum_of(std::as_bytes(std::span(sums))).c_str());
    or_throw(group->barrier());
    return loss < 0.01 ? 0 : 1;
}
