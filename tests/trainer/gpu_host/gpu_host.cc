// gpu.h, gpu_stream.h and gpu_math.h on the played GPU. A node has eight of them; all share one
// device of the process, since a worker uses one.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/trainer/gpu_host/gpu_host.h"
#include "trainer/gpu/gpu_math.h"
#include "trainer/gpu/gpu_stream.h"
#include "trainer/group/operation.h"

namespace ddprun::trainer {
namespace {

using test::Device;
using test::Range;
using test::reads;
using test::writes;

constexpr int kGpus = 8;
thread_local int current = 0;
std::atomic<int> pinned{0};

// Work that is done in one go.
void give(GpuStream stream, const char* name, std::vector<Range> ranges,
          const std::function<void()>& act) {
    Device::get().give(stream, {name, std::move(ranges), [act] {
                                    return [act] {
                                        act();
                                        return true;
                                    };
                                }});
}

DataType type_of(GpuFloat type) {
    switch (type) {
        case GpuFloat::float64:
            return DataType::float64;
        case GpuFloat::float16:
            return DataType::float16;
        case GpuFloat::bfloat16:
            return DataType::bfloat16;
        default:
            return DataType::float32;
    }
}

double value_at(const void* values, DataType type, std::size_t i) {
    switch (type) {
        case DataType::float64:
            return static_cast<const double*>(values)[i];
        case DataType::float16:
            return static_cast<double>(static_cast<const Half*>(values)[i]);
        case DataType::bfloat16:
            return static_cast<const BFloat16*>(values)[i];
        default:
            return static_cast<const float*>(values)[i];
    }
}

void wait_for(GpuStream stream) {
    CUevent_st event;
    Device::get().record(stream, event);
    Device::get().host_waits(event);
}

}  // namespace

int gpu_count() { return kGpus; }
std::string gpu_name(int index) { return "played/" + std::to_string(index); }
std::string gpu_state() { return "8 played GPUs"; }
int gpu_current() { return current; }

GpuTurn::GpuTurn(int index) : before_(std::exchange(current, index)) {}
GpuTurn::~GpuTurn() { current = before_; }

Result<void*> gpu_allocate(std::size_t bytes) {
    Device::get().unsafe("an allocation");
    void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(memory, 0, bytes);
    Device::get().allocated(memory, bytes);
    return memory;
}

// As cudaFree, it waits for the GPU.
void gpu_free(void* memory) {
    if (!memory) return;
    Device::get().host_waits_for_all();
    Device::get().freed(memory);
    std::free(memory);
}

Result<void*> gpu_allocate_pinned(std::size_t bytes) { return gpu_allocate(bytes); }
void gpu_free_pinned(void* memory) { gpu_free(memory); }
Result<void> gpu_pin(void*, std::size_t) {
    ++pinned;
    return {};
}
void gpu_unpin(void*) { --pinned; }
int test::pinned_ranges() { return pinned; }

Result<void> gpu_copy(void* to, const void* from, std::size_t bytes) {
    Device::get().unsafe("a copy that waits");
    (void)gpu_copy(to, from, bytes, nullptr);
    wait_for(nullptr);
    return {};
}

Result<void> gpu_copy(void* to, const void* from, std::size_t bytes, GpuStream stream) {
    give(stream, "a copy", {reads(from, bytes), writes(to, bytes)},
         [=] { std::memcpy(to, from, bytes); });
    return {};
}

Result<void> gpu_zero(void* memory, std::size_t bytes, GpuStream stream) {
    give(stream, "zeros", {writes(memory, bytes)}, [=] { std::memset(memory, 0, bytes); });
    return {};
}

GpuStream gpu_legacy_stream() { return Device::legacy(); }
GpuStream gpu_thread_stream() { return Device::of_thread(); }

Result<OwnGpuStream> OwnGpuStream::make(GpuPriority) {
    OwnGpuStream made;
    made.stream_.reset(Device::get().make_stream(false));
    return made;
}
void OwnGpuStream::Destroy::operator()(GpuStream stream) const {
    Device::get().destroy_stream(stream);
}

Result<GpuEvent> GpuEvent::record(GpuStream stream) {
    GpuEvent made;
    made.event_ = std::make_shared<CUevent_st>();
    Device::get().record(stream, *made.event_);
    return made;
}
Result<void> GpuEvent::before(GpuStream stream) const {
    Device::get().wait_for(stream, *event_);
    return {};
}
Result<bool> GpuEvent::reached() const { return Device::get().host_sees(*event_); }
Result<bool> GpuEvent::seen() const { return Device::get().is_reached(*event_); }
Result<void> GpuEvent::wait() const {
    Device::get().host_waits(*event_);
    return {};
}
bool gpu_is_captured(GpuStream stream) { return Device::get().is_captured(stream); }
void gpu_watches_only() { Device::watches_only(); }

Result<void> gpu_add_square_sum(double* sum, const void* values, GpuFloat type, std::size_t count,
                                void* scratch, GpuStream stream) {
    const DataType t = type_of(type);
    give(stream, "a square sum",
         {reads(values, count * size_of(t)), writes(sum, sizeof *sum),
          writes(scratch, kGpuSumScratch)},
         [=] {
             for (std::size_t i = 0; i < count; ++i)
                 *sum += value_at(values, t, i) * value_at(values, t, i);
         });
    return {};
}

Result<void> gpu_clip(void* values, GpuFloat type, std::size_t count, const double* square_sum,
                      double most, GpuStream stream) {
    const DataType t = type_of(type);
    give(stream, "clipping",
         {writes(values, count * size_of(t)), reads(square_sum, sizeof(double))}, [=] {
             const double norm = std::sqrt(*square_sum);
             if (norm > most && std::isfinite(norm)) divide({values, count, t}, norm / most);
         });
    return {};
}

Result<void> gpu_divide(void* values, GpuFloat type, std::size_t count, double by,
                        GpuStream stream) {
    const DataType t = type_of(type);
    give(stream, "dividing", {writes(values, count * size_of(t))}, [=] {
        divide({values, count, t}, by);
    });
    return {};
}

Result<void> gpu_narrow(void* to, GpuFloat type, const float* from, std::size_t count, float by,
                        GpuStream stream) {
    give(stream, "to 16 bits", {reads(from, count * 4), writes(to, count * 2)}, [=] {
        for (std::size_t i = 0; i < count; ++i) {
            if (type == GpuFloat::float16)
                static_cast<Half*>(to)[i] = static_cast<Half>(from[i] / by);
            else
                static_cast<BFloat16*>(to)[i] = BFloat16(from[i] / by);
        }
    });
    return {};
}

Result<void> gpu_widen(float* to, const void* from, GpuFloat type, std::size_t count,
                       GpuStream stream) {
    const DataType t = type_of(type);
    give(stream, "from 16 bits", {reads(from, count * 2), writes(to, count * 4)}, [=] {
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(value_at(from, t, i));
    });
    return {};
}

}  // namespace ddprun::trainer
