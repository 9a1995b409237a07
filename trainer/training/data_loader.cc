// The threads that load, and the way of a batch from them to the program.
#include "trainer/training/data_loader.h"

#include <exception>

#include "base/failure.h"
#include "trainer/gpu/gpu.h"

namespace ddprun::trainer {
namespace {

// Where a field begins in a batch: vector instructions work best from such addresses.
constexpr std::size_t kAlignment = 256;

constexpr std::int64_t kMostSamples = std::int64_t{1} << 30;
constexpr int kMostThreads = 1024, kMostAhead = 1 << 16;
constexpr std::size_t kMostElements = std::size_t{1} << 40;

std::size_t aligned(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The finalizer of splitmix64: numbers that are near each other become numbers that are not.
std::uint64_t mixed(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

Result<void> verify(const std::vector<BatchField>& fields, const LoaderOptions& options) {
    if (options.batch < 1 || options.batch > kMostSamples || options.threads < 1 ||
        options.threads > kMostThreads || options.ahead < 0 || options.ahead > kMostAhead)
        return usage_error("a data loader with batches of " + std::to_string(options.batch) +
                           " samples, " + std::to_string(options.threads) + " threads and " +
                           std::to_string(options.ahead) + " batches ahead; it takes 1 to " +
                           std::to_string(kMostSamples) + " samples, 1 to " +
                           std::to_string(kMostThreads) + " threads and 0 to " +
                           std::to_string(kMostAhead) + " batches");
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::size_t count = fields[i].count;
        if (count == 0 || count > kMostElements / static_cast<std::size_t>(options.batch))
            return usage_error("field " + std::to_string(i) + " of a data loader has " +
                               std::to_string(count) + " elements; it takes 1 to " +
                               std::to_string(kMostElements) + " in a batch");
    }
    if (fields.empty()) return usage_error("a data loader without fields; give it at least 1");
    return {};
}

// Host memory from which a GPU copies.
Result<GroupMemory> pinned(std::size_t bytes) {
    auto memory = gpu_allocate_pinned(bytes);
    if (!memory) return memory.error();
    return GroupMemory::own(Memory::host, *memory, gpu_free_pinned);
}

}  // namespace

Result<std::unique_ptr<DataLoader>> DataLoader::make(DistributedSampler sampler,
                                                     std::vector<BatchField> fields,
                                                     LoadSample load,
                                                     const LoaderOptions& options) {
    if (auto good = verify(fields, options); !good) return good.error();
    const int ahead = options.ahead ? options.ahead : 2 * options.threads;
    std::unique_ptr<DataLoader> made(new DataLoader(std::move(sampler), std::move(fields),
                                                    std::move(load), options,
                                                    static_cast<std::size_t>(ahead) + 1));
    if (auto done = made->allocate(); !done) return done.error();
    for (int i = 0; i < options.threads; ++i) {
        auto thread = start_thread("a data loader (" + std::to_string(i + 1) + " of " +
                                       std::to_string(options.threads) + ")",
                                   [loader = made.get()] { loader->work(); });
        if (!thread) return thread.error();
        made->threads_.push_back(std::move(*thread));
    }
    return made;
}

DataLoader::DataLoader(DistributedSampler sampler, std::vector<BatchField> fields, LoadSample load,
                       const LoaderOptions& options, std::size_t slots)
    : fields_(std::move(fields)),
      load_(std::move(load)),
      options_(options),
      position_(sampler.position()),
      sampler_(std::move(sampler)),
      ring_(slots),
      slots_(slots) {}

Result<void> DataLoader::allocate() {
    const auto batch = static_cast<std::size_t>(options_.batch);
    for (const BatchField& field : fields_)
        bytes_ += aligned(batch * field.count * size_of(field.type));
    const bool gpu = options_.memory == Memory::gpu;
    for (Slot& slot : slots_) {
        auto memory = gpu ? pinned(bytes_) : GroupMemory::make(Memory::host, bytes_);
        if (!memory) return memory.error();
        slot.memory = std::move(*memory);
    }
    if (!gpu) return {};
    for (GroupMemory& own : on_gpu_) {
        auto memory = GroupMemory::make(Memory::gpu, bytes_);
        if (!memory) return memory.error();
        own = std::move(*memory);
    }
    auto copier = GpuCopier::make();
    if (!copier) return copier.error();
    copier_ = std::move(*copier);
    return {};
}

DataLoader::~DataLoader() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    freed_.notify_all();
    for (auto& thread : threads_) thread.join();
    // Pinned memory must not go while it is being copied.
    for (const Slot& slot : slots_)
        if (slot.copied) (void)slot.copied.wait();
}

// A batch is dealt under the lock, so batches are begun in the sampler's order.
void DataLoader::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        freed_.wait(lock, [&] { return stopping_ || (!halted_ && !ring_.full()); });
        if (stopping_) return;
        const std::size_t index = ring_.begin();
        Slot& slot = slots_[index];
        deal(slot);
        ++loading_;
        lock.unlock();
        slot.result = load(slot);
        lock.lock();
        --loading_;
        // Batches behind it are not needed: next() never comes to them.
        if (!slot.result) halted_ = true;
        ring_.loaded(index);
        loaded_.notify_all();
    }
}

// The end of an epoch is a batch without samples. Those behind it are of the next epoch.
void DataLoader::deal(Slot& slot) {
    slot.samples = sampler_.next(options_.batch);
    slot.after = sampler_.position();
    if (slot.samples.empty()) sampler_.next_epoch();
}

