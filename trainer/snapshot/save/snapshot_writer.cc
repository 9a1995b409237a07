// Copies tensors and gives them to a thread, which makes a round of each save.
#include "trainer/snapshot/save/snapshot_writer.h"

#include <exception>
#include <optional>

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

// Runs on the writer's thread.
Result<void> SnapshotWriter::write(Slot& slot, SaveJob& job, Result<void> copied) {
    // Also if the copying failed: the copies before that use the slot's memory.
    if (auto done = copier_.settle(slot.memory); copied) copied = done;
    SaveRound round(context_, folder_, kept_, meeting_of(job), job, slot.memory);
    if (auto done = round.write(copied); !done) {
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
