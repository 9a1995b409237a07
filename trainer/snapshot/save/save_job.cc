// Deals tensors over files, and files over ranks.
#include "trainer/snapshot/save/save_job.h"

#include "trainer/snapshot/save/save_opinion.h"

namespace ddprun::trainer {
namespace {

// The tensors of one file.
std::vector<TensorView> chosen(const std::vector<TensorView>& tensors,
                               const std::vector<std::size_t>& indices) {
    std::vector<TensorView> part;
    for (std::size_t index : indices) part.push_back(tensors[index]);
    return part;
}

}  // namespace

// A plan has at least one file, also without tensors. Where this rank has slices instead, the file
// is left out: it is that of rank 0, and no other rank has to know.
SaveJob::SaveJob(const Context& context, const std::vector<TensorView>& all,
                 std::uint64_t file_bytes)
    : rank_(context.rank.value),
      world_(context.world_size),
      plan_(plan_files(all, file_bytes)),
      planned_(plan_.size()) {
    std::vector<TensorView> shared;
    for (std::size_t i = 0; i < all.size(); ++i) {
        tensors_.emplace_back(all[i].name, all[i].data.size());
        if (!all[i].place)
            shared.push_back(all[i]);
        else if (!all[i].is_nothing())
            slices_.push_back(i);
    }
    if (shared.empty() && !slices_.empty()) plan_.clear();
    tensors = tensor_list(shared);
    slices = write_slices(all);
}

// Files are dealt out in turn, so that the ranks have equal shares. Every rank can compute every
// rank's share.
SaveJob::File SaveJob::file(std::size_t index) const {
    return {name.tensors(index, plan_.size(), how.edition), std::to_string(index),
            static_cast<int>(index % static_cast<std::size_t>(world_)), false};
}

SaveJob::File SaveJob::slices_file(int rank) const {
    return {
        name.slices(static_cast<std::size_t>(rank), static_cast<std::size_t>(world_), how.edition),
        "slices/" + std::to_string(rank), rank, true};
}

std::vector<SaveJob::File> SaveJob::own_files() const {
    std::vector<File> files;
    for (std::size_t i = 0; i < plan_.size(); ++i)
        if (file(i).rank == rank_) files.push_back(file(i));
    if (!written.empty()) files.push_back(slices_file(rank_));
    return files;
}

// In the order of own_files().
std::vector<std::vector<TensorView>> SaveJob::own_tensors(
    const std::vector<TensorView>& all) const {
    std::vector<std::vector<TensorView>> files;
    for (std::size_t i = 0; i < plan_.size(); ++i)
        if (file(i).rank == rank_) files.push_back(chosen(all, plan_[i]));
    if (!slices_.empty()) files.push_back(chosen(all, slices_));
    return files;
}

std::vector<SaveJob::File> SaveJob::all_files(
    const std::vector<std::vector<SliceEntry>>& ranks) const {
    std::vector<File> files;
    for (std::size_t i = 0; i < plan_.size(); ++i) files.push_back(file(i));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        if (!ranks[rank].empty()) files.push_back(slices_file(static_cast<int>(rank)));
    return files;
}

SnapshotIndex SaveJob::index_of(const std::vector<std::vector<SliceEntry>>& ranks) const {
    SnapshotIndex index;
    for (std::size_t i = 0; i < plan_.size(); ++i)
        for (std::size_t tensor : plan_[i])
            index.add(tensors_[tensor].first, tensors_[tensor].second, file(i).name);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        for (const auto& slice : ranks[rank])
            index.add(slice, slices_file(static_cast<int>(rank)).name);
    return index;
}

std::set<std::string> SaveJob::shared_names() const {
    std::set<std::string> names;
    for (const auto& file : plan_)
        for (std::size_t index : file) names.insert(tensors_[index].first);
    return names;
}

}  // namespace ddprun::trainer
