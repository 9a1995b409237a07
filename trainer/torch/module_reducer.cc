// Hooks on libtorch's gradient accumulation, and gradients that are views of buckets.
#include "trainer/torch/module_reducer.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "trainer/torch/scalar_types.h"

namespace ddprun::trainer {
namespace {

using torch::Tensor;
using Accumulator = decltype(torch::autograd::impl::grad_accumulator(std::declval<Tensor>()));

// What a message says about a parameter: "Float [16, 1, 3, 3] on cpu, trained".
std::string described(const Tensor& tensor) {
    std::ostringstream text;
    text << c10::toString(tensor.scalar_type()) << " " << tensor.sizes() << " on "
         << tensor.device() << (tensor.requires_grad() ? ", trained" : ", not trained");
    return text.str();
}

// A parameter or buffer as the group sees it. The content is only copied, so a type that the
// trainer does not know travels as bytes.
Buffer module_buffer(const Tensor& tensor) {
    const auto type = data_type_of(tensor.scalar_type());
    return {tensor.data_ptr(), static_cast<std::size_t>(type ? tensor.numel() : tensor.nbytes()),
            type.value_or(DataType::uint8)};
}

// "a", "b", "c" and 4 more.
std::string quoted(const std::vector<std::string>& names) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i)
        text += (i ? ", \"" : "\"") + names[i] + "\"";
    if (names.size() > 3) text += " and " + std::to_string(names.size() - 3) + " more";
    return text;
}

// The group waits for what the default stream has computed. Backward may run on another one.
void order_streams(const at::Device& device) {
    if (device.is_cpu()) return;
    const c10::impl::VirtualGuardImpl guard(device.type());
    const auto own = guard.getStream(device), seen = guard.getDefaultStream(device);
    if (own == seen) return;
    void* event = nullptr;
    guard.record(&event, own, device.index(), c10::EventFlag::PYTORCH_DEFAULT);
    guard.block(event, seen);
    guard.destroyEvent(event, device.index());
}

// PyTorch's order of operations: each rank divides by the number of ranks, then all add.
class SumHook final : public CommunicationHook {
  public:
    Result<Work> begin(ProcessGroup& group, std::size_t, const Buffer& bucket,
                       GpuStream stream) override {
        return group.begin(Operation::all_reduce(bucket, ReduceOp::sum).on(stream).of("gradients"));
    }
};

// A parameter as it was when the module was wrapped.
struct Parameter {
    std::string name;
    Tensor value;
    std::string description;
    bool trained = false;          // it requires a gradient
    Tensor view = {};              // the memory of its gradient in the bucket
    Accumulator accumulator = {};  // the node with the hook lives as long as somebody has it
    std::uintptr_t hook = 0;
    bool reached = false;  // by this backward pass
};

}  // namespace

struct ModuleReducer::State : std::enable_shared_from_this<State> {
    State(ProcessGroup& g, torch::nn::Module& m, const DataParallelOptions& o)
        : group(g), module(m), options(o), scale(o.reducer.hook ? 1.0 : 1.0 / g.size()) {}

    ProcessGroup& group;
    torch::nn::Module& module;
    DataParallelOptions options;
    const double scale;                 // of each rank's gradients before they are added
    std::vector<Parameter> parameters;  // all, in the module's order
    std::vector<std::size_t> trained;   // number in the reducer → index in `parameters`
    std::shared_ptr<GradientReducer> reducer;
    bool quiet = false;    // no_sync()
    bool in_pass = false;  // a backward pass that reduces is running
    std::optional<Error> failed;

    Result<void> look_at_parameters();
    Result<void> compare_over_ranks();
    Result<void> make_reducer();
    void make_views();
    void set_hooks();
    void remove_hooks();
    void check_unchanged();
    void broadcast_buffers();
    void arrived(std::size_t number);
    void move_into_bucket(Parameter& parameter);
    void finish();
    void fill_missing();
    void compare_replicas();

