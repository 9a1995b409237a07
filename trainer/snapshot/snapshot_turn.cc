// Whose the folder is: the half of SnapshotFolder that takes it over, and sees that another has.
#include <algorithm>

#include "trainer/snapshot/snapshot.h"

namespace ddprun::trainer {

// The turn comes before the look, and the record before the choice: what appears from now on, under
// an earlier turn, is a stale writer's.
Result<void> SnapshotFolder::take_over() {
    if (auto done = take_turn(); !done) return done;
    auto files = list_folder(folder_);
    if (!files) return files.error();
    const ResumeRecord last = record_before(*files);
    usable_.clear();
    for (const auto& file : *files) {
        auto name = parse_manifest_name(file);
        if (name && admits(*name, last)) usable_.push_back(*name);
    }
    std::sort(usable_.begin(), usable_.end(), std::greater<>());
    ResumeRecord record{turn_, run_id_, generation_, {}};
    for (const auto& name : usable_) record.manifests.push_back(name.manifest());
    auto done = write_durably(path(record_name(turn_)), write_record(record));
    if (!done) return reason_of(done.error());
    done = check_turn();
    if (done) tidy_up(*files);
    return done;
}

// Of several that come at the same time each gets a turn of its own.
Result<void> SnapshotFolder::take_turn() {
    auto files = list_folder(folder_);
    if (!files) return files.error();
    for (std::int64_t turn = last_turn(*files) + 1;; ++turn) {
        auto made = make_first(path(record_name(turn)));
        if (made) turn_ = turn;
        if (made || made.error().code() != ErrorCode::exists) return made;
    }
}

// The last one that is whole: it holds what those before it left. An empty one is that of a loader
// that had not chosen yet; nothing was written after it.
ResumeRecord SnapshotFolder::record_before(const std::vector<std::string>& files) const {
    ResumeRecord last;
    for (const auto& file : files) {
        const auto turn = parse_record_name(file);
        if (!turn || *turn >= turn_) continue;
        auto text = read_text(path(file));
        if (text && text->empty()) continue;
        auto record = text ? parse_record(*text) : Result<ResumeRecord>(text.error());
        if (!record)
            warn_("record " + path(file) + " is skipped: " + record.error().sentence());
        else if (record->turn > last.turn)
            last = std::move(*record);
    }
    return last;
}

// A manifest that cannot be read is left to the loader, which says so.
bool SnapshotFolder::admits(const SnapshotName& name, const ResumeRecord& last) const {
    if (is_admissible(name, 0, last)) return true;
    auto text = read_text(path(name.manifest()));
    auto manifest = text ? parse_manifest(*text) : Result<Manifest>(text.error());
    return !manifest || is_admissible(name, manifest->turn, last);
}

// Whether nobody has come since.
Result<void> SnapshotFolder::check_turn() const {
    auto files = list_folder(folder_);
    if (!files) return files.error();
    const std::int64_t last = last_turn(*files);
    if (last <= turn_) return {};
    auto text = read_text(path(record_name(last)));
    auto record = text ? parse_record(*text) : Result<ResumeRecord>(text.error());
    return Error(ErrorCode::closed,
                 "the folder " + folder_ + " has been taken over by " +
                     (record ? "generation " + std::to_string(record->generation.value) +
                                   " of run \"" + record->run_id + "\""
                             : "another loader") +
                     "; nothing is written there by generation " +
                     std::to_string(generation_.value) + " of run \"" + run_id_ + "\" any more");
}

// Who has come since removes our temporaries, and takes our names: then that is what failed. (Ranks
// that load what rank 0 chose have no turn.)
Error SnapshotFolder::reason_of(const Error& failure) const {
    auto ours = turn_ ? check_turn() : Result<void>();
    return ours ? failure : ours.error();
}

// By the list from which was chosen: what came later is not ours to judge.
void SnapshotFolder::tidy_up(const std::vector<std::string>& files) const {
    for (const auto& file : leftovers(files)) (void)remove_file(path(file));
    for (const auto& file : files) {
        const auto turn = parse_record_name(file);
        if (turn && *turn < turn_) (void)remove_file(path(file));
    }
}

}  // namespace ddprun::trainer
