// Copies tensors, writes them on a thread, and lets rank 0 decide whether a snapshot is complete.
#include "trainer/snapshot/snapshot_writer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {

using Clock = std::chrono::steady_clock;

// The memory of one snapshot in progress. The thread reads it until `work` is done.
struct SnapshotWriter::Slot {
    std::vector<PageBuffer> files;  // only this rank's files
    std::optional<Work> work;
};

// What the thread needs to know about one snapshot.
struct SnapshotWriter::Job {
    SnapshotName name;
    std::vector<std::vector<std::size_t>> plan;  // for each file: its tensors, as indices
    std::string tensors;                         // tensor_list()
    Metadata metadata, own_metadata;
    std::string key;  // prefix of its keys in the store; the same on all ranks
    Clock::time_point begun;
    WritePlan how = {};

    std::string file(std::size_t index) const {
        return name.tensors(index, plan.size(), how.edition);
    }
};

namespace {

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

Result<void> copy_bytes(std::byte* to, const TensorView& tensor) {
    if (!tensor.data.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
    return {};
}

// The tensors of one file.
std::vector<TensorView> chosen(const std::vector<TensorView>& tensors,
                               const std::vector<std::size_t>& indices) {
    std::vector<TensorView> part;
    for (std::size_t index : indices) part.push_back(tensors[index]);
    return part;
}

}  // namespace

CopyTensor copy_from_gpu() {
    return [](std::byte* to, const TensorView& tensor) {
        return gpu_copy(to, tensor.data.data(), tensor.data.size());
    };
}

SnapshotWriter::SnapshotWriter(const Context& context, std::unique_ptr<Store> store,
                               SnapshotFolder folder, FolderClaim claim, WriterOptions options)
    : context_(context),
      store_(std::move(store)),
      claim_(std::move(claim)),
      folder_(std::move(folder)),
      options_(std::move(options)),
      slots_{std::make_unique<Slot>(), std::make_unique<Slot>()} {}

// Finishes the queued snapshots first: their tasks use the other members.
SnapshotWriter::~SnapshotWriter() { queue_.stop(); }

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
    if (!options.copy) options.copy = copy_bytes;
    std::unique_ptr<SnapshotWriter> made(new SnapshotWriter(
        context, std::move(*own), std::move(folder), std::move(*claim), std::move(options)));
    made->number_ = *number;
    return made;
}

// Files are dealt out in turn, so that the ranks have equal shares. Every rank can compute every
// rank's share.
std::vector<std::size_t> SnapshotWriter::own_files(std::size_t files) const {
    std::vector<std::size_t> own;
    const auto world = static_cast<std::size_t>(context_.world_size);
    for (auto i = static_cast<std::size_t>(context_.rank.value); i < files; i += world)
        own.push_back(i);
    return own;
}

void SnapshotWriter::prepare(const std::vector<TensorView>& tensors) {
    const auto plan = plan_files(tensors, options_.file_bytes);
    std::vector<std::size_t> sizes;
    for (std::size_t file : own_files(plan.size())) {
        auto head = safetensors_head(chosen(tensors, plan[file]), {{"format", "pt"}});
        std::size_t bytes = head ? head->size() : 0;
        for (std::size_t index : plan[file]) bytes += tensors[index].data.size();
        sizes.push_back(bytes);
    }
    for (auto& slot : slots_) {
        // The slot is in use. Its save() allocates what it needs.
        if (slot->work) continue;
        // The reference is safe: a slot lives as long as the writer.
        slot->work = queue_.push([&files = slot->files, sizes]() -> Result<void> {
            files.resize(sizes.size());
            for (std::size_t i = 0; i < sizes.size(); ++i)
                if (auto done = files[i].resize(sizes[i]); !done) return done;
            return {};
        });
    }
}

// Waits until the slot's memory is free. Keeps the first failure for the next save() or wait().
Result<void> SnapshotWriter::await(Slot& slot) {
    if (!slot.work) return {};
    auto done = slot.work->wait();
    slot.work.reset();
    if (!done && failed_) failed_ = done;
    return done;
}

Result<void> SnapshotWriter::save(std::int64_t step, const std::vector<TensorView>& tensors,
                                  const Metadata& metadata, const Metadata& own_metadata) {
    const TimeAdded added(held_);
    Job job{SnapshotName{step, folder_.generation()},
            plan_files(tensors, options_.file_bytes),
            tensor_list(tensors),
            metadata,
            own_metadata,
            std::to_string(number_) + "/" + std::to_string(saves_) + "/",
            Clock::now()};
    // The slots are used in turn, so this one holds the snapshot before the last one.
    Slot& slot = *slots_[static_cast<std::size_t>(saves_++ % 2)];
    (void)await(slot);
    // The failure of an earlier snapshot is reported now, but this one is still saved: it may
    // succeed.
    const Result<void> earlier = std::exchange(failed_, Result<void>());
    auto copied = take_in(slot, tensors, job);
    // Also if the copying failed: the other ranks wait for what this rank reports.
    slot.work =
        queue_.push([this, &slot, job, copied]() mutable { return write(slot, job, copied); });
    return copied ? earlier : copied;
}

