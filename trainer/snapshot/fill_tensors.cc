// Finds the saved pieces of each tensor, and copies what they have in common with it.
#include "trainer/snapshot/fill_tensors.h"

#include <map>
#include <optional>

#include "base/count_text.h"
#include "trainer/snapshot/save_opinion.h"

namespace ddprun::trainer {
namespace {

// Name → its slices, or the one whole tensor.
using Saved = std::map<std::string, std::vector<const TensorView*>>;

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

template <class T>
const Extents& whole_of(const T& tensor) {
    return tensor.place ? tensor.place->whole : tensor.shape;
}

template <class T>
Rectangle rectangle_of(const T& tensor) {
    return {tensor.place ? tensor.place->offset : Extents(tensor.shape.size()), tensor.shape};
}

template <class T>
std::string shape_of(const T& tensor) {
    return describe_shape(tensor.type, whole_of(tensor));
}

// At most three names, so that the line can be read.
std::string names_of(const Saved& saved) {
    std::string text = count_text(saved.size(), "tensor");
    std::size_t said = 0;
    for (const auto& [name, views] : saved) {
        if (said == 3) break;
        text += (said++ ? ", " : ": ") + quoted(name);
    }
    return text + (saved.size() > said ? ", …" : "");
}

Result<void> fits(const std::string& snapshot, const Saved& saved, const Tensor& tensor) {
    const auto found = saved.find(tensor.name);
    if (found == saved.end())
        return usage_error(snapshot + " has no tensor " + quoted(tensor.name) + ", which is " +
                           shape_of(tensor) + " in this program; it has " + names_of(saved));
    for (const TensorView* view : found->second)
        if (view->type != tensor.type || whole_of(*view) != whole_of(tensor))
            return usage_error("tensor " + quoted(tensor.name) + " is " + shape_of(*view) + " in " +
                               snapshot + ", and " + shape_of(tensor) +
                               " in this program; is it a snapshot of another model or of other "
                               "settings?");
    if (!lies_in(rectangle_of(tensor), whole_of(tensor)))
        return usage_error("this program's slice " + describe_ranges(rectangle_of(tensor)) +
                           " of tensor " + quoted(tensor.name) + " does not lie in the whole " +
                           describe_extents(whole_of(tensor)));
    if (elements_of(tensor.shape).value_or(0) * size_of(tensor.type) != tensor.data.size())
        return usage_error("tensor " + quoted(tensor.name) + " is " +
                           describe_shape(tensor.type, tensor.shape) +
                           ", but this program gives it " + std::to_string(tensor.data.size()) +
                           " bytes of memory");
    return {};
}

// Copies what the pieces have of a rectangle to `to`.
Result<void> put_together(const std::string& snapshot, const Tensor& tensor,
                          const std::vector<const TensorView*>& pieces, std::byte* to,
                          const Gather& gather) {
    const Rectangle target = rectangle_of(tensor);
    const std::size_t width = size_of(tensor.type);
    std::uint64_t there = 0;
    for (const TensorView* piece : pieces) {
        const Rectangle from = rectangle_of(*piece);
        const auto both = common(target, from);
        if (!both) continue;
        there += elements_of(both->shape).value_or(0);
        Result<void> done;
        for_each_run(*both, target, from, [&](auto into, auto at, auto count) {
            done = gather(to + into * width, piece->data.subspan(at * width, count * width));
            return static_cast<bool>(done);
        });
        if (!done) return done;
    }
    if (there == elements_of(target.shape)) return {};
    return Error(ErrorCode::malformed, snapshot + " has " + std::to_string(there) + " of the " +
                                           std::to_string(*elements_of(target.shape)) +
                                           " elements of " + quoted(tensor.name) +
                                           describe_ranges(target));
}

}  // namespace

Result<void> fill_tensors(const std::string& snapshot, const std::vector<TensorView>& views,
                          const std::vector<Tensor>& tensors, const LoadOptions& options,
                          const Gather& gather) {
    Saved saved;
    for (const auto& view : views) saved[view.name].push_back(&view);
    Saved rest = saved;
    for (const auto& tensor : tensors) {
        if (auto good = fits(snapshot, saved, tensor); !good) return good;
        rest.erase(tensor.name);
    }
    if (!rest.empty() && options.rest == Rest::refused)
        return usage_error(snapshot + " has " + names_of(rest) +
                           ", which this program does not have; is it a snapshot of another "
                           "model? To load a part of it, use Rest::ignored");
    std::vector<std::byte> on_host;  // for memory that only options.copy can reach
    for (const auto& tensor : tensors) {
        std::byte* to = tensor.data.data();
        if (options.copy) {
            on_host.resize(tensor.data.size());
            to = on_host.data();
        }
        auto done = put_together(snapshot, tensor, saved.at(tensor.name), to, gather);
        if (done && options.copy) done = options.copy(tensor, on_host);
        if (!done) return done;
    }
    return {};
}

}  // namespace ddprun::trainer
