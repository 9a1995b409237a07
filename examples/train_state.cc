// Converts between the state of a training and a snapshot.
#include "examples/train_state.h"

#include <charconv>
#include <cstring>

#include "trainer/gpu/gpu.h"

namespace example {

using ddprun::Error;
using ddprun::Result;
using ddprun::usage_error;
using namespace ddprun::trainer;

namespace {

// Everything that is saved as a tensor. The momenta belong to it: without them the next step would
// differ.
std::vector<NamedBuffer> state_of(Mlp& mlp) {
    auto all = mlp.parameters();
    for (auto& momentum : mlp.momenta()) all.push_back(std::move(momentum));
    return all;
}

Result<void> copy(Memory memory, void* to, const void* from, std::size_t bytes) {
    if (memory == Memory::gpu) return gpu_copy(to, from, bytes);
    std::memcpy(to, from, bytes);
    return {};
}

// The error for a snapshot that another model, other data or another program wrote.
Error of_another(const Snapshot& snapshot, const std::string& what) {
    return usage_error("snapshot " + snapshot.manifest.name.stem() + " " + what);
}

// A number from the manifest's text. A missing or wrong one means that another program wrote it.
template <class T>
Result<T> number(const Snapshot& snapshot, const char* key) {
    auto it = snapshot.manifest.metadata.find(key);
    T value{};
    if (it != snapshot.manifest.metadata.end()) {
        const std::string& text = it->second;
        auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc{} && stop == text.data() + text.size()) return value;
    }
    return of_another(snapshot, "has no number \"" + std::string(key) + "\"");
}

// The shortest text that gives the same bits when it is read again (std::to_chars promises that).
std::string exact(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::vector<TensorView> tensors_of(Mlp& mlp) {
    std::vector<TensorView> tensors;
    for (const auto& [name, buffer] : state_of(mlp)) {
        const std::span values(static_cast<const float*>(buffer.data), buffer.count);
        tensors.push_back(tensor_view(name, {buffer.count}, values));
    }
    return tensors;
}

Metadata words_of(const DistributedSampler& sampler, const EarlyStop& early, std::uint64_t seed) {
    Metadata words{{"epoch", std::to_string(sampler.position().epoch)},
                   {"consumed", std::to_string(sampler.position().consumed)},
                   {"seed", std::to_string(seed)}};
    // Before the first validation there is nothing to save.
    if (early.best()) {
        words["best"] = exact(*early.best());
        words["waited"] = std::to_string(early.waited());
    }
    return words;
}

Result<void> restore(const Snapshot& snapshot, std::uint64_t seed, Memory memory, Mlp& mlp,
                     DistributedSampler& sampler, EarlyStop& early) {
    auto epoch = number<std::int64_t>(snapshot, "epoch");
    if (!epoch) return epoch.error();
    auto consumed = number<std::int64_t>(snapshot, "consumed");
    if (!consumed) return consumed.error();
    // Another seed would shuffle the data in another order, and the position would mean other
    // samples.
    const auto written = snapshot.manifest.metadata.find("seed");
    if (written == snapshot.manifest.metadata.end() || written->second != std::to_string(seed))
        return of_another(snapshot, "was written with another --seed");
    for (const auto& [name, buffer] : state_of(mlp)) {
        const TensorView* saved = snapshot.content.find(name);
        if (!saved || saved->type != buffer.type || saved->data.size() != buffer.bytes())
            return of_another(snapshot, "has no \"" + name + "\" of " +
                                            std::to_string(buffer.count) +
                                            " floats; was it written with other --hidden or "
                                            "--data?");
        if (auto done = copy(memory, buffer.data, saved->data.data(), buffer.bytes()); !done)
            return done;
    }
    // These may be missing, so an error here is none.
    const auto best = number<double>(snapshot, "best");
    const auto waited = number<int>(snapshot, "waited");
    if (best && waited) early.resume(*best, *waited);
    return sampler.resume({*epoch, *consumed});
}

Result<std::vector<float>> parameters_on_host(Mlp& mlp, Memory memory) {
    std::vector<float> values;
    for (const auto& [name, buffer] : mlp.parameters()) {
        const std::size_t begin = values.size();
        values.resize(begin + buffer.count);
        auto done = copy(memory, values.data() + begin, buffer.data, buffer.bytes());
        if (!done) return done.error();
    }
    return values;
}

}  // namespace example
