// The types and functions of NCCL that this library uses, declared by ourselves: so all of it
// compiles where NCCL is not installed, and runs with any NCCL from kOldestVersion on.
//
// The names are NCCL's, in a namespace of ours. tests/trainer/nccl/nccl_version_test.cc compares
// every value and layout with nccl.h where that is found.
#pragma once

#include <climits>
#include <cstddef>

#include "trainer/gpu/gpu.h"

namespace ddprun::trainer::nccl {

// The first version with ncclGather, ncclScatter and ncclAlltoAll: 2.28.3.
inline constexpr int kOldestVersion = 22803;

struct Comm;  // NCCL's, opaque
using CommHandle = Comm*;

struct UniqueId {
    char internal[128];
};

enum ResultCode {
    success = 0,
    unhandled_cuda_error = 1,
    system_error = 2,
    internal_error = 3,
    invalid_argument = 4,
    invalid_usage = 5,
    remote_error = 6,
    in_progress = 7,
};

enum Type {
    int8 = 0,
    uint8 = 1,
    int32 = 2,
    uint32 = 3,
    int64 = 4,
    uint64 = 5,
    float16 = 6,
    float32 = 7,
    float64 = 8,
    bfloat16 = 9,
};

enum Op { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

inline constexpr int kUndefined = INT_MIN;
inline constexpr int kNoColor = -1;

// ncclConfig_t of 2.28. A later NCCL reads `size` and `version` and knows what is missing.
struct Config {
    std::size_t size = sizeof(Config);
    unsigned int magic = 0xcafebeef;
    unsigned int version = kOldestVersion;
    int blocking = kUndefined;
    int cga_cluster_size = kUndefined;
    int min_ctas = kUndefined;
    int max_ctas = kUndefined;
    const char* net_name = nullptr;
    int split_share = kUndefined;
    int traffic_class = kUndefined;
    const char* comm_name = nullptr;
    int collnet_enable = kUndefined;
    int cta_policy = kUndefined;
    int shrink_share = kUndefined;
    int nvls_ctas = kUndefined;
    int channels_per_net_peer = kUndefined;
    int nvlink_centric_sched = kUndefined;
};

// Each member is the function ncclX of that name. MemAlloc and those behind it may be null: not
// every NCCL has them.
struct Functions {
    ResultCode (*GetVersion)(int* version) = nullptr;
    ResultCode (*GetUniqueId)(UniqueId* id) = nullptr;
    ResultCode (*CommInitRankConfig)(CommHandle* comm, int ranks, UniqueId id, int rank,
                                     Config* config) = nullptr;
    ResultCode (*CommGetAsyncError)(CommHandle comm, ResultCode* error) = nullptr;
    ResultCode (*CommFinalize)(CommHandle comm) = nullptr;
    ResultCode (*CommDestroy)(CommHandle comm) = nullptr;
    ResultCode (*CommAbort)(CommHandle comm) = nullptr;
    ResultCode (*CommSplit)(CommHandle comm, int color, int key, CommHandle* part,
                            Config* config) = nullptr;
    ResultCode (*GroupStart)() = nullptr;
    ResultCode (*GroupEnd)() = nullptr;
    ResultCode (*AllReduce)(const void* in, void* out, std::size_t count, Type type, Op op,
                            CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*Broadcast)(const void* in, void* out, std::size_t count, Type type, int root,
                            CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*Reduce)(const void* in, void* out, std::size_t count, Type type, Op op, int root,
                         CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*AllGather)(const void* in, void* out, std::size_t count, Type type,
                            CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*ReduceScatter)(const void* in, void* out, std::size_t count, Type type, Op op,
                                CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*Gather)(const void* in, void* out, std::size_t count, Type type, int root,
                         CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*Scatter)(const void* in, void* out, std::size_t count, Type type, int root,
                          CommHandle comm, GpuStream stream) = nullptr;
    ResultCode (*AlltoAll)(const void* in, void* out, std::size_t count, Type type, CommHandle comm,
                           GpuStream stream) = nullptr;
    ResultCode (*Send)(const void* in, std::size_t count, Type type, int to, CommHandle comm,
                       GpuStream stream) = nullptr;
    ResultCode (*Recv)(void* out, std::size_t count, Type type, int from, CommHandle comm,
                       GpuStream stream) = nullptr;
    const char* (*GetErrorString)(ResultCode code) = nullptr;
    const char* (*GetLastError)(CommHandle comm) = nullptr;
    ResultCode (*MemAlloc)(void** memory, std::size_t bytes) = nullptr;
    ResultCode (*MemFree)(void* memory) = nullptr;
    ResultCode (*CommRegister)(CommHandle comm, void* memory, std::size_t bytes,
                               void** handle) = nullptr;
    ResultCode (*CommDeregister)(CommHandle comm, void* handle) = nullptr;
};

}  // namespace ddprun::trainer::nccl
