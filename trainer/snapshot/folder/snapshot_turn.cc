// The ownership of a snapshot folder: how a SnapshotFolder takes it over, and how it notices that
// another loader has.
#include <algorithm>
#include <limits>

#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {

// The order matters. The turn comes before the listing: what appears later, under an earlier turn,
// was written by a stale process. The record comes before the choice, so that the next loader knows
// from which snapshots this one chose. Without a turn it chooses as the next loader would.
Result<void> SnapshotFolder::take_over(Result<void>& to_write) {
    if (!lock_) {
        auto lock = FolderLock::take(folder_, run_id_, generation_);
        if (!lock) return lock.error();
        lock_ = std::move(*lock);
    }
    to_write = take_turn();
    auto files = list_folder(folder_);
    if (!files) return files.error();
    seen_ = to_write ? 0 : last_turn(*files);
    usable_ = usable_in(*files, to_write ? turn_ : std::numeric_limits<std::int64_t>::max());
    if (!to_write) return {};
    // A later loader may have come by now. Then the files are not ours to remove.
    if (auto ours = check_turn(); !ours) return ours;
    // Before the record: they may be what the disk is full of.
    for (const auto& file : leftovers(*files)) (void)remove_file(path(file));
    to_write = write_down();
    if (!to_write && to_write.error().code() == ErrorCode::closed) return to_write;
    if (to_write) remove_older_records(*files);
    return {};
}

// On a full disk, or in a folder that may only be read, a training resumes all the same.
Result<void> SnapshotFolder::take_over_to_read() {
    Result<void> to_write;
    if (auto done = take_over(to_write); !done) return done;
    if (!to_write)
        warn_("no snapshot can be written to " + folder_ + " now: " + to_write.error().sentence() +
              "; the training goes on from what is there, and saves fail until this is repaired");
    return {};
}

Result<void> SnapshotFolder::take_over_to_write() {
    if (recorded_) return check_turn();
    // It has its turn, but the record could not be written.
    Result<void> to_write;
    if (turn_)
        to_write = write_down();
    else if (auto done = take_over(to_write); !done)
        return done;
    return to_write ? check_turn() : to_write;
}

Result<void> SnapshotFolder::write_down() {
    ResumeRecord record{turn_, run_id_, generation_, {}};
    for (const auto& name : usable_) record.manifests.push_back(name.manifest());
    if (auto done = write_durably(path(record_name(turn_)), write_record(record)); !done)
        return reason_of(done.error());
    recorded_ = true;
    return check_turn();
}

// Creates the empty record of the next turn. Only one process can create a file, so loaders that
// come at the same time get different turns.
Result<void> SnapshotFolder::take_turn() {
    auto files = list_folder(folder_);
    if (!files) return files.error();
    for (std::int64_t turn = last_turn(*files) + 1;; ++turn) {
        auto made = make_first(path(record_name(turn)));
        if (made) turn_ = turn, recorded_ = false;
        if (made || made.error().code() != ErrorCode::exists) return made;
    }
}

// What a loader with this turn may choose from, the newest first.
std::vector<SnapshotName> SnapshotFolder::usable_in(const std::vector<std::string>& files,
                                                    std::int64_t turn) const {
    const ResumeRecord last = record_before(turn, files);
    std::vector<SnapshotName> usable;
    for (const auto& file : files) {
        auto name = parse_manifest_name(file);
        if (name && admits(*name, last)) usable.push_back(*name);
    }
    std::sort(usable.begin(), usable.end(), std::greater<>());
    return usable;
}

// The newest readable record of a loader before this turn. It is enough, because each record lists
// everything that was usable at its time. An empty record belongs to a loader that ended before it
// chose; it wrote no snapshots.
ResumeRecord SnapshotFolder::record_before(std::int64_t turn,
                                           const std::vector<std::string>& files) const {
    ResumeRecord last;
    for (const auto& file : files) {
        const auto earlier = parse_record_name(file);
        if (!earlier || *earlier >= turn) continue;
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

// Whether a manifest in the folder may be used. A manifest that cannot be read is admitted: the
// loader reports it and skips it.
bool SnapshotFolder::admits(const SnapshotName& name, const ResumeRecord& last) const {
    // Turn 0 asks whether the name alone is enough. That saves reading most manifests.
    if (is_admissible(name, 0, last)) return true;
    auto text = read_text(path(name.manifest()));
    auto manifest = text ? parse_manifest(*text) : Result<Manifest>(text.error());
    return !manifest || is_admissible(name, manifest->turn, last);
}

Result<void> SnapshotFolder::check_turn() const {
    auto files = list_folder(folder_);
    if (!files) return files.error();
    const std::int64_t last = last_turn(*files);
    if (last <= std::max(turn_, seen_)) return {};
    // Only for the message: who the other loader is. Its record may still be empty.
    auto text = read_text(path(record_name(last)));
    auto record = text ? parse_record(*text) : Result<ResumeRecord>(text.error());
    const auto named = [](Generation generation, const std::string& run) {
        return "generation " + std::to_string(generation.value) + " of run \"" + run + "\"";
    };
    const std::string us = named(generation_, run_id_);
    const std::string other =
        !record ? std::string("another loader") : named(record->generation, record->run_id);
    const std::string advice =
        other == us ? "of the same name; does the program open the folder twice, or has the job "
                      "been started twice?"
                    : "and " + us + " must not write there any more";
    return Error(ErrorCode::closed, "the folder " + folder_ + " has been taken over by " + other +
                                        " (loader " + std::to_string(last) + ", this one is " +
                                        std::to_string(turn_) + "), " + advice);
}

// Why a write failed. A later loader removes our temporary files and may use our names; then its
// coming is the reason. (Ranks that load what rank 0 chose have no turn.)
Error SnapshotFolder::reason_of(const Error& failure) const {
    auto ours = turn_ ? check_turn() : Result<void>();
    return ours ? failure : ours.error();
}

// `files` is the list from which this loader chose: what appeared later may be a later loader's.
void SnapshotFolder::remove_older_records(const std::vector<std::string>& files) const {
    for (const auto& file : files) {
        const auto turn = parse_record_name(file);
        if (turn && *turn < turn_) (void)remove_file(path(file));
    }
}

}  // namespace ddprun::trainer
