// Converts between the state of a training and a snapshot.
#include "examples/gpt/gpt_state.h"

#include <cstring>

#include "examples/gpt/model_file.h"
#include "trainer/gpu/gpu.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::Result;
using ddprun::usage_error;
using namespace ddprun::trainer;

namespace {

// The error for a snapshot that another model, another text or another program wrote.
Error of_another(const Snapshot& snapshot, const std::string& what) {
    return usage_error("snapshot " + snapshot.manifest.name.stem() + " " + what);
}

// What must not have changed since the snapshot was written, and the option that changes it.
Result<void> check_words(const Snapshot& snapshot, const Metadata& words) {
    for (const auto& [key, option] : {std::pair("seed", "--seed"), std::pair("heads", "--heads"),
                                      std::pair("text", "--text")}) {
        auto it = snapshot.manifest.metadata.find(key);
        if (it == snapshot.manifest.metadata.end())
            return of_another(snapshot, "was not written by gpt: it lacks \"" + std::string(key) +
                                            "\"; use another --snapshot-dir");
        if (it->second != words.at(key))
            return of_another(snapshot, "was written with another " + std::string(option) +
                                            "; use another --snapshot-dir");
    }
    return {};
}

}  // namespace

std::vector<ddprun::trainer::Tensor> tensors_of(Gpt& gpt) {
    // Without the moments of AdamW the next step would differ.
    auto all = gpt.parameters();
    for (auto& moment : gpt.moments()) all.push_back(std::move(moment));
    // Three times the same shapes: parameters, first and second moments.
    const auto shapes = tensors(gpt.shape());
    std::vector<ddprun::trainer::Tensor> state;
    for (const auto& [name, buffer] : all)
        state.push_back(tensor(name, shapes[state.size() % shapes.size()].shape,
                               std::span(static_cast<float*>(buffer.data), buffer.count)));
    return state;
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
    auto epoch = value_of<std::int64_t>(snapshot.manifest, "epoch");
    if (!epoch) return epoch.error();
    auto consumed = value_of<std::int64_t>(snapshot.manifest, "consumed");
    if (!consumed) return consumed.error();
    if (auto same = check_words(snapshot, words); !same) return same;
    LoadOptions options;
    if (memory == Memory::gpu) options.copy = copy_to_gpu();
    if (auto done = load_into(snapshot, tensors_of(gpt), options); !done) return done;
    return sampler.resume({*epoch, *consumed});
}

Result<std::vector<float>> parameters_on_host(Gpt& gpt, Memory memory) {
    std::vector<float> values;
    for (const auto& [name, buffer] : gpt.parameters()) {
        const std::size_t begin = values.size();
        values.resize(begin + buffer.count);
        if (memory == Memory::host) {
            std::memcpy(values.data() + begin, buffer.data, buffer.bytes());
        } else if (auto done = gpu_copy(values.data() + begin, buffer.data, buffer.bytes());
                   !done) {
            return done.error();
        }
    }
    return values;
}

}  // namespace example::gpt