Result<void> DataLoader::load(Slot& slot) const {
    // The copy of the batch that was here before.
    if (auto before = std::exchange(slot.copied, {}); before)
        if (auto done = before.wait(); !done) return done;
    const auto fields = fields_in(slot.memory.data(), slot.samples.size());
    SampleMemory to(fields.size());
    for (std::size_t i = 0; i < slot.samples.size(); ++i) {
        for (std::size_t field = 0; field < fields.size(); ++field) {
            const std::size_t bytes = fields_[field].count * size_of(fields_[field].type);
            to[field] = {static_cast<std::byte*>(fields[field].data) + i * bytes, bytes};
        }
        const std::int64_t index = slot.samples[i], epoch = slot.after.epoch;
        const Sample sample{index, epoch,
                            mixed(mixed(mixed(options_.seed) ^ static_cast<std::uint64_t>(epoch)) ^
                                  static_cast<std::uint64_t>(index))};
        if (auto done = load_one(sample, to); !done) return done;
    }
    return {};
}

// An exception must not end the thread, and with it the process.
Result<void> DataLoader::load_one(const Sample& sample, const SampleMemory& to) const {
    const auto named = [&](ErrorCode code, const std::string& sentence) {
        return Error(code, "sample " + std::to_string(sample.index) + " of epoch " +
                               std::to_string(sample.epoch) + ": " + sentence);
    };
    try {
        auto done = load_(sample, to);
        if (done) return done;
        return named(done.error().code(), done.error().sentence());
    } catch (const Failure& failure) {
        return named(failure.code(), failure.what());
    } catch (const std::exception& exception) {
        return named(ErrorCode::unavailable, exception.what());
    } catch (...) {
        return named(ErrorCode::unavailable, "an exception that is no std::exception");
    }
}

std::vector<Buffer> DataLoader::fields_in(void* memory, std::size_t samples) const {
    std::vector<Buffer> fields;
    auto* at = static_cast<char*>(memory);
    for (const BatchField& field : fields_) {
        fields.push_back({at, samples * field.count, field.type});
        at += aligned(static_cast<std::size_t>(options_.batch) * field.count * size_of(field.type));
    }
    return fields;
}

DataLoader::Slot& DataLoader::wait_for_front(std::unique_lock<std::mutex>& lock) {
    loaded_.wait(lock, [&] { return ring_.front().has_value(); });
    return slots_[*ring_.front()];
}

// The program is through with the batch that it got last. Under the lock.
void DataLoader::release() {
    if (!std::exchange(in_use_, false)) return;
    ring_.pop();
    freed_.notify_one();
}

// Two buffers on the GPU are enough: the one that is filled was read by what the stream was given
// before the last batch.
Result<void> DataLoader::copy(Slot& slot, std::uint64_t number, GpuStream stream) {
    if (slot.copied) return {};
    const auto from = fields_in(slot.memory.data(), slot.samples.size());
    const auto to = fields_in(on_gpu_[number % 2].data(), slot.samples.size());
    if (auto done = copier_.begin(stream); !done) return done;
    for (std::size_t i = 0; i < from.size(); ++i)
        if (auto done = copier_.copy(to[i].data, from[i].data, from[i].bytes()); !done) return done;
    auto copied = copier_.end();
    if (!copied) return copied.error();
    slot.copied = std::move(*copied);
    return {};
}

Result<Batch> DataLoader::next(GpuStream stream) {
    std::unique_lock lock(mutex_);
    release();
    Slot& slot = wait_for_front(lock);
    if (!slot.result) return slot.result.error();
    if (slot.samples.empty()) return Batch();
    const bool gpu = options_.memory == Memory::gpu;
    void* memory = slot.memory.data();
    if (gpu) {
        const std::uint64_t number = ring_.number();
        memory = on_gpu_[number % 2].data();
        if (auto done = copy(slot, number, stream); !done) return done.error();
        if (auto done = slot.copied.before(stream); !done) return done.error();
        // The next one travels while the program works on this one.
        if (const auto next = ring_.front(1); next && slots_[*next].result)
            if (auto done = copy(slots_[*next], number + 1, stream); !done) return done.error();
    }
    position_ = slot.after;
    Batch batch{slot.samples, fields_in(memory, slot.samples.size())};
    // On a GPU the slot is free as soon as its copy is done, for which its thread waits.
    in_use_ = true;
    if (gpu) release();
    return batch;
}

void DataLoader::next_epoch() {
    const SamplerPosition next{position_.epoch + 1, 0};
    if (left() > 0) {
        (void)resume(next);
        return;
    }
    std::unique_lock lock(mutex_);
    release();
    // The batch without samples that ends the epoch.
    (void)wait_for_front(lock);
    ring_.pop();
    freed_.notify_one();
    position_ = next;
}

Result<void> DataLoader::resume(const SamplerPosition& position) {
    std::unique_lock lock(mutex_);
    const bool halted = std::exchange(halted_, true);
    loaded_.wait(lock, [&] { return loading_ == 0; });
    auto done = sampler_.resume(position);
    halted_ = halted && !done;
    if (done) {
        position_ = position;
        in_use_ = false;
        ring_.clear();
    }
    freed_.notify_all();
    return done;
}

}  // namespace ddprun::trainer
