// Converts between the state of a training and a snapshot.
#include "examples/train_state.h"

#include <cstring>

#include "trainer/gpu/gpu.h"
#include "trainer/worker/or_throw.h"

namespace example {

using namespace ddprun::trainer;

// The momenta belong to the state: without them the next step would differ.
std::vector<Tensor> tensors_of(Mlp& mlp, const MasterWeights* masters, ShardedOptimizer* sharded) {
    auto all = mlp.parameters();
    if (!sharded)
        for (auto& momentum : mlp.momenta()) all.push_back(std::move(momentum));
    if (masters)
        for (auto& master : masters->state()) all.push_back(std::move(master));
    std::vector<Tensor> tensors;
    if (sharded) tensors = sharded->state();
    for (const auto& [name, buffer] : all)
        tensors.push_back({name,
                           buffer.type,
                           {buffer.count},
                           {static_cast<std::byte*>(buffer.data), buffer.bytes()}});
    return tensors;
}

Metadata words_of(const SamplerPosition& position, const EarlyStop& early, std::uint64_t seed) {
    Metadata words{{"epoch", text_of(position.epoch)},
                   {"consumed", text_of(position.consumed)},
                   {"seed", text_of(seed)}};
    // Before the first validation there is nothing to save.
    if (early.best()) {
        words["best"] = text_of(*early.best());
        words["waited"] = text_of(early.waited());
    }
    return words;
}

void restore(const Manifest& manifest, std::uint64_t seed, DistributedSampler& sampler,
             EarlyStop& early) {
    // Another seed would shuffle the data in another order, and the position would mean other
    // samples.
    if (or_throw(value_of<std::uint64_t>(manifest, "seed")) != seed)
        throw Failure(ddprun::usage_error("snapshot " + manifest.name.stem() +
                                          " was written with another --seed"));
    // These are missing before the first validation.
    if (manifest.metadata.contains("best"))
        early.resume(or_throw(value_of<double>(manifest, "best")),
                     or_throw(value_of<int>(manifest, "waited")));
    or_throw(sampler.resume({or_throw(value_of<std::int64_t>(manifest, "epoch")),
                             or_throw(value_of<std::int64_t>(manifest, "consumed"))}));
}

std::vector<std::byte> parameters_on_host(Mlp& mlp, Memory memory) {
    std::vector<std::byte> values;
    for (const auto& [name, buffer] : mlp.parameters()) {
        const std::size_t begin = values.size();
        values.resize(begin + buffer.bytes());
        if (memory == Memory::gpu)
            or_throw(gpu_copy(values.data() + begin, buffer.data, buffer.bytes()));
        else
            std::memcpy(values.data() + begin, buffer.data, buffer.bytes());
    }
    return values;
}

}  // namespace example
