// While it lives, libtorch multiplies matrices on the GPU in bfloat16, and keeps the rest and all
// parameters in float32, as Python's torch.autocast("cuda", torch.bfloat16). It is made for a
// forward pass; backward follows by itself. On CPUs it does nothing.
#pragma once

#include <torch/torch.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/autocast_mode.h>
#endif

namespace example {

class Bfloat16Products {
  public:
#if TORCH_VERSION_MAJOR >= 2
    explicit Bfloat16Products(bool on_gpu) : before_(at::autocast::is_autocast_enabled(at::kCUDA)) {
        at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
        at::autocast::set_autocast_enabled(at::kCUDA, on_gpu);
        at::autocast::increment_nesting();
    }
    // The cache holds the parameters in bfloat16.
    ~Bfloat16Products() {
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(at::kCUDA, before_);
    }
#else
    explicit Bfloat16Products(bool) {}
#endif
    Bfloat16Products(const Bfloat16Products&) = delete;
    Bfloat16Products& operator=(const Bfloat16Products&) = delete;

  private:
    [[maybe_unused]] bool before_ = false;
};

}  // namespace example
