// The line of steps along which a training goes: no snapshot is written behind a newer one, from
// which a restart would resume, unless the newer ones are given up.
#include <algorithm>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {

// A damaged one is no obstacle: the training has gone back behind it for that reason. Reading it
// takes time, but only where a step is behind another.
Result<void> SnapshotFolder::check_order(const SnapshotName& next,
                                         const std::vector<SnapshotName>& names) {
    for (const auto& name : usable_) {
        const bool there = std::find(names.begin(), names.end(), name) != names.end();
        const bool skipped = std::find(skipped_.begin(), skipped_.end(), name) != skipped_.end();
        if (name.step <= next.step || !there || skipped) continue;
        if (auto loads = load(name); !loads) {
            skipped_.push_back(name);
            continue;
        }
        return Error(ErrorCode::refused,
                     "step " + std::to_string(next.step) + " lies behind " + name.stem() + " in " +
                         folder_ + ", from which a restart would resume; to go on from an older " +
                         "step, call SnapshotFolder::give_up_after() before resuming, or save to " +
                         "another folder");
    }
    return {};
}

Result<void> SnapshotFolder::give_up_after(std::int64_t step) {
    if (auto ours = take_over_to_write(); !ours) return ours;
    auto files = list_folder(folder_);
    if (!files) return files.error();
    for (const auto& name : manifests_in(*files)) {
        if (name.step <= step) continue;
        // Without its manifest it is no snapshot any more.
        if (auto done = remove_file(path(name.manifest())); !done) return done;
        remove(name, *files);
        std::erase(usable_, name);
        if (proven_ == name) proven_.reset();
    }
    return sync_folder(folder_);
}

}  // namespace ddprun::trainer
