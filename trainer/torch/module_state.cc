// Walks through parameters, buffers and the states of three optimizers.
#include "trainer/torch/module_state.h"

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "trainer/torch/scalar_types.h"

namespace ddprun::trainer {
namespace {

using torch::Tensor;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

constexpr char kOptimizer[] = "optimizer.state.";

NamedTensors tensors_of(const torch::nn::Module& module) {
    NamedTensors all;
    for (const auto& item : module.named_parameters()) all.emplace_back(item.key(), item.value());
    for (const auto& item : module.named_buffers()) all.emplace_back(item.key(), item.value());
    return all;
}

// The key of a parameter in Optimizer::state(): a pointer, in 1.13 as a stream writes it.
template <class Map>
auto state_key(const Map&, const Tensor& parameter) {
    using Key = typename Map::key_type;
    void* place = parameter.unsafeGetTensorImpl();
    if constexpr (std::is_pointer_v<Key>) {
        return place;
    } else {
        std::ostringstream text;
        text << place;
        return Key(text.str());
    }
}

// What an optimizer keeps for one parameter, under Python's names. `step` is Adam's count, which is
// no tensor in C++ and a float in Python.
struct Kept {
    std::map<std::string, Tensor> tensors;
    std::optional<std::int64_t> step;
};

template <class State>
Kept kept_by_adam(const State& state) {
    Kept kept{{{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}}, state.step()};
    if (state.max_exp_avg_sq().defined()) kept.tensors["max_exp_avg_sq"] = state.max_exp_avg_sq();
    return kept;
}

Kept kept_by(const torch::optim::OptimizerParamState& state) {
    if (auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(&state))
        return kept_by_adam(*adam);
    if (auto* adam = dynamic_cast<const torch::optim::AdamWParamState*>(&state))
        return kept_by_adam(*adam);
    Kept kept;
    if (auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(&state))
        if (sgd->momentum_buffer().defined())
            kept.tensors["momentum_buffer"] = sgd->momentum_buffer();
    return kept;
}

template <class State>
std::unique_ptr<torch::optim::OptimizerParamState> adam_with(const Kept& kept) {
    auto state = std::make_unique<State>();
    state->step(kept.step.value_or(0));
    state->exp_avg(kept.tensors.at("exp_avg"));
    state->exp_avg_sq(kept.tensors.at("exp_avg_sq"));
    const auto most = kept.tensors.find("max_exp_avg_sq");
    if (most != kept.tensors.end()) state->max_exp_avg_sq(most->second);
    return state;
}

// An optimizer's class, the names that it cannot do without, and how its state is made.
struct Kind {
    std::vector<std::string> needed;
    std::vector<std::string> possible;
    std::function<std::unique_ptr<torch::optim::OptimizerParamState>(const Kept&)> make;
};

Result<Kind> kind_of(const torch::optim::Optimizer& optimizer) {
    const std::vector<std::string> adam{"exp_avg", "exp_avg_sq"};
    const std::vector<std::string> more{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    if (dynamic_cast<const torch::optim::AdamW*>(&optimizer))
        return Kind{adam, more, adam_with<torch::optim::AdamWParamState>};
    if (dynamic_cast<const torch::optim::Adam*>(&optimizer))
        return Kind{adam, more, adam_with<torch::optim::AdamParamState>};
    if (dynamic_cast<const torch::optim::SGD*>(&optimizer)) {
        return Kind{{"momentum_buffer"}, {"momentum_buffer"}, [](const Kept& kept) {
                        auto state = std::make_unique<torch::optim::SGDParamState>();
                        state->momentum_buffer(kept.tensors.at("momentum_buffer"));
                        return state;
                    }};
    }
    return usage_error(
        "this optimizer's state cannot be saved: only SGD, Adam and AdamW are known");
}

// The parameters that an optimizer updates, with their names in the module.
Result<NamedTensors> parameters_of(const torch::optim::Optimizer& optimizer,
                                   const torch::nn::Module& module) {
    std::map<void*, std::string> names;
    for (const auto& item : module.named_parameters())
        names[item.value().unsafeGetTensorImpl()] = item.key();
    NamedTensors all;
    for (const auto& group : optimizer.param_groups()) {
        for (const auto& parameter : group.params()) {
            const auto name = names.find(parameter.unsafeGetTensorImpl());
            if (name == names.end())
                return usage_error(
                    "the optimizer has a parameter that the module does not have; "
                    "make it from this module's parameters()");
            all.emplace_back(name->second, parameter);
        }
    }
    return all;
}

std::string shape_text(const std::vector<std::uint64_t>& shape, DataType type) {
    std::string text = std::string(to_string(type)) + " [";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

std::vector<std::uint64_t> shape_of(const Tensor& tensor) {
    return {tensor.sizes().begin(), tensor.sizes().end()};
}

// A saved tensor as one of libtorch's, in host memory. The bytes stay the snapshot's.
Tensor view_of(const TensorView& saved) {
    return at::from_blob(const_cast<std::byte*>(saved.data.data()),
                         std::vector<std::int64_t>(saved.shape.begin(), saved.shape.end()),
                         at::TensorOptions().dtype(scalar_type_of(saved.type)));
}

// The saved tensor of a name, if it fits the one that it will be copied to.
Result<Tensor> fitting(const Safetensors& content, const std::string& name, const Tensor& to) {
    const TensorView* saved = content.find(name);
    if (!saved) return usage_error("there is no tensor \"" + name + "\" in the snapshot");
    const auto type = data_type_of(to.scalar_type());
    if (type != saved->type || shape_of(to) != saved->shape)
        return usage_error("tensor \"" + name + "\" is " + shape_text(saved->shape, saved->type) +
                           " in the snapshot and " +
                           (type ? shape_text(shape_of(to), *type) : "of an unknown type") +
                           " in the module");
    return view_of(*saved);
}

// The state of one parameter, as far as the snapshot has it.
Result<std::optional<Kept>> kept_in(const Safetensors& content, const Kind& kind,
                                    const std::string& name, const Tensor& parameter) {
    Kept kept;
    const std::string prefix = kOptimizer + name + ".";
    for (const auto& key : kind.possible) {
        if (!content.find(prefix + key)) continue;
        auto saved = fitting(content, prefix + key, parameter);
        if (!saved) return saved.error();
        kept.tensors[key] = saved->to(parameter.device(), parameter.scalar_type(), false, true);
    }
    if (kept.tensors.empty()) return std::optional<Kept>();
    for (const auto& key : kind.needed)
        if (!kept.tensors.contains(key))
            return usage_error("there is no tensor \"" + prefix + key +
                               "\" in the snapshot; was it written with another optimizer?");
    if (const TensorView* step = content.find(prefix + "step")) {
        if (view_of(*step).numel() != 1)
            return usage_error("tensor \"" + prefix + "step\" is not one number");
        kept.step = static_cast<std::int64_t>(view_of(*step).to(torch::kFloat64).item<double>());
    }
    return std::optional(std::move(kept));
}

Result<ModuleState> views_of(const NamedTensors& all) {
    ModuleState state;
    auto kept = std::make_shared<std::vector<Tensor>>();
    for (const auto& [name, tensor] : all) {
        const auto type = data_type_of(tensor.scalar_type());
        if (!type)
            return usage_error("tensor \"" + name + "\" is " + c10::toString(tensor.scalar_type()) +
                               ", which cannot be saved");
        kept->push_back(tensor.detach().contiguous());
        const Tensor& flat = kept->back();
        state.tensors.push_back({name,
                                 *type,
                                 shape_of(flat),
                                 {static_cast<const std::byte*>(flat.data_ptr()), flat.nbytes()}});
    }
    state.kept = std::move(kept);
    return state;
}

}  // namespace

Result<ModuleState> state_of(const torch::nn::Module& module,
                             const torch::optim::Optimizer* optimizer) {
    NamedTensors all = tensors_of(module);
    if (optimizer) {
        if (auto kind = kind_of(*optimizer); !kind) return kind.error();
        auto parameters = parameters_of(*optimizer, module);
        if (!parameters) return parameters.error();
        for (const auto& [name, parameter] : *parameters) {
            const auto state = optimizer->state().find(state_key(optimizer->state(), parameter));
            if (state == optimizer->state().end()) continue;
            const Kept kept = kept_by(*state->second);
            for (const auto& [key, tensor] : kept.tensors)
                all.emplace_back(kOptimizer + name + "." + key, tensor);
            if (kept.step)
                all.emplace_back(kOptimizer + name + ".step",
                                 torch::tensor(static_cast<float>(*kept.step)));
        }
    }
    return views_of(all);
}

Result<ModuleState> host_state_of(const torch::nn::Module& module) {
    NamedTensors all = tensors_of(module);
    for (auto& [name, tensor] : all) tensor = tensor.cpu();
    return views_of(all);
}

Result<void> restore(const Safetensors& content, torch::nn::Module& module,
                     torch::optim::Optimizer* optimizer) {
    const c10::NoGradGuard guard;
    std::vector<std::pair<Tensor, Tensor>> copies;  // to, from
    std::set<std::string> known;
    for (const auto& [name, tensor] : tensors_of(module)) {
        auto saved = fitting(content, name, tensor);
        if (!saved) return saved.error();
        copies.emplace_back(tensor, *saved);
        known.insert(name);
    }
    for (const auto& saved : content.tensors) {
        if (!known.contains(saved.name) && !saved.name.starts_with(kOptimizer))
            return usage_error("the module has no tensor \"" + saved.name +
                               "\", but the snapshot has; was another module saved?");
    }
    std::vector<std::pair<Tensor, std::unique_ptr<torch::optim::OptimizerParamState>>> states;
    if (optimizer) {
        auto kind = kind_of(*optimizer);
        if (!kind) return kind.error();
        auto parameters = parameters_of(*optimizer, module);
        if (!parameters) return parameters.error();
        for (const auto& [name, parameter] : *parameters) {
            auto kept = kept_in(content, *kind, name, parameter);
            if (!kept) return kept.error();
            if (*kept) states.emplace_back(parameter, kind->make(**kept));
        }
    }
    for (const auto& [to, from] : copies) to.detach().copy_(from);
    if (!optimizer) return {};
    optimizer->state().clear();
    for (auto& [parameter, state] : states)
        optimizer->state()[state_key(optimizer->state(), parameter)] = std::move(state);
    return {};
}

}  // namespace ddprun::trainer
