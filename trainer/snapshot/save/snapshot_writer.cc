// Copies tensors, writes them on a thread, and lets rank 0 decide whether a snapshot is complete.
#include "trainer/snapshot/save/snapshot_writer.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <span>

#include "trainer/group/guarded_store.h"
#include "trainer/group/late_memory.h"
#include "trainer/snapshot/format/savable.h"
#include "trainer/snapshot/save/save_contents.h"

namespace ddprun::trainer {

using Clock = std::chrono::steady_clock;

// The memory of one snapshot in progress. The thread reads it until `work` is done.
struct SnapshotWriter::Slot {
    SaveCopier::Memory memory;  // only this rank's files
    std::optional<Work> work;
};

namespace {

// A living rank says this soon what it knows of a small snapshot.
constexpr auto kLastWord = std::chrono::seconds(1);
// Two saves later every rank of a training has called save(); one that is so late never will.
constexpr auto kTwoSavesLate = std::chrono::seconds(10);

// Adds the time of its life to a sum.
class TimeAdded {
  public:
    explicit TimeAdded(Clock::duration& sum) : sum_(sum) {}
    ~TimeAdded() { sum_ += Clock::now() - begun_; }
    TimeAdded(const TimeAdded&) = delete;
    TimeAdded& operator=(const TimeAdded&) = delete;

