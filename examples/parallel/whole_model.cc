// The pieces of a row as one block of memory. Each element is brought by one rank; the others bring
// zero, and so a sum puts the block together.
#include "examples/parallel/whole_model.h"

#include <algorithm>
#include <map>

namespace example {

using ddprun::Result;
using ddprun::trainer::buffer_of;
using ddprun::trainer::Tensor;

WholeModel::WholeModel(ddprun::trainer::ProcessGroup& row, std::vector<Piece> pieces)
    : row_(row), pieces_(std::move(pieces)), tensors_(whole_tensors()) {
    std::size_t size = 0;
    for (const auto& tensor : tensors_) size += tensor.count();
    values_.resize(size);
    std::map<std::string, float*> begins;
    float* at = values_.data();
    for (const auto& tensor : tensors_) {
        begins[tensor.name] = at;
        at += tensor.count();
    }
    for (const auto& piece : pieces_) places_.push_back(begins.at(piece.name) + piece.first);
}

std::vector<Tensor> WholeModel::whole() {
    std::vector<Tensor> all;
    float* at = values_.data();
    for (const auto& tensor : tensors_) {
        all.push_back(
            ddprun::trainer::tensor(tensor.name, tensor.shape, std::span(at, tensor.count())));
        at += tensor.count();
    }
    return all;
}

std::vector<ddprun::trainer::TensorView> WholeModel::tensors() {
    return ddprun::trainer::views_of(whole());
}

Result<void> WholeModel::gather() {
    std::fill(values_.begin(), values_.end(), 0.0f);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const auto& piece = pieces_[i];
        if (piece.counts) std::copy(piece.values.begin(), piece.values.end(), places_[i]);
    }
    return row_.all_reduce(buffer_of(std::span(values_)));
}

Result<void> WholeModel::load(const ddprun::trainer::Snapshot& snapshot) {
    if (auto done = ddprun::trainer::load_into(snapshot, whole()); !done) return done;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        std::copy_n(places_[i], pieces_[i].values.size(), pieces_[i].values.begin());
    return {};
}

}  // namespace example
