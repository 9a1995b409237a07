// FusedAdamW: AdamW whose step is one pass over each parameter, as AdamW(fused=True) of Python,
// with its numbers. (libtorch's own AdamW makes a dozen passes.) The state is that of AdamW, so
// snapshots know it. Without amsgrad. Before libtorch 2.4 it is AdamW itself.
#pragma once

#include <torch/optim/adamw.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
#include <ATen/ops/_fused_adamw.h>

#include <memory>
#include <tuple>
#include <vector>

namespace example {

class FusedAdamW final : public torch::optim::AdamW {
  public:
    using AdamW::AdamW;

    torch::Tensor step(LossClosure = nullptr) override {
        const torch::NoGradGuard guard;
        for (auto& group : param_groups()) step_of(group);
        return {};
    }

  private:
    void step_of(torch::optim::OptimizerParamGroup& group) {
        std::vector<torch::Tensor> values, gradients, first, second, steps;
        for (const auto& value : group.params()) {
            if (!value.grad().defined()) continue;
            auto& state = state_of(value);
            state.step(state.step() + 1);
            values.push_back(value);
            gradients.push_back(value.grad());
            first.push_back(state.exp_avg());
            second.push_back(state.exp_avg_sq());
            const auto count = static_cast<double>(state.step());
            steps.push_back(torch::full({}, count, value.options().dtype(torch::kFloat32)));
        }
        if (values.empty()) return;
        const auto& o = static_cast<const torch::optim::AdamWOptions&>(group.options());
        const auto [beta1, beta2] = o.betas();
        at::_fused_adamw_(values, gradients, first, second, {}, steps, o.lr(), beta1, beta2,
                          o.weight_decay(), o.eps(), /*amsgrad=*/false, /*maximize=*/false);
    }

    torch::optim::AdamWParamState& state_of(const torch::Tensor& value) {
        auto& state = this->state()[value.unsafeGetTensorImpl()];
        if (!state) {
            auto fresh = std::make_unique<torch::optim::AdamWParamState>();
            fresh->exp_avg(torch::zeros_like(value));
            fresh->exp_avg_sq(torch::zeros_like(value));
            state = std::move(fresh);
        }
        return static_cast<torch::optim::AdamWParamState&>(*state);
    }
};

}  // namespace example

#else
namespace example {
using FusedAdamW = torch::optim::AdamW;
}
#endif