  private:
    Clock::duration& sum_;
    const Clock::time_point begun_ = Clock::now();
};

// Empty if no rank has any.
std::vector<Metadata> metadata_of(const std::vector<SaveAnswer>& answers) {
    std::vector<Metadata> all;
    bool empty = true;
    for (const auto& answer : answers) {
        all.push_back(answer.metadata);
        empty = empty && answer.metadata.empty();
    }
    if (empty) all.clear();
    return all;
}

// Where other ranks have some of this rank's slices, too, only those remain that it writes.
Result<void> keep_written(PageBuffer& file, const SaveJob& job) {
    if (job.written == job.slices) return {};
    auto slices = parse_slices(job.written);
    return slices ? keep_slices(file, *slices) : slices.error();
}

// Also the tensors that other ranks write: every rank refuses, so none writes.
Result<void> check_save(std::int64_t step, const std::vector<TensorView>& tensors,
                        const Metadata& metadata, const Metadata& own_metadata) {
    if (step < 0)
        return usage_error("a snapshot of step " + std::to_string(step) + "; steps are 0 or more");
    if (auto good = check_savable(tensors); !good) return good;
    for (const auto& tensor : tensors)
        if (auto good = check_settled(tensor.name, tensor.data); !good) return good;
    if (auto good = check_savable(metadata); !good) return good;
    return check_savable(own_metadata);
}

}  // namespace

SnapshotWriter::SnapshotWriter(const Context& context, std::unique_ptr<Store> store,
                               SnapshotFolder folder, FolderClaim claim, WriterOptions options,
                               SaveCopier copier)
    : context_(context),
      store_(
          std::make_unique<GuardedStore>(std::move(store), [this] { return waits_no_longer(); })),
      claim_(std::move(claim)),
      folder_(std::move(folder)),
      options_(std::move(options)),
      copier_(std::move(copier)),
      slots_{std::make_unique<Slot>(), std::make_unique<Slot>()} {}

// Finishes the queued snapshots first: their tasks use the other members.
SnapshotWriter::~SnapshotWriter() {
    if (std::uncaught_exceptions() > 0) training_failed();
    const bool failed = leave_by_.load() != Clock::time_point::max();
    queue_.stop();
    if (!failed && context_.world_size > 1)
        SaveMeeting(context_, *store_, key_of(saves_), options_.timeout).leave(saves_);
}

void SnapshotWriter::training_failed() { leave_by_ = Clock::now() + kLastWord; }

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::make(const Context& context,
                                                             const Store& store,
                                                             SnapshotFolder folder,
                                                             WriterOptions options) {
    auto claim = FolderClaim::make(folder.folder());
    if (!claim) return claim.error();
    auto own = store.another("snapshot_writer");
    if (!own) return own.error();
    const auto number = next_of_kind(**own, "writer", context.rank);
    if (!number) return number.error();
    auto copier = SaveCopier::make(options.copy, options.gpu);
    if (!copier) return copier.error();
    std::unique_ptr<SnapshotWriter> made(
        new SnapshotWriter(context, std::move(*own), std::move(folder), std::move(*claim),
                           std::move(options), std::move(*copier)));
    made->number_ = *number;
    return made;
}

void SnapshotWriter::prepare(const std::vector<TensorView>& tensors) {
    const SaveJob job(context_, tensors, options_.file_bytes);
    const auto files = job.own_tensors(tensors);
    for (auto& slot : slots_) {
        // The slot is in use. Its save() allocates what it needs.
        if (slot->work) continue;
        // The reference is safe: a slot lives as long as the writer.
        slot->work = queue_.push(
            [this, &memory = slot->memory, files] { return copier_.reserve(memory, files); });
    }
}

// Other errors than these do not go away: the ranks differ, or the folder is another job's.
Result<void> SnapshotWriter::or_warned(const Result<void>& saved) const {
    if (saved || !options_.goes_on_unsaved) return saved;
    const auto code = saved.error().code();
    if (code != ErrorCode::unavailable && code != ErrorCode::not_found) return saved;
    if (context_.is_first())
        folder_.warn(saved.error().sentence() +
                     "; the training goes on, and the next save tries again");
    return {};
}

// Of the keys of one save() of this writer.
std::string SnapshotWriter::key_of(std::int64_t save) const {
    return std::to_string(number_) + "/" + std::to_string(save) + "/";
}

// Of all ranks but rank 0, which miss rank 0 together, one warns.
SaveMeeting SnapshotWriter::meeting_of(const SaveJob& job) {
    const auto warn = [this, name = job.name](const std::string& text) {
        if (context_.rank.value <= 1) folder_.warn("snapshot " + name.stem() + ": " + text);
    };
    const auto certain = [this] {
        const auto since = held_up_since_.load();
        return since != Clock::time_point::max() && Clock::now() - since > kTwoSavesLate;
    };
    return {context_, *store_, job.key, options_.timeout, {warn, certain}};
}

// Waits until the slot's memory is free. Keeps the first failure for the next save() or wait().
Result<void> SnapshotWriter::await(Slot& slot) {
    if (!slot.work) return {};
    const auto done = or_warned(slot.work->wait());
    slot.work.reset();
    if (!done && failed_) failed_ = done;
    return done;
}

Result<void> SnapshotWriter::save(std::int64_t step, const std::vector<TensorView>& tensors,
                                  const Metadata& metadata, const Metadata& own_metadata) {
    const TimeAdded added(held_);
    const auto begun = Clock::now();
    SaveJob job(context_, tensors, options_.file_bytes);
    job.name = SnapshotName{step, folder_.generation()};
    job.metadata = metadata;
    job.own_metadata = own_metadata;
    job.key = key_of(saves_);
    job.begun = begun;
    // The slots are used in turn, so this one holds the snapshot before the last one.
    Slot& slot = *slots_[static_cast<std::size_t>(saves_++ % 2)];
    held_up_since_ = begun;
    (void)await(slot);
    held_up_since_ = Clock::time_point::max();
    // The failure of an earlier snapshot is reported now, but this one is still saved: it may
    // succeed.
    const Result<void> earlier = std::exchange(failed_, Result<void>());
    // The training stands still meanwhile, so nothing else is done here.
    auto copied = check_save(step, tensors, metadata, own_metadata);
    if (copied && options_.verify_replicas && !options_.copy && !options_.gpu &&
        context_.world_size > 1)
        job.contents = contents_of(tensors, static_cast<std::uint64_t>(saves_));
    if (copied) copied = copier_.copy(slot.memory, job.own_tensors(tensors));
    // Also if the copying failed: the other ranks wait for what this rank reports.
    slot.work =
        queue_.push([this, &slot, job, copied]() mutable { return write(slot, job, copied); });
    return copied ? earlier : copied;
}

// The checksum of this rank's list of slices, which lies in the store. Empty: it brings none.
Result<std::string> SnapshotWriter::slices_word(SaveMeeting& meeting, const SaveJob& job) {
    return job.slices.empty() ? Result<std::string>(std::string())
                              : meeting.publish(job.slices, lists_);
}

// Rank 0 checks that the folder is still ours and finds free file names. The other ranks write
// nothing before they have its answer.
Result<WritePlan> SnapshotWriter::open(SaveMeeting& meeting, const SaveJob& job,
                                       const Result<void>& copied) {
    const SaveOpinion mine{
        job.name, context_.world_size, job.planned(),
        checksum_of(std::as_bytes(std::span(job.tensors))),
        job.contents.empty() ? kNotCompared : checksum_of(std::as_bytes(std::span(job.contents)))};
    if (!context_.is_first()) {
        auto slices = slices_word(meeting, job);
        if (!slices) return slices.error();
        return meeting.join(mine, job.tensors, {job.own_metadata, *slices, job.contents}, copied);
    }
    auto how = folder_.begin(job.name);
    auto said =
        how ? meeting.begin(mine, job.tensors, *how, lists_) : meeting.call_off(how.error());
    return said || !how ? how : Result<WritePlan>(said.error());
}

// Rank 0 only: hears all ranks, compares their slices, and chooses who writes what. Returns the
// ranks' own metadata.
Result<std::vector<Metadata>> SnapshotWriter::agree(SaveMeeting& meeting, const SaveJob& job,
                                                    const Result<void>& copied) {
    if (!copied) return copied.error();
    auto mine = slices_word(meeting, job);
    if (!mine) return mine.error();
    auto answers = meeting.answers({job.own_metadata, *mine, job.contents}, job.shared_names());
    if (!answers) return answers.error();
    std::vector<std::string> lists;
    for (const auto& answer : *answers) lists.push_back(answer.slices);
    auto good = slices_.agree(lists, job.shared_names(),
                              [&](const std::string& list) { return meeting.published(list); });
    if (!good) return good.error();
    return metadata_of(*answers);
}

// Rank 0 only: the same, and tells the other ranks. Also a failure: they wait for it.
Result<std::vector<Metadata>> SnapshotWriter::hear_all(SaveMeeting& meeting, SaveJob& job,
                                                       const Result<void>& copied) {
    auto metadata = agree(meeting, job, copied);
    const auto& written = slices_.written();
    if (metadata) job.written = write_slices(written[0]);
    for (int rank = 1; rank < context_.world_size; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        if (metadata && !slices_.brings(index)) continue;
        const auto list =
            metadata ? write_slices(written[index]) : Result<std::string>(metadata.error());
        if (auto said = meeting.assign(rank, list, lists_); !said) return said.error();
    }
    return metadata;
}

// Writes this rank's files and reports each of them, also a failed one, so that rank 0 does not
// wait for it. `files` gets the names that may be on disk.
Result<void> SnapshotWriter::write_own(SaveMeeting& meeting, Slot& slot, const SaveJob& job,
                                       std::vector<std::string>& files) {
    const auto own = job.own_files();
    Result<void> result;
    for (std::size_t i = 0; i < own.size(); ++i) {
        PageBuffer& pages = slot.memory.files[i].pages;
        auto ready = own[i].slices ? keep_written(pages, job) : Result<void>();
        auto file =
            ready ? folder_.write_file(own[i].name, pages) : Result<SnapshotFile>(ready.error());
        if (file) files.push_back(own[i].name);
        if (file && job.how.read_back)
            if (auto same = folder_.read_back(*file); !same) file = same.error();
        // A reader of slices wants to check no more than it needs.
        if (file && own[i].slices) file->blocks = checksums_of_blocks(pages.bytes());
        if (auto said = meeting.report(own[i].key, file); !said) return said;
        if (!file) result = file.error();
    }
    return result;
}

// Rank 0 only: waits until a file is written, and looks at it.
Result<SnapshotFile> SnapshotWriter::hear_of(SaveMeeting& meeting,
                                             const SaveJob::File& expected) const {
    auto file = meeting.file(expected.key, expected.name, expected.rank);
    if (!file) return file;
    if (auto seen = folder_.look_at(*file); !seen)
        return Error(seen.error().code(),
                     "of rank " + std::to_string(expected.rank) + ": " + seen.error().sentence());
    return file;
}

// Rank 0 only: collects the reports of all files, and commits.
Result<void> SnapshotWriter::complete(SaveMeeting& meeting, const SaveJob& job,
                                      std::vector<Metadata> metadata) {
    const auto& written = slices_.written();
    std::vector<SnapshotFile> files;
    for (const auto& expected : job.all_files(written)) {
        auto file = hear_of(meeting, expected);
        if (!file) return file.error();
        files.push_back(std::move(*file));
    }
    if (std::any_of(written.begin(), written.end(),
                    [](const auto& list) { return !list.empty(); })) {
        const auto text = job.index_of(written).text();
        if (auto done = folder_.write_index(job.name.index(job.how.edition), text); !done)
            return done;
    }
    return folder_.commit(job.name, std::move(files), job.metadata, std::move(metadata));
}

// Rank 0's half of a snapshot. `files` gets the names that may be on disk.
Result<void> SnapshotWriter::lead(SaveMeeting& meeting, Slot& slot, SaveJob& job,
                                  const Result<void>& copied, std::vector<std::string>& files) {
    auto metadata = hear_all(meeting, job, copied);
    Result<void> result = metadata ? write_own(meeting, slot, job, files) : metadata.error();
    if (result) result = complete(meeting, job, std::move(*metadata));
    // If it was written. It stays if the snapshot is complete after all.
    files.push_back(job.name.index(job.how.edition));
    meeting.end(result);
    return result;
}

// The other ranks' half. Without rank 0's word the snapshot may be complete: `files` stay, and the
// next loader decides.
Result<void> SnapshotWriter::follow(SaveMeeting& meeting, Slot& slot, SaveJob& job,
                                    std::vector<std::string>& files) {
    if (!job.slices.empty()) {
        auto list = meeting.assigned(job.slices);
        if (!list) return list.error();
        job.written = std::move(*list);
    }
    Result<void> result = write_own(meeting, slot, job, files);
    bool unknown = false;
    auto outcome = meeting.outcome(unknown);
    if (unknown) files.clear();
    return outcome ? result : outcome;
}

// Writes, and learns whether the snapshot is complete. Rank 0's result is the result of all ranks:
// otherwise some rank could report a snapshot that does not exist.
Result<void> SnapshotWriter::write_and_agree(Slot& slot, SaveJob& job, const Result<void>& copied) {
    SaveMeeting meeting = meeting_of(job);
    if (context_.is_first()) meeting.remove_later(words_);
    auto how = open(meeting, job, copied);
    if (!how) return how.error();
    job.how = *how;
    std::vector<std::string> files;
    Result<void> result = context_.is_first() ? lead(meeting, slot, job, copied, files)
                                              : follow(meeting, slot, job, files);
    if (!result)
        for (const auto& name : files) folder_.discard(job.name, name);
    return result;
}

// Runs on the writer's thread.
Result<void> SnapshotWriter::write(Slot& slot, SaveJob& job, Result<void> copied) {
    // Also if the copying failed: the copies before that use the slot's memory.
    if (auto done = copier_.settle(slot.memory); copied) copied = done;
    if (auto done = write_and_agree(slot, job, copied); !done) {
        return Error(done.error().code(),
                     "snapshot " + job.name.stem() + " was not saved: " + done.error().sentence());
    }
    std::lock_guard lock(mutex_);
    newest_ = {job.name.step,
               std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - job.begun)};
    return {};
}

Result<void> SnapshotWriter::wait() {
    const TimeAdded added(held_);
    for (auto& slot : slots_) (void)await(*slot);
    return std::exchange(failed_, Result<void>());
}

SnapshotWriter::Newest SnapshotWriter::newest() const {
    std::lock_guard lock(mutex_);
    return newest_;
}

}  // namespace ddprun::trainer
