// Reads and writes the weights of a GPT.
#include "examples/gpt/model_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "trainer/snapshot/format/durable_file.h"

namespace example::gpt {

using ddprun::Error;
using ddprun::Result;
using ddprun::usage_error;
using namespace ddprun::trainer;

namespace {

const char kPrefix[] = "transformer.";

std::string in_hexadecimal(const std::string& text) {
    static const char digits[] = "0123456789abcdef";
    std::string out;
    for (unsigned char c : text) out += {digits[c >> 4], digits[c & 15]};
    return out;
}

// The tensor of this name, with or without the prefix.
const TensorView* find(const Safetensors& file, const std::string& name) {
    const TensorView* found = file.find(name);
    return found ? found : file.find(name.substr(sizeof kPrefix - 1));
}

// A file that is no GPT-2 of ours: what is wrong with it.
Error wrong(const std::string& path, const std::string& what) {
    return usage_error("the model " + path + " " + what);
}

// Vocabulary and width are the sizes of the first tensor, the context that of the second.
Result<GptShape> shape_in(const std::string& path, const Safetensors& file) {
    const TensorView* tokens = find(file, std::string(kPrefix) + "wte.weight");
    const TensorView* positions = find(file, std::string(kPrefix) + "wpe.weight");
    if (!tokens || !positions || tokens->shape.size() != 2 || positions->shape.size() != 2)
        return wrong(path, "has no wte.weight and wpe.weight; is it a GPT-2?");
    GptShape shape;
    shape.vocabulary = static_cast<int>(tokens->shape[0]);
    shape.width = static_cast<int>(tokens->shape[1]);
    shape.context = static_cast<int>(positions->shape[0]);
    shape.layers = 0;
    while (find(file, kPrefix + ("h." + std::to_string(shape.layers) + ".ln_1.weight")))
        ++shape.layers;
    const auto heads = file.metadata.find("heads");
    if (heads == file.metadata.end()) {
        shape.heads = shape.width / 64;
    } else {
        const std::string& text = heads->second;
        std::from_chars(text.data(), text.data() + text.size(), shape.heads);
    }
    const int least =
        std::min({shape.vocabulary, shape.context, shape.layers, shape.heads, shape.width});
    if (least < 1 || shape.width % shape.heads != 0)
        return wrong(path, "has " + std::to_string(shape.layers) + " layers of width " +
                               std::to_string(shape.width) + " with " +
                               std::to_string(shape.heads) + " heads; is it a GPT-2?");
    return shape;
}

}  // namespace

Metadata words_of_model(const GptShape& shape, const std::string& vocabulary) {
    return {{"heads", std::to_string(shape.heads)}, {"vocabulary", in_hexadecimal(vocabulary)}};
}

Result<std::optional<std::string>> vocabulary_in(const Metadata& words) {
    auto it = words.find("vocabulary");
    if (it == words.end()) return std::optional<std::string>();
    const std::string& text = it->second;
    std::string characters;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        unsigned value = 0;
        const char* end = text.data() + i + 2;
        if (std::from_chars(text.data() + i, end, value, 16).ptr != end) break;
        characters += static_cast<char>(value);
    }
    if (characters.empty() || 2 * characters.size() != text.size())
        return usage_error("the vocabulary \"" + text + "\" is not hexadecimal");
    return std::optional(characters);
}

Result<ModelFile> read_model(const std::string& path) {
    auto pages = read_pages(path);
    if (!pages) return wrong(path, "cannot be read: " + pages.error().sentence());
    auto file = parse_safetensors(std::as_const(*pages).bytes());
    if (!file) return wrong(path, "cannot be read: " + file.error().sentence());
    auto shape = shape_in(path, *file);
    if (!shape) return shape.error();
    ModelFile model{*shape, std::vector<float>(parameter_count(*shape)), {}};
    for (const auto& tensor : tensors(*shape)) {
        const TensorView* found = find(*file, tensor.name);
        if (!found || found->type != DataType::float32 || found->shape != tensor.shape)
            return wrong(path, "has no " + tensor.name + " of " + std::to_string(tensor.count) +
                                   " float32 numbers in this shape");
        std::memcpy(&model.parameters[tensor.offset], found->data.data(), found->data.size());
    }
    auto vocabulary = vocabulary_in(file->metadata);
    if (!vocabulary) return wrong(path, "is damaged: " + vocabulary.error().sentence());
    model.vocabulary = *vocabulary;
    return model;
}

Result<void> write_model(const std::string& path, const GptShape& shape,
                         std::span<const float> parameters, const std::string& vocabulary) {
    std::vector<TensorView> views;
    for (const auto& tensor : tensors(shape))
        views.push_back(tensor_view(tensor.name, tensor.shape,
                                    parameters.subspan(tensor.offset, tensor.count)));
    auto words = words_of_model(shape, vocabulary);
    words["format"] = "pt";  // transformers reads no file without it
    auto head = safetensors_head(views, words);
    if (!head) return head.error();
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(*head))};
    for (std::size_t i : data_order(views)) pieces.push_back(views[i].data);
    return write_durably(path, pieces);
}

}  // namespace example::gpt