    // The first error is told again by each later call.
    void require(const Result<void>& done) {
        if (done) return;
        failed = done.error();
        throw ModuleError(*failed);
    }
};

// A group moves plain memory of its kind, without gaps.
Result<void> ModuleReducer::State::look_at_parameters() {
    for (const auto& item : module.named_parameters()) {
        const Tensor& value = item.value();
        const bool fits = value.is_cuda() ? group.memory() == Memory::gpu
                                          : value.is_cpu() && group.memory() == Memory::host;
        if (!fits)
            return usage_error("parameter \"" + item.key() + "\" is " + described(value) +
                               ", but the group (" + group.backend() + ") works on " +
                               (group.memory() == Memory::gpu ? "this rank's GPU" : "host memory") +
                               "; move the module, or choose another backend");
        if (!value.is_non_overlapping_and_dense())
            return usage_error("parameter \"" + item.key() +
                               "\" has gaps in memory; make it contiguous");
        if (value.requires_grad() && !data_type_of(value.scalar_type()))
            return usage_error("parameter \"" + item.key() + "\" is " + described(value) +
                               "; gradients of this type cannot be reduced");
        parameters.push_back({item.key(), value, described(value), value.requires_grad()});
    }
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].trained) trained.push_back(i);
    if (trained.empty()) return usage_error("the module has no parameter that requires a gradient");
    return {};
}

// The reducer compares what it sees: sizes. Here are shapes, and which parameters are trained, so
// that a layer that one rank has frozen is not told as another name.
Result<void> ModuleReducer::State::compare_over_ranks() {
    std::vector<NamedBuffer> all;
    for (const auto& parameter : parameters) {
        std::ostringstream text;
        text << parameter.name << " " << parameter.value.sizes()
             << (parameter.trained ? ", trained" : ", not trained");
        all.push_back({text.str(), module_buffer(parameter.value)});
    }
    return verify_same_shapes(group, all);
}

Result<void> ModuleReducer::State::make_reducer() {
    std::vector<NamedBuffer> reduced, only_broadcast;
    for (const auto& parameter : parameters)
        (parameter.trained ? reduced : only_broadcast)
            .push_back({parameter.name, module_buffer(parameter.value)});
    for (const auto& item : module.named_buffers())
        if (item.value().is_non_overlapping_and_dense())
            only_broadcast.push_back({item.key(), module_buffer(item.value())});
    auto chosen = options.reducer;
    if (!chosen.hook) chosen.hook = std::make_shared<SumHook>();
    // compare_replicas() does it: the program may give a parameter other memory.
    chosen.verify_replicas = {0, 0};
    auto made = GradientReducer::make(group, std::move(reduced), chosen, std::move(only_broadcast));
    if (!made) return made.error();
    reducer = std::move(*made);
    return {};
}

// Plain tensors and no views in autograd's sense: Optimizer::zero_grad() detaches them in place.
// Each keeps the reducer's memory alive, because the program may keep gradients for longer.
void ModuleReducer::State::make_views() {
    for (std::size_t number = 0; number < trained.size(); ++number) {
        Parameter& parameter = parameters[trained[number]];
        const Tensor& value = parameter.value;
        parameter.view = at::from_blob(
            reducer->gradient(number).data, value.sizes(), value.strides(),
            [kept = reducer](void*) {}, value.options().requires_grad(false));
    }
}

void ModuleReducer::State::set_hooks() {
    for (std::size_t number = 0; number < trained.size(); ++number) {
        Parameter& parameter = parameters[trained[number]];
        parameter.accumulator = torch::autograd::impl::grad_accumulator(parameter.value);
        parameter.hook = parameter.accumulator->add_post_hook(
            std::make_unique<torch::autograd::utils::LambdaPostHook>(
                [weak = weak_from_this(), number](const torch::autograd::variable_list& outputs,
                                                  const torch::autograd::variable_list&) {
                    if (auto state = weak.lock()) state->arrived(number);
                    return outputs;
                }));
    }
}

void ModuleReducer::State::remove_hooks() {
    for (auto& parameter : parameters)
        if (parameter.accumulator) parameter.accumulator->del_post_hook(parameter.hook);
}

