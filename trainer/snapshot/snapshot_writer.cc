// Copies tensors, writes them on a thread, and lets rank 0 decide whether a snapshot is complete.
#include "trainer/snapshot/snapshot_writer.h"

#include <algorithm>
#include <cstring>
#include <optional>

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
    Metadata metadata;
    std::string key;  // prefix of its keys in the store; the same on all ranks
    Clock::time_point begun;
    int edition = 0;

    std::string file(std::size_t index) const { return name.tensors(index, plan.size(), edition); }
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

// What a rank writes to the store about a file: "4096 0123456789abcdef" (bytes and checksum), or "!
// sentence" if it could not write the file.
std::string word_of(const SnapshotFile& file) {
    return std::to_string(file.bytes) + " " + file.checksum;
}
std::string word_of(const Error& error) { return "! " + error.sentence(); }

// What rank 0 reads of another rank's report.
Result<SnapshotFile> file_of(const std::string& name, const std::string& word, int rank) {
    const auto space = word.find(' ');
    if (word.starts_with("! ") || space == std::string::npos) {
        return Error(ErrorCode::unavailable,
                     "rank " + std::to_string(rank) + " could not write its part of a snapshot: " +
                         word.substr(std::min<std::size_t>(2, word.size())));
    }
    return SnapshotFile{name, std::strtoull(word.c_str(), nullptr, 10), word.substr(space + 1)};
}

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
                               SnapshotFolder folder, WriterOptions options)
    : context_(context),
      store_(std::move(store)),
      folder_(std::move(folder)),
      options_(std::move(options)),
      slots_{std::make_unique<Slot>(), std::make_unique<Slot>()} {}

// Finishes the queued snapshots first: their tasks use the other members.
SnapshotWriter::~SnapshotWriter() { queue_.stop(); }

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::make(const Context& context,
                                                             const Store& store,
                                                             SnapshotFolder folder,
                                                             WriterOptions options) {
    auto own = store.another("snapshot_writer");
    if (!own) return own.error();
    if (!options.copy) options.copy = copy_bytes;
    return std::unique_ptr<SnapshotWriter>(
        new SnapshotWriter(context, std::move(*own), std::move(folder), std::move(options)));
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
                                  const Metadata& metadata) {
    const TimeAdded added(held_);
    Job job{SnapshotName{step, folder_.generation()},
            plan_files(tensors, options_.file_bytes),
            metadata,
            std::to_string(saves_) + "/",
            Clock::now(),
            0};
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
Result<int> SnapshotWriter::edition_of(const Job& job) {
    const std::string key = job.key + "begin";
    if (context_.is_first()) {
        auto edition = folder_.begin(job.name);
        auto said = store_->set(key, edition ? std::to_string(*edition) : word_of(edition.error()));
        return said || !edition ? edition : Result<int>(said.error());
    }
    auto word = store_->get(key, options_.timeout);
    if (!word) return word.error();
    if (word->starts_with("! ")) return Error(ErrorCode::unavailable, word->substr(2));
    return std::atoi(word->c_str());
}

// Writes this rank's files and reports each of them, also a failed one, so that rank 0 does not
// wait for it. `written` gets the names that are on disk.
Result<void> SnapshotWriter::write_own(const Slot& slot, const Job& job, const Result<void>& copied,
                                       std::vector<std::string>& written) {
    const auto own = own_files(job.plan.size());
    Result<void> result = copied;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const std::string name = job.file(own[i]);
        auto file =
            copied ? folder_.write_file(name, slot.files[i]) : Result<SnapshotFile>(copied.error());
        const std::string word = file ? word_of(*file) : word_of(file.error());
        if (file) written.push_back(name);
        if (auto said = store_->set(job.key + std::to_string(own[i]), word); !said) return said;
        if (!file) result = file.error();
    }
    return result;
}

// Rank 0 only: collects the reports of all files and commits. One deadline holds for all of them.
Result<void> SnapshotWriter::complete(const Job& job) {
    const auto deadline = Clock::now() + options_.timeout;
    std::vector<SnapshotFile> files;
    for (std::size_t i = 0; i < job.plan.size(); ++i) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        // The rank that writes file i, see own_files().
        const int rank = static_cast<int>(i % static_cast<std::size_t>(context_.world_size));
        auto word =
            store_->get(job.key + std::to_string(i), std::max(left, std::chrono::milliseconds(1)));
        if (!word) {
            return Error(word.error().code(), "rank " + std::to_string(rank) +
                                                  " did not write its part of snapshot " +
                                                  job.name.stem() + ": " + word.error().sentence());
        }
        auto file = file_of(job.file(i), *word, rank);
        if (!file) return file.error();
        files.push_back(std::move(*file));
    }
    return folder_.commit(job.name, std::move(files), job.metadata);
}

// Writes, and learns whether the snapshot is complete. Rank 0's result is the result of all ranks:
// otherwise some rank could report a snapshot that does not exist.
Result<void> SnapshotWriter::write_and_agree(const Slot& slot, Job& job,
                                             const Result<void>& copied) {
    auto edition = edition_of(job);
    if (!edition) return edition.error();
    job.edition = *edition;
    std::vector<std::string> written;
    Result<void> result = write_own(slot, job, copied, written);
    if (context_.is_first()) {
        if (result) result = complete(job);
        (void)store_->set(job.key + "done", result ? "ok" : word_of(result.error()));
    } else {
        // Rank 0 may use its whole timeout, so this rank waits a little longer.
        auto word = store_->get(job.key + "done", options_.timeout + std::chrono::seconds(5));
        // Rank 0 may have completed the snapshot. The files stay, and the next loader decides.
        if (!word) return word.error();
        if (*word != "ok") result = Error(ErrorCode::unavailable, word->substr(2));
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
