// The numbers of one step of AdamW (Loshchilov and Hutter, 2019) for one parameter, for kernels.
// They include nothing of C++, for cpu_kernels.cc and nvcc.
#pragma once

namespace example::gpt {

struct AdamStep {
    float rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, decay = 0;
    float correction1 = 1, correction2 = 1;  // 1 - beta^step
};

}  // namespace example::gpt