// Names are looked up only when something is wrong.
void ModuleReducer::State::check_unchanged() {
    const auto now = module.parameters();
    bool same = now.size() == parameters.size();
    for (std::size_t i = 0; same && i < now.size(); ++i) {
        const Parameter& before = parameters[i];
        same = now[i].is_same(before.value) && now[i].requires_grad() == before.trained &&
               (!before.trained ||
                (now[i].scalar_type() == before.view.scalar_type() &&
                 now[i].device() == before.view.device() && now[i].sizes() == before.view.sizes()));
    }
    if (same) return;
    std::string what = "the number of its parameters was " + std::to_string(parameters.size()) +
                       " and is " + std::to_string(now.size());
    for (const auto& item : module.named_parameters()) {
        const auto before = std::find_if(parameters.begin(), parameters.end(),
                                         [&](const Parameter& p) { return p.name == item.key(); });
        const bool is_new = before == parameters.end();
        const auto text = described(item.value());
        if (!is_new && item.value().is_same(before->value) && text == before->description) continue;
        what = "\"" + item.key() + "\" " +
               (is_new ? "is new" : "was " + before->description + " and is " + text) +
               (is_new || item.value().is_same(before->value) ? "" : ", another tensor");
        break;
    }
    throw ModuleError(usage_error("the module was changed after it was wrapped: " + what +
                                  "; wrap it after all changes"));
}

// All buffers in one message: most are a few numbers.
void ModuleReducer::State::broadcast_buffers() {
    constexpr std::int64_t kAlign = 16;  // enough for each element type
    const auto buffers = module.buffers();
    std::int64_t bytes = 0;
    for (const auto& buffer : buffers)
        bytes += (static_cast<std::int64_t>(buffer.nbytes()) + kAlign - 1) / kAlign * kAlign;
    if (!bytes || group.size() == 1) return;
    const c10::NoGradGuard guard;
    const Tensor all = torch::empty({bytes}, buffers.front().options().dtype(torch::kUInt8));
    const auto each = [&](const auto& copy) {
        std::int64_t at = 0;
        for (const auto& buffer : buffers) {
            const auto size = static_cast<std::int64_t>(buffer.nbytes());
            copy(buffer, all.narrow(0, at, size).view(buffer.scalar_type()).view(buffer.sizes()));
            at += (size + kAlign - 1) / kAlign * kAlign;
        }
    };
    each([](const Tensor& buffer, const Tensor& part) { part.copy_(buffer); });
    require(group.broadcast(module_buffer(all), 0));
    if (group.rank() != 0)
        each([](const Tensor& buffer, const Tensor& part) { buffer.copy_(part); });
}

// A parameter's gradient is complete: runs inside backward(), in the thread of the device.
void ModuleReducer::State::arrived(std::size_t number) {
    if (quiet) return;
    if (failed) throw ModuleError(*failed);
    if (!in_pass) {
        in_pass = true;
        for (auto& parameter : parameters) parameter.reached = false;
        // Runs when this backward pass has computed everything.
        torch::autograd::Engine::get_default_engine().queue_callback(
            [state = shared_from_this()] { state->finish(); });
    }
    Parameter& parameter = parameters[trained[number]];
    move_into_bucket(parameter);
    parameter.reached = true;
    order_streams(parameter.view.device());
    require(reducer->ready(number));
}

// After zero_grad() libtorch makes a new gradient. One pass over it copies and scales.
void ModuleReducer::State::move_into_bucket(Parameter& parameter) {
    const c10::NoGradGuard guard;
    Tensor& gradient = parameter.value.mutable_grad();
    if (gradient.is_sparse())
        require(usage_error("the gradient of \"" + parameter.name +
                            "\" is sparse, which cannot be reduced; make the layer with "
                            "sparse = false"));
    if (gradient.data_ptr() == parameter.view.data_ptr()) {
        if (scale != 1) parameter.view.mul_(scale);
        return;
    }
    if (scale == 1)
        parameter.view.copy_(gradient);
    else
        at::mul_out(parameter.view, gradient, torch::scalar_tensor(scale, gradient.scalar_type()));
    gradient = parameter.view;
}