// Copies this rank's share. The training stands still meanwhile, so nothing else is done here.
Result<void> SnapshotWriter::take_in(Slot& slot, const std::vector<TensorView>& tensors,
                                     const Job& job) {
    const auto own = own_files(job.plan.size());
    // Never fewer: a buffer that is not needed now keeps its pages for a later snapshot.
    slot.files.resize(std::max(slot.files.size(), own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) {
        auto done = lay_out(chosen(tensors, job.plan[own[i]]), slot.files[i], options_.copy);
        if (!done) return done;
    }
    return {};
}

// Rank 0 checks that the folder is still ours and finds free file names. The other ranks write
// nothing before they have its answer.
Result<WritePlan> SnapshotWriter::open(SaveMeeting& meeting, const Job& job) {
    const SaveOpinion mine{job.name, context_.world_size, job.plan.size(),
                           checksum_of(std::as_bytes(std::span(job.tensors)))};
    if (!context_.is_first()) return meeting.join(mine, job.tensors, job.own_metadata);
    auto how = folder_.begin(job.name);
    auto said =
        how ? meeting.begin(mine, job.tensors, *how, lists_) : meeting.call_off(how.error());
    return said || !how ? how : Result<WritePlan>(said.error());
}

// Writes this rank's files and reports each of them, also a failed one, so that rank 0 does not
// wait for it. `written` gets the names that are on disk.
Result<void> SnapshotWriter::write_own(SaveMeeting& meeting, const Slot& slot, const Job& job,
                                       const Result<void>& copied,
                                       std::vector<std::string>& written) {
    const auto own = own_files(job.plan.size());
    Result<void> result = copied;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const std::string name = job.file(own[i]);
        auto file =
            copied ? folder_.write_file(name, slot.files[i]) : Result<SnapshotFile>(copied.error());
        if (file) written.push_back(name);
        if (file && job.how.read_back)
            if (auto same = folder_.read_back(*file); !same) file = same.error();
        if (auto said = meeting.report(own[i], file); !said) return said;
        if (!file) result = file.error();
    }
    return result;
}

// Rank 0 only: hears all ranks, collects the reports of all files, looks at the files, and commits.
Result<void> SnapshotWriter::complete(SaveMeeting& meeting, const Job& job) {
    auto ranks = meeting.answers(job.own_metadata);
    if (!ranks) return ranks.error();
    std::vector<SnapshotFile> files;
    for (std::size_t i = 0; i < job.plan.size(); ++i) {
        // The rank that writes file i, see own_files().
        const int rank = static_cast<int>(i % static_cast<std::size_t>(context_.world_size));
        auto file = meeting.file(i, job.file(i), rank);
        if (!file) return file.error();
        if (auto seen = folder_.look_at(*file); !seen)
            return Error(seen.error().code(),
                         "of rank " + std::to_string(rank) + ": " + seen.error().sentence());
        files.push_back(std::move(*file));
    }
    const bool empty = std::all_of(ranks->begin(), ranks->end(),
                                   [](const Metadata& metadata) { return metadata.empty(); });
    if (empty) ranks->clear();
    return folder_.commit(job.name, std::move(files), job.metadata, std::move(*ranks));
}

// Writes, and learns whether the snapshot is complete. Rank 0's result is the result of all ranks:
// otherwise some rank could report a snapshot that does not exist.
Result<void> SnapshotWriter::write_and_agree(const Slot& slot, Job& job,
                                             const Result<void>& copied) {
    SaveMeeting meeting(context_, *store_, job.key, options_.timeout);
    auto how = open(meeting, job);
    if (!how) return how.error();
    job.how = *how;
    std::vector<std::string> written;
    Result<void> result = write_own(meeting, slot, job, copied, written);
    if (context_.is_first()) {
        if (result) result = complete(meeting, job);
        meeting.end(result);
    } else {
        // Without rank 0's word the snapshot may be complete. The files stay, and the next loader
        // decides.
        bool unknown = false;
        auto outcome = meeting.outcome(unknown);
        if (unknown) return outcome;
        if (!outcome) result = outcome;
    }
    if (!result)
        for (const auto& name : written) folder_.discard(job.name, name);
    return result;
}

// Runs on the writer's thread.
Result<void> SnapshotWriter::write(const Slot& slot, Job& job, const Result<void>& copied) {
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
