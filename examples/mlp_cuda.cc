// The perceptron on a GPU: matrix products with cuBLAS, the rest with the kernels in
// mlp_kernels.cu.
#include <cuda_runtime_api.h>

#include "examples/cublas_library.h"
#include "examples/mlp.h"
#include "examples/mlp_kernels.h"

namespace example {
namespace {

using ddprun::Error;
using ddprun::ErrorCode;
using ddprun::Result;
using ddprun::trainer::GradientReducer;
using ddprun::trainer::NamedBuffer;

// A CUDA error as ours. `what` names the step.
Result<void> checked(cudaError_t problem, const char* what) {
    if (problem == cudaSuccess) return {};
    return Error(ErrorCode::unavailable, std::string(what) + ": " + cudaGetErrorString(problem));
}

// Floats on the GPU. The memory grows when needed and is freed with the object.
class DeviceFloats {
  public:
    DeviceFloats() = default;
    ~DeviceFloats() { cudaFree(data_); }
    DeviceFloats(const DeviceFloats&) = delete;
    DeviceFloats& operator=(const DeviceFloats&) = delete;

    Result<void> resize(std::size_t count) {
        // Batches are of similar size, so after the first step nothing is allocated.
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
    CudaMlp(const MlpShape& shape, const CublasLibrary& cublas) : shape_(shape), cublas_(cublas) {}
    ~CudaMlp() override {
        if (handle_) cublas_.destroy(handle_);
    }

    // What can fail, and so is not in the constructor.
    Result<void> begin(std::span<const float> parameters) {
        if (auto done = multiplied(cublas_.create(&handle_)); !done) return done;
        if (auto done = parameters_.upload(parameters); !done) return done;
        if (auto done = loss_.resize(1); !done) return done;
        return momenta_.upload(std::vector<float>(parameters.size()));
    }

    std::vector<NamedBuffer> parameters() override {
        return named_parts(shape_, parameters_.data(), "");
    }
    std::vector<NamedBuffer> momenta() override {
        return named_parts(shape_, momenta_.data(), "momentum.");
    }

    // The first layer is X (batch × inputs) times W1 transposed. cuBLAS stores matrices by columns,
    // ours are stored by rows. So cuBLAS sees each of our matrices transposed.
    Result<float> forward(std::span<const float> x, std::span<const float> y) override {
        batch_ = static_cast<int>(y.size());
        if (auto done = x_.upload(x); !done) return done.error();
        if (auto done = y_.upload(y); !done) return done.error();
        if (auto done = errors_.resize(y.size()); !done) return done.error();
        const std::size_t units = y.size() * static_cast<std::size_t>(shape_.hidden);
        if (auto done = activations_.resize(units); !done) return done.error();
        const float one = 1, nothing = 0;
        auto done = multiplied(cublas_.sgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, shape_.hidden,
                                             batch_, shape_.inputs, &one, parameters_.data(),
                                             shape_.inputs, x_.data(), shape_.inputs, &nothing,
                                             activations_.data(), shape_.hidden));
        if (!done) return done.error();
        if (done = checked(launch_forward(device()), "forward"); !done) return done.error();
        // The copy waits for the kernels, because all of them use the default stream.
        auto loss = loss_.download(0, 1);
        if (!loss) return loss.error();
        return loss->front();
    }

    // The output layer is reported as ready first, so that its communication can overlap with the
    // rest. The group waits for the kernels itself, by an event on the default stream.
    Result<void> backward(GradientReducer& reducer, float) override {
        auto gradient = [&](std::size_t i) {
            return static_cast<float*>(reducer.gradient(i).data);
        };
        auto done =
            checked(launch_output_gradients(device(), gradient(2), gradient(3)), "backward");
        for (std::size_t parameter : {3, 2})
            if (done) done = reducer.ready(parameter);
        if (done) done = checked(launch_hidden_gradients(device(), gradient(1)), "backward");
        if (done) done = reducer.ready(1);
        if (!done) return done;
        // The gradient of W1: derivatives (hidden × batch) times X. The second `one` is beta:
        // cuBLAS adds the product to what is there.
        const float one = 1;
        done = multiplied(cublas_.sgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_T, shape_.inputs,
                                        shape_.hidden, batch_, &one, x_.data(), shape_.inputs,
                                        activations_.data(), shape_.hidden, &one, gradient(0),
                                        shape_.inputs));
        return done ? reducer.ready(0) : done;
    }

    Result<void> update(std::span<const NamedBuffer> weights,
                        std::span<const NamedBuffer> gradients, float rate,
                        float momentum) override {
        const auto momenta = this->momenta();
        for (std::size_t i = 0; i < weights.size(); ++i) {
            auto done =
                checked(launch_update(static_cast<float*>(weights[i].buffer.data),
                                      static_cast<float*>(momenta[i].buffer.data),
                                      static_cast<float*>(gradients[i].buffer.data),
                                      static_cast<int>(weights[i].buffer.count), rate, momentum),
                        "update");
            if (!done) return done;
        }
        return {};
    }

  private:
    // A status of cuBLAS as ours.
    Result<void> multiplied(cublasStatus_t status) const {
        if (status == CUBLAS_STATUS_SUCCESS) return {};
        return Error(ErrorCode::unavailable,
                     std::string("cuBLAS: ") + cublas_.status_string(status));
    }

    // Pointers for the kernels. The parameters lie one after the other: W1, b1, w2, b2.
    MlpDevice device() const {
        const float* b1 = parameters_.data() + shape_.hidden * shape_.inputs;
        return {shape_.inputs,
                shape_.hidden,
                batch_,
                y_.data(),
                b1,
                b1 + shape_.hidden,
                b1 + 2 * shape_.hidden,
                activations_.data(),
                errors_.data(),
                loss_.data()};
    }

    const MlpShape shape_;
    const CublasLibrary& cublas_;
    cublasHandle_t handle_ = nullptr;
    int batch_ = 0;  // of the last forward()
    DeviceFloats parameters_, momenta_, x_, y_, activations_, errors_, loss_;
};

}  // namespace

Result<std::unique_ptr<Mlp>> make_cuda_mlp(const MlpShape& shape,
                                           std::span<const float> parameters) {
    auto cublas = cublas_library();
    if (!cublas) return cublas.error();
    auto mlp = std::make_unique<CudaMlp>(shape, **cublas);
    if (auto done = mlp->begin(parameters); !done) return done.error();
    return std::unique_ptr<Mlp>(std::move(mlp));
}

}  // namespace example