void ModuleReducer::State::finish() {
    in_pass = false;
    fill_missing();
    require(reducer->finish());
    compare_replicas();
    if (!options.reducer.find_unused) return;
    for (std::size_t number = 0; number < trained.size(); ++number) {
        Parameter& parameter = parameters[trained[number]];
        // Another rank has used it, so this rank's optimizer must do the same step.
        if (!parameter.reached && reducer->used(number))
            parameter.value.mutable_grad() = parameter.view;
    }
}

// What this pass did not reach counts as zero, or as what it has accumulated before.
void ModuleReducer::State::fill_missing() {
    std::vector<std::string> missing;
    const c10::NoGradGuard guard;
    for (std::size_t number = 0; number < trained.size(); ++number) {
        Parameter& parameter = parameters[trained[number]];
        if (parameter.reached) continue;
        missing.push_back(parameter.name);
        if (!options.reducer.find_unused) continue;
        if (!parameter.value.grad().defined()) {
            parameter.view.zero_();
            continue;
        }
        // Of passes under no_sync(). The optimizers of all ranks must see that it was used.
        move_into_bucket(parameter);
        order_streams(parameter.view.device());
        require(reducer->ready(number));
    }
    if (missing.empty() || options.reducer.find_unused) return;
    require(usage_error(
        "backward did not reach " + std::to_string(missing.size()) + " of " +
        std::to_string(trained.size()) + " parameters: " + quoted(missing) +
        "; use them for the loss, or set find_unused, or requires_grad_(false) before wrapping"));
}

// What the update of the last step has left. Only plain memory can be read as such.
void ModuleReducer::State::compare_replicas() {
    if (!options.reducer.verify_replicas.due(reducer->steps())) return;
    std::vector<NamedBuffer> now;
    for (const auto& parameter : parameters)
        if (parameter.value.is_non_overlapping_and_dense())
            now.push_back({parameter.name, module_buffer(parameter.value)});
    order_streams(parameters.front().value.device());
    require(reducer->compare_replicas(now));
}

Result<std::unique_ptr<ModuleReducer>> ModuleReducer::make(ProcessGroup& group,
                                                           torch::nn::Module& module,
                                                           const DataParallelOptions& options) {
    auto state = std::make_shared<State>(group, module, options);
    if (auto done = state->look_at_parameters(); !done) return done.error();
    if (options.reducer.broadcast_at_start)
        if (auto done = state->compare_over_ranks(); !done) return done.error();
    if (auto done = state->make_reducer(); !done) return done.error();
    state->make_views();
    state->set_hooks();
    return std::unique_ptr<ModuleReducer>(new ModuleReducer(std::move(state)));
}

ModuleReducer::ModuleReducer(std::shared_ptr<State> state) : state_(std::move(state)) {}

ModuleReducer::~ModuleReducer() { state_->remove_hooks(); }

void ModuleReducer::before_forward() {
    // What has arrived of an unfinished pass cannot be taken back.
    if (state_->in_pass && !state_->failed)
        state_->failed = usage_error("the last backward pass ended with an exception");
    if (state_->failed) throw ModuleError(*state_->failed);
    state_->check_unchanged();
    if (state_->options.broadcast_buffers && !state_->quiet && state_->module.is_training() &&
        c10::GradMode::is_enabled())
        state_->broadcast_buffers();
}

void ModuleReducer::broadcast_buffers() { state_->broadcast_buffers(); }

GradientReducer& ModuleReducer::gradients() { return *state_->reducer; }

ModuleReducer::NoSync::NoSync(ModuleReducer& reducer) : reducer_(reducer) {
    reducer_.state_->quiet = true;
}

ModuleReducer::NoSync::~NoSync() { reducer_.state_->quiet = false; }

}  // namespace ddprun::trainer
