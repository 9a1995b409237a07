#include <cuda_runtime_api.h>

#include "examples/mlp.h"
#include "examples/mlp_kernels.h"

namespace example {
namespace {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;

Result<void> checked(cudaError_t problem, const char* what) {
    if (problem == cudaSuccess) return {};
    return Error(ErrorCode::unavailable, std::string(what) + ": " + cudaGetErrorString(problem));
}

// Floats on the GPU, grown on demand and freed with the object.
class DeviceFloats {
  public:
    DeviceFloats() = default;
    ~DeviceFloats() { cudaFree(data_); }
    DeviceFloats(const DeviceFloats&) = delete;
    DeviceFloats& operator=(const DeviceFloats&) = delete;

    Result<void> resize(std::size_t count) {
        if (count <= count_) return {};
        cudaFree(data_);
        data_ = nullptr;
        count_ = 0;
        auto done = checked(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(float)),
                            "GPU memory");
        if (done) count_ = count;
        return done;
    }

    Result<void> upload(std::span<const float> values) {
        if (auto done = resize(values.size()); !done) return done;
        return checked(
            cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
            "copy to GPU");
    }

    Result<std::vector<float>> download(std::size_t first, std::size_t count) const {
        std::vector<float> values(count);
        auto done = checked(
            cudaMemcpy(values.data(), data_ + first, count * sizeof(float), cudaMemcpyDeviceToHost),
            "copy from GPU");
        if (!done) return done.error();
        return values;
    }

    float* data() const { return data_; }

  private:
    float* data_ = nullptr;
    std::size_t count_ = 0;
};

class CudaMlp final : public Mlp {
  public:
    explicit CudaMlp(const MlpShape& shape) : shape_(shape), count_(shape.parameters()) {}

    Result<void> allocate() {
        const std::vector<float> zeros(count_ + 2);
        for (auto* floats : {&parameters_, &momentum_, &gradients_}) {
            if (auto done = floats->upload(zeros); !done) return done;
        }
        return {};
    }

    Result<std::vector<float>> parameters() const override {
        return parameters_.download(0, count_);
    }
    Result<std::vector<float>> momentum() const override { return momentum_.download(0, count_); }

    Result<void> restore(std::span<const float> parameters,
                         std::span<const float> momentum) override {
        if (auto done = parameters_.upload(parameters); !done) return done;
        return momentum_.upload(momentum);
    }

    Result<void> compute(std::span<const float> x, std::span<const float> y, float flag) override {
        if (auto done = x_.upload(x); !done) return done;
        if (auto done = y_.upload(y); !done) return done;
        if (auto done = errors_.resize(y.size()); !done) return done;
        const std::size_t units = y.size() * static_cast<std::size_t>(shape_.hidden);
        if (auto done = activations_.resize(units); !done) return done;
        return checked(
            launch_gradients({shape_.inputs, shape_.hidden, static_cast<int>(y.size()), x_.data(),
                              y_.data(), parameters_.data(), activations_.data(), errors_.data(),
                              gradients_.data(), flag}),
            "gradients");
    }

    ddprun::trainer::Buffer gradients() override {
        return {gradients_.data(), count_ + 2, ddprun::trainer::DataType::float32};
    }

    Result<Tail> tail() const override {
        auto values = gradients_.download(count_, 2);
        if (!values) return values.error();
        return Tail{(*values)[0], (*values)[1]};
    }

    Result<void> update(float rate, float momentum) override {
        return checked(launch_update(parameters_.data(), momentum_.data(), gradients_.data(),
                                     static_cast<int>(count_), rate, momentum),
                       "update");
    }

  private:
    const MlpShape shape_;
    const std::size_t count_;
    DeviceFloats parameters_, momentum_, gradients_, x_, y_, activations_, errors_;
};

}  // namespace

Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape& shape) {
    auto mlp = std::make_unique<CudaMlp>(shape);
    if (auto done = mlp->allocate(); !done) return done.error();
    return std::unique_ptr<Mlp>(std::move(mlp));
}

}  // namespace example
