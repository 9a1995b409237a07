// Which snapshot a job resumes from: the choice among the snapshots of a folder.
#include <limits>

#include "trainer/snapshot/folder/resume_meeting.h"
#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {
namespace {

// If all snapshots are damaged, the job ends with an error. Beginning anew would silently give up
// the work that they hold.
Error none_readable(std::size_t count, const std::string& folder) {
    return {ErrorCode::malformed, "none of the " + std::to_string(count) + " snapshots in " +
                                      folder +
                                      " can be read; to begin anew, use another folder or empty "
                                      "this one"};
}

std::string skipped(const std::string& path, const Error& why) {
    return "snapshot " + path + " is skipped: " + why.sentence();
}

}  // namespace

Result<std::vector<SnapshotName>> SnapshotFolder::candidates() {
    if (auto done = take_over_to_read(); !done) return done.error();
    return usable_;
}

Result<std::vector<SnapshotName>> SnapshotFolder::base_candidates() const {
    return candidates_in(base_, warn_);
}

void SnapshotFolder::skip(const SnapshotName& name, bool from_base, const Error& why) {
    if (!from_base) skipped_.push_back(name);
    warn_(skipped((from_base ? base_ : folder_) + "/" + name.manifest(), why));
}

Error SnapshotFolder::none_readable(std::size_t count) const {
    return trainer::none_readable(count, folder_);
}

Result<std::optional<Snapshot>> SnapshotFolder::load_newest() {
    if (auto done = take_over_to_read(); !done) return done.error();
    for (const auto& name : usable_) {
        auto snapshot = load(name);
        if (snapshot) {
            proven_ = name;
            return std::optional<Snapshot>(std::move(*snapshot));
        }
        // A later loader may have removed it. Then the folder is that loader's, and this process
        // must not resume.
        if (auto ours = check_turn(); !ours) return ours.error();
        skip(name, false, snapshot.error());
    }
    if (!usable_.empty()) return none_readable(usable_.size());
    if (base_.empty()) return std::optional<Snapshot>();
    auto snapshot = newest_in(base_, warn_);
    if (!snapshot) return snapshot.error();
    snapshot->from_base = true;
    return std::optional<Snapshot>(std::move(*snapshot));
}

// A loader without a turn of its own: it chooses as the next one would.
Result<Snapshot> SnapshotFolder::newest_in(const std::string& folder, Warn warn) {
    SnapshotFolder there({}, folder, 1, std::move(warn), {});
    const auto usable = candidates_in(folder, there.warn_);
    if (!usable) return usable.error();
    for (const auto& name : *usable) {
        auto snapshot = there.load(name);
        if (snapshot) return snapshot;
        there.skip(name, false, snapshot.error());
    }
    return there.none_readable(usable->size());
}

Result<std::vector<SnapshotName>> SnapshotFolder::candidates_in(const std::string& folder,
                                                                const Warn& warn) {
    const SnapshotFolder there({}, folder, 1, warn, {});
    auto files = list_folder(folder);
    if (!files) return files.error();
    auto usable = there.usable_in(*files, std::numeric_limits<std::int64_t>::max());
    if (usable.empty())
        return Error(ErrorCode::not_found, "the folder " + folder + " has no snapshot");
    return usable;
}

Result<Snapshot> SnapshotFolder::load_from_base(const SnapshotName& name) const {
    auto snapshot = SnapshotFolder({}, base_, 1, warn_, {}).load(name);
    if (snapshot) snapshot->from_base = true;
    return snapshot;
}

Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout) {
    std::optional<Snapshot> loaded;
    const auto load = [&](const Candidate& candidate) -> Result<void> {
        loaded.reset();  // before the next one is read: memory for one is enough
        auto made = candidate.from_base ? folder.load_from_base(candidate.name)
                                        : folder.load(candidate.name);
        if (!made) return made.error();
        loaded = std::move(*made);
        return {};
    };
    const auto taken = resume_together(context, store, folder, "resume", timeout, load);
    if (!taken) return taken.error();
    if (!*taken) loaded.reset();
    return loaded;
}

}  // namespace ddprun::trainer
