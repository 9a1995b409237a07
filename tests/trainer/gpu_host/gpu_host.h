// For tests that run on the played GPU: kernels, streams as a program makes them, and the reports.
// A test that is linked with ddprun_gpu_host has this GPU in place of a real one.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/gpu_host/device.h"
#include "trainer/gpu/gpu_stream.h"

namespace ddprun::trainer::test {

// A kernel of the program. It says what it reads and writes.
inline void launch(const std::string& name, GpuStream stream, const std::vector<Range>& ranges,
                   const std::function<void()>& kernel) {
    Device::get().give(stream, {"kernel " + name, ranges, [kernel] {
                                    return [kernel] {
                                        kernel();
                                        return true;
                                    };
                                }});
}

// A program's stream (cudaStreamCreate), or one with cudaStreamNonBlocking.
inline GpuStream make_stream() { return Device::get().make_stream(true); }
inline GpuStream make_non_blocking_stream() { return Device::get().make_stream(false); }

// How many ranges of host memory the program has pinned and not given back.
int pinned_ranges();

// Whether nothing was reported. Prints what was.
inline bool all_is_ordered() {
    const auto reports = Device::get().reports();
    for (const auto& report : reports) std::fprintf(stderr, "%s\n", report.c_str());
    return reports.empty();
}

}  // namespace ddprun::trainer::test
