// Finds the saved pieces of each tensor, and copies what they have in common with it.
#include "trainer/snapshot/load/fill_tensors.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/count_text.h"
#include "trainer/tensors/slice_cover.h"
#include "trainer/tensors/slice_search.h"

namespace ddprun::trainer {
namespace {

// The slices of a tensor, or the one that is the whole.
struct Pieces {
    std::vector<const TensorView*> views;
    std::optional<SliceSearch> search;  // of their rectangles
};
using Saved = std::map<std::string, Pieces>;  // by name

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
std::string names_of(const std::vector<std::string>& names) {
    std::string text = count_text(names.size(), "tensor");
    const std::size_t said = std::min<std::size_t>(names.size(), 3);
    for (std::size_t i = 0; i < said; ++i) text += (i ? ", " : ": ") + quoted(names[i]);
    return text + (names.size() > said ? ", …" : "");
}

std::vector<std::string> names_of_all(const Saved& saved) {
    std::vector<std::string> names;
    for (const auto& [name, pieces] : saved) names.push_back(name);
    return names;
}

// The files are not trusted: slices of one tensor must say the same of it.
Result<Saved> sorted_out(const std::string& snapshot, const std::vector<TensorView>& views) {
    Saved saved;
    for (const auto& view : views) {
        auto& pieces = saved[view.name].views;
        if (!pieces.empty() &&
            (pieces[0]->type != view.type || whole_of(*pieces[0]) != whole_of(view)))
            return Error(ErrorCode::malformed, snapshot + " has tensor " + quoted(view.name) +
                                                   " as " + shape_of(*pieces[0]) + " and as " +
                                                   shape_of(view));
        pieces.push_back(&view);
    }
    for (auto& [name, pieces] : saved) {
        std::vector<Rectangle> parts;
        for (const TensorView* view : pieces.views) parts.push_back(rectangle_of(*view));
        pieces.search.emplace(std::move(parts));
    }
    return saved;
}

Result<void> fits(const std::string& snapshot, const Saved& saved, const Tensor& tensor) {
    const auto found = saved.find(tensor.name);
    if (found == saved.end())
        return usage_error(snapshot + " has no tensor " + quoted(tensor.name) + ", which is " +
                           shape_of(tensor) + " in this program; it has " +
                           names_of(names_of_all(saved)));
    const TensorView& first = *found->second.views[0];
    if (first.type != tensor.type || whole_of(first) != whole_of(tensor))
        return usage_error("tensor " + quoted(tensor.name) + " is " + shape_of(first) + " in " +
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
Result<void> put_together(const std::string& snapshot, const Tensor& tensor, const Pieces& pieces,
                          std::byte* to, const Gather& gather) {
    const Rectangle target = rectangle_of(tensor);
    const std::size_t width = size_of(tensor.type);
    std::vector<Rectangle> there;
    for (const std::size_t index : pieces.search->near(target)) {
        const Rectangle& from = pieces.search->part(index);
        const auto both = common(target, from);
        if (!both) continue;
        there.push_back(*both);
        Result<void> done;
        for_each_run(*both, target, from, [&](auto into, auto at, auto count) {
            done = gather(to + into * width,
                          pieces.views[index]->data.subspan(at * width, count * width));
            return static_cast<bool>(done);
        });
        if (!done) return done;
    }
    const auto wrong = cover_of(there, target).first;
    if (!wrong) return {};
    return Error(ErrorCode::malformed,
                 snapshot + " has the element " + describe_extents(wrong->at) + " of tensor " +
                     quoted(tensor.name) + " " + shape_of(tensor) +
                     (wrong->times ? " " + count_text(wrong->times, "time") : " not at all") +
                     ", and not once; its files are not what a save has written");
}

}  // namespace

Result<void> fill_tensors(const std::string& snapshot, const std::vector<TensorView>& views,
                          const std::vector<Tensor>& tensors, const LoadOptions& options,
                          const Gather& gather) {
    const auto saved = sorted_out(snapshot, views);
    if (!saved) return saved.error();
    std::set<std::string> listed;
    for (const auto& tensor : tensors) {
        if (auto good = fits(snapshot, *saved, tensor); !good) return good;
        listed.insert(tensor.name);
    }
    std::vector<std::string> rest;
    for (const auto& [name, pieces] : *saved)
        if (!listed.contains(name)) rest.push_back(name);
    if (!rest.empty() && options.rest == Rest::refused)
        return usage_error(snapshot + " has " + names_of(rest) +
                           ", which this program does not have; is it a snapshot of another "
                           "model? To load a part of it, use Rest::ignored");
    // File by file, whatever the order of the program's list.
    std::vector<const Tensor*> order;
    for (const auto& tensor : tensors) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [&](const Tensor* a, const Tensor* b) {
        const auto at = [&](const Tensor* t) { return saved->at(t->name).views[0]->data.data(); };
        return std::less<>()(at(a), at(b));
    });
    std::vector<std::byte> on_host;  // for memory that only options.copy can reach
    for (const Tensor* next : order) {
        const Tensor& tensor = *next;
        std::byte* to = tensor.data.data();
        if (options.copy) {
            on_host.resize(tensor.data.size());
            to = on_host.data();
        }
        auto done = put_together(snapshot, tensor, saved->at(tensor.name), to, gather);
        if (done && options.copy) done = options.copy(tensor, on_host);
        if (!done) return done;
    }
    return {};
}

}  // namespace ddprun::trainer
