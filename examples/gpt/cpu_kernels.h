// The kernels for CPUs. cpu_kernels.cc is compiled once for each kind of CPU, and the choice is
// made when the program runs. The work is divided between OpenMP's threads. Any thread.
#pragma once

#include "examples/gpt/kernels.h"

namespace example::gpt {

// For the CPU on which the program runs.
const Kernels& cpu_kernels();

// Those of a kind of CPU, for tests. Null if the build or this CPU does not have it.
enum class CpuKind { any, avx2, avx512 };
const Kernels* cpu_kernels_of(CpuKind kind);

}  // namespace example::gpt
