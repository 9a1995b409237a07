// DataLoader: batches that threads load ahead, in the order of a DistributedSampler (as PyTorch's
// DataLoader with workers and pinned memory).
//
//   auto loader = DataLoader::make(sampler, {{DataType::float32, 784}, {DataType::int64, 1}},
//                                  [&](const Sample& sample, const SampleMemory& to) {
//                                      …                      // reads one sample into to[0], to[1]
//                                  }, {.batch = 32, .threads = 4}).value();
//   while (true) {
//       const Batch batch = loader->next().value();
//       if (batch.samples.empty()) { loader->next_epoch(); continue; }
//       …
//       save(loader->position());
//   }
//
// Which samples come, and in which order, is the sampler's business alone: it does not depend on
// the number of threads. What is loaded ahead does not count as seen. position() is that of the
// batches that next() has returned, so a snapshot loses no sample and repeats none, also with
// another number of ranks.
//
// On a GPU threads load into pinned memory. It is copied beside the program's work, and next()
// gives a stream its batch without waiting for the copy.
//
// Memory: ahead + 1 batches on the host; on a GPU also two there. Thread: one at a time for the
// loader; the program's function is called by several threads at once (with threads = 1 by one).
// Errors: usage; unavailable (memory, GPU); those of the program's function.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/system/start_thread.h"
#include "trainer/gpu/gpu_copier.h"
#include "trainer/group/group_memory.h"
#include "trainer/group/operation.h"
#include "trainer/training/batch_ring.h"
#include "trainer/training/distributed_sampler.h"

namespace ddprun::trainer {

// One part of each sample, e.g. an image or its label. All samples have the same size.
struct BatchField {
    DataType type = DataType::float32;
    std::size_t count = 1;  // elements of one sample
};

// What the program's function loads.
struct Sample {
    std::int64_t index = 0;  // in the data set
    std::int64_t epoch = 0;
    // A number for augmentation. It follows from LoaderOptions::seed, epoch and index only, so it
    // is the same with any number of threads and after a restart.
    std::uint64_t random = 0;
};

// Where one sample goes: the bytes of each field.
using SampleMemory = std::vector<std::span<std::byte>>;

// Fills the whole memory. An error or an exception becomes that of next(), with the sample's
// number.
using LoadSample = std::function<Result<void>(const Sample& sample, const SampleMemory& to)>;

struct LoaderOptions {
    std::int64_t batch = 1;  // samples of this rank in each step
    int threads = 1;
    int ahead = 0;  // batches that wait or are being loaded; 0: two for each thread
    // Where the batches come to lie. On a GPU it is that of the calling thread.
    Memory memory = Memory::host;
    std::uint64_t seed = 0;  // of Sample::random
};

// Its memory is the loader's, and stays as it is until the next call of next(), next_epoch() or
// resume(); on a GPU for what its stream has been given until then.
struct Batch {
    std::vector<std::int64_t> samples;  // their indices, in order; empty: the epoch is over
    std::vector<Buffer> fields;         // samples.size() × BatchField::count elements each
};

class DataLoader {
  public:
    // Begins to load at the sampler's position. Errors: usage, for options that are out of range.
    static Result<std::unique_ptr<DataLoader>> make(DistributedSampler sampler,
                                                    std::vector<BatchField> fields, LoadSample load,
                                                    const LoaderOptions& options);
    // Waits until the threads have loaded what they have begun.
    ~DataLoader();
    DataLoader(const DataLoader&) = delete;
    DataLoader& operator=(const DataLoader&) = delete;

    // The next batch, as DistributedSampler::next() deals it; waits until it is loaded. Empty if
    // the epoch is over; then call next_epoch(). `stream`, on a GPU always the same: the batch is
    // there for what it is given from now on. After an error it returns that error again, until
    // resume().
    Result<Batch> next(GpuStream stream = nullptr);

    // Goes on with the next epoch, whose batches may be loaded already. Before the end of an epoch
    // it drops the rest of it.
    void next_epoch();

    // Where all ranks are after the last batch that next() has returned, and how many samples this
    // rank still gets in this epoch.
    SamplerPosition position() const { return position_; }
    std::int64_t left() const { return sampler_.left_at(position_); }

    // Goes on at a position, for example of a snapshot. Waits until the threads have loaded what
    // they have begun, and drops it. Errors: usage, for a position outside of the list.
    Result<void> resume(const SamplerPosition& position);

  private:
    struct Slot {
        GroupMemory memory;
        SamplerPosition after;  // of the sampler, with this batch
        std::vector<std::int64_t> samples;
        Result<void> result;
        GpuEvent copied;  // on a GPU: its copy, once it has begun
    };

    DataLoader(DistributedSampler sampler, std::vector<BatchField> fields, LoadSample load,
               const LoaderOptions& options, std::size_t slots);
    Result<void> allocate();
    void work();
    void deal(Slot& slot);
    Result<void> load(Slot& slot) const;
    Result<void> load_one(const Sample& sample, const SampleMemory& to) const;
    Slot& wait_for_front(std::unique_lock<std::mutex>& lock);
    void release();
    Result<void> copy(Slot& slot, std::uint64_t number, GpuStream stream);
    std::vector<Buffer> fields_in(void* memory, std::size_t samples) const;

    const std::vector<BatchField> fields_;
    const LoadSample load_;
    const LoaderOptions options_;
    std::size_t bytes_ = 0;     // of a whole batch
    SamplerPosition position_;  // of what the program has; its thread's
    GroupMemory on_gpu_[2];     // batches of even and odd numbers
    GpuCopier copier_;

    std::mutex mutex_;  // of all below, but not of the content of slots that are being loaded
    std::condition_variable freed_, loaded_;
    DistributedSampler sampler_;  // ahead of position_
    BatchRing ring_;
    std::vector<Slot> slots_;
    bool in_use_ = false;  // on the host: the program has the front batch
    bool halted_ = false;  // no thread begins a batch: after an error, or for resume()
    bool stopping_ = false;
    int loading_ = 0;  // threads that load a batch
    std::vector<Thread> threads_;
};

}  // namespace ddprun::trainer
