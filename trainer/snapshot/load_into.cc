// Compares a program's tensors with those of a snapshot, and copies them.
#include "trainer/snapshot/load_into.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/count_text.h"
#include "trainer/gpu/gpu.h"
#include "trainer/snapshot/save_opinion.h"

namespace ddprun::trainer {
namespace {

using Saved = std::map<std::string, const TensorView*>;

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

std::string shape_of(const Tensor& tensor) { return describe_shape(tensor.type, tensor.shape); }

std::string snapshot_name(const Snapshot& snapshot) {
    return "snapshot " + snapshot.manifest.name.stem();
}

// At most three names, so that the line can be read.
std::string names_of(const Saved& saved) {
    std::string text = count_text(saved.size(), "tensor");
    std::size_t said = 0;
    for (const auto& [name, view] : saved) {
        if (said == 3) break;
        text += (said++ ? ", " : ": ") + quoted(name);
    }
    return text + (saved.size() > said ? ", …" : "");
}

Result<void> fits(const Snapshot& snapshot, const Saved& saved, const Tensor& tensor) {
    const auto found = saved.find(tensor.name);
    if (found == saved.end())
        return usage_error(snapshot_name(snapshot) + " has no tensor " + quoted(tensor.name) +
                           ", which is " + shape_of(tensor) + " in this program; it has " +
                           names_of(saved));
    const TensorView& view = *found->second;
    if (view.type != tensor.type || view.shape != tensor.shape)
        return usage_error("tensor " + quoted(tensor.name) + " is " +
                           describe_shape(view.type, view.shape) + " in " +
                           snapshot_name(snapshot) + ", and " + shape_of(tensor) +
                           " in this program; is it a snapshot of another model or of other "
                           "settings?");
    if (view.data.size() != tensor.data.size())
        return usage_error("tensor " + quoted(tensor.name) + " is " + shape_of(tensor) +
                           ", but this program gives it " + std::to_string(tensor.data.size()) +
                           " bytes of memory");
    return {};
}

Result<void> copy_bytes(const Tensor& to, std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(to.data.data(), from.data(), from.size());
    return {};
}

}  // namespace

std::vector<TensorView> views_of(const std::vector<Tensor>& tensors) {
    std::vector<TensorView> views;
    for (const auto& tensor : tensors)
        views.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
    return views;
}

decltype(LoadOptions::copy) copy_to_gpu() {
    return [](const Tensor& to, std::span<const std::byte> from) {
        return gpu_copy(to.data.data(), from.data(), from.size());
    };
}

Result<void> load_into(const Snapshot& snapshot, const std::vector<Tensor>& tensors,
                       const LoadOptions& options) {
    Saved saved, rest;
    for (const auto& view : snapshot.content.tensors) saved[view.name] = &view;
    rest = saved;
    for (const auto& tensor : tensors) {
        if (auto good = fits(snapshot, saved, tensor); !good) return good;
        rest.erase(tensor.name);
    }
    if (!rest.empty() && options.rest == Rest::refused)
        return usage_error(snapshot_name(snapshot) + " has " + names_of(rest) +
                           ", which this program does not have; is it a snapshot of another "
                           "model? To load a part of it, use Rest::ignored");
    const auto copy = options.copy ? options.copy : copy_bytes;
    for (const auto& tensor : tensors)
        if (auto done = copy(tensor, saved.at(tensor.name)->data); !done) return done;
    return {};
}

}  // namespace ddprun::trainer
