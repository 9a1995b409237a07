// Chooses the kernels for the CPU on which the program runs. The build says which kinds it has.
#include "examples/gpt/cpu_kernels.h"

namespace example::gpt {

const Kernels& kernels_any();
#ifdef GPT_X86
const Kernels& kernels_avx2();
const Kernels& kernels_avx512();

const Kernels* cpu_kernels_of(CpuKind kind) {
    __builtin_cpu_init();
    if (kind == CpuKind::any) return &kernels_any();
    if (kind == CpuKind::avx2)
        return __builtin_cpu_supports("x86-64-v3") ? &kernels_avx2() : nullptr;
    return __builtin_cpu_supports("x86-64-v4") ? &kernels_avx512() : nullptr;
}
#else
const Kernels* cpu_kernels_of(CpuKind kind) {
    return kind == CpuKind::any ? &kernels_any() : nullptr;
}
#endif

const Kernels& cpu_kernels() {
    if (const auto* best = cpu_kernels_of(CpuKind::avx512)) return *best;
    if (const auto* good = cpu_kernels_of(CpuKind::avx2)) return *good;
    return *cpu_kernels_of(CpuKind::any);
}

}  // namespace example::gpt
