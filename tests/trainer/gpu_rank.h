// A rank with a group over the double of NCCL on the played GPU, and a few numbers there.
#pragma once

#include "tests/trainer/gpu_host/gpu_host.h"
#include "tests/trainer/gpu_host/nccl_double.h"
#include "tests/trainer/group_rank.h"

namespace ddprun::trainer::test {

// run_ranks() with the double of NCCL among the ranks.
inline Ends run_gpu_ranks(int world, const std::function<int(const Context&)>& body,
                          std::chrono::seconds deadline = std::chrono::seconds(60)) {
    prepare_nccl();
    return run_ranks(world, body, deadline);
}

struct GpuRank : StoreRank {
    explicit GpuRank(const Context& context,
                     std::chrono::milliseconds timeout = std::chrono::seconds(60),
                     std::uint64_t checked_launches = 0)
        : StoreRank(context) {
        GroupOptions options{Backend::nccl, timeout, {}};
        options.checked_launches = checked_launches;
        auto made = make_process_group(context, *store, options);
        if (!made) std::fprintf(stderr, "%s\n", made.error().sentence().c_str());
        group = std::move(made.value());
    }

    std::unique_ptr<ProcessGroup> group;
};

// Floats on the GPU.
class GpuFloats {
  public:
    explicit GpuFloats(std::size_t count) : count_(count), data_(gpu_allocate(count * 4).value()) {}
    ~GpuFloats() { gpu_free(data_); }
    GpuFloats(const GpuFloats&) = delete;
    GpuFloats& operator=(const GpuFloats&) = delete;

    Buffer buffer() const { return {data_, count_, DataType::float32}; }
    float* values() const { return static_cast<float*>(data_); }
    std::size_t bytes() const { return count_ * 4; }

    // Kernels of the program.
    void fill(GpuStream stream, float value, const std::string& name = "fill") {
        launch(name, stream, {writes(data_, bytes())},
               [this, value] { std::fill_n(values(), count_, value); });
    }
    void scale(GpuStream stream, float by) {
        launch("scale", stream, {writes(data_, bytes())}, [this, by] {
            for (std::size_t i = 0; i < count_; ++i) values()[i] *= by;
        });
    }
    // Reads them in the order of the stream. Prints the first one that is wrong.
    bool are(float expected, GpuStream stream) {
        std::vector<float> host(count_);
        if (!gpu_copy(host.data(), data_, bytes(), stream)) return false;
        if (!GpuEvent::record(stream)->wait()) return false;
        for (float value : host)
            if (value != expected)
                return std::fprintf(stderr, "%g instead of %g\n", value, expected) < 0;
        return true;
    }

  private:
    const std::size_t count_;
    void* const data_;
};

}  // namespace ddprun::trainer::test
