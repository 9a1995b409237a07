// Converts between the state of a training and a snapshot.
#include "examples/gpt/gpt_state.h"

#include <charconv>
#include <cstring>

#include "examples/gpt/model_file.h"
#include "trainer/gpu/gpu.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::Result;
using ddprun::usage_error;
using namespace ddprun::trainer;

namespace {

// Everything that is saved as a tensor. Without the moments the next step would differ.
std::vector<NamedBuffer> state_of(Gpt& gpt) {
    auto all = gpt.parameters();
    for (auto& moment : gpt.moments()) all.push_back(std::move(moment));
    return all;
}

Result<void> copy(Memory memory, void* to, const void* from, std::size_t bytes) {
    if (memory == Memory::gpu) return gpu_copy(to, from, bytes);
    std::memcpy(to, from, bytes);
    return {};
}

// The error for a snapshot that another model, another text or another program wrote.
Error of_another(const Snapshot& snapshot, const std::string& what) {
    return usage_error("snapshot " + snapshot.manifest.name.stem() + " " + what);
}

Result<std::int64_t> number(const Snapshot& snapshot, const char* key) {
    auto it = snapshot.manifest.metadata.find(key);
    std::int64_t value = 0;
    if (it != snapshot.manifest.metadata.end()) {
        const std::string& text = it->second;
        auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc{} && stop == text.data() + text.size()) return value;
    }
    return of_another(snapshot, "has no number \"" + std::string(key) + "\"");
}

// What must not have changed since the snapshot was written, and the option that changes it.
Result<void> check_words(const Snapshot& snapshot, const Metadata& words) {
    for (const auto& [key, option] : {std::pair("seed", "--seed"), std::pair("heads", "--heads"),
                                      std::pair("text", "--text")}) {
        auto it = snapshot.manifest.metadata.find(key);
        if (it == snapshot.manifest.metadata.end() || it->second != words.at(key))
            return of_another(snapshot, "was written with another " + std::string(option));
    }
    return {};
}

}  // namespace

std::vector<TensorView> tensors_of(Gpt& gpt) {
    // Three times the same shapes: parameters, first and second moments.
    const auto shapes = tensors(gpt.shape());
    std::vector<TensorView> views;
    for (const auto& [name, buffer] : state_of(gpt)) {
        const std::span values(static_cast<const float*>(buffer.data), buffer.count);
        views.push_back(tensor_view(name, shapes[views.size() % shapes.size()].shape, values));
    }
    return views;
}

Metadata words_of(const DistributedSampler& sampler, std::uint64_t seed, const GptShape& shape,
                  const Text& text) {
    auto words = words_of_model(shape, text.vocabulary());
    words["text"] = checksum_of(std::as_bytes(text.tokens()));
    words["epoch"] = std::to_string(sampler.position().epoch);
    words["consumed"] = std::to_string(sampler.position().consumed);
    words["seed"] = std::to_string(seed);
    return words;
}

Result<void> restore(const Snapshot& snapshot, const Metadata& words, Memory memory, Gpt& gpt,
                     DistributedSampler& sampler) {
    auto epoch = number(snapshot, "epoch");
    if (!epoch) return epoch.error();
    auto consumed = number(snapshot, "consumed");
    if (!consumed) return consumed.error();
    if (auto same = check_words(snapshot, words); !same) return same;
    const auto views = tensors_of(gpt);
    const auto buffers = state_of(gpt);
    for (std::size_t i = 0; i < views.size(); ++i) {
        const TensorView* saved = snapshot.content.find(views[i].name);
        if (!saved || saved->type != views[i].type || saved->shape != views[i].shape)
            return of_another(snapshot, "has no \"" + views[i].name + "\" of " +
                                            std::to_string(buffers[i].buffer.count) +
                                            " floats; was it written with another --size, "
                                            "--layers, --width or --context?");
        const auto& to = buffers[i].buffer;
        if (auto done = copy(memory, to.data, saved->data.data(), to.bytes()); !done) return done;
    }
    return sampler.resume({*epoch, *consumed});
}

Result<std::vector<float>> parameters_on_host(Gpt& gpt, Memory memory) {
    std::vector<float> values;
    for (const auto& [name, buffer] : gpt.parameters()) {
        const std::size_t begin = values.size();
        values.resize(begin + buffer.count);
        auto done = copy(memory, values.data() + begin, buffer.data, buffer.bytes());
        if (!done) return done.error();
    }
    return values;
}

}  // namespace example::gpt
