// A double of libnccl on the played GPU. Its ranks are processes, which meet in shared memory. It
// does the reductions, and misbehaves on demand.
//
// Like NCCL it does not check that the ranks make the same call: if they do not, it hangs. Its
// abort waits for the whole GPU. A test that is linked with ddprun_gpu_host has it in place of
// NCCL.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace ddprun::trainer::test {

// Makes the shared memory. Call it before the ranks are forked, in each test.
void prepare_nccl();

// What goes wrong in this process. Calls are counted over all communicators, from 1 on; 0: never.
struct NcclFaults {
    bool never_ready = false;  // no communicator is ever ready
    int fails_at = 0;          // this call fails after it was accepted (ncclCommGetAsyncError)
    int hangs_at = 0;          // this rank never takes part in this call
    int returns_late_at = 0;   // this call returns only after `late`, or after an abort
    std::chrono::milliseconds late{0};
    bool split_fails = false;  // ncclCommSplit is refused
    int busy = 0;              // a communicator is busy after each call for so many polls, less one
};
NcclFaults& nccl_faults();

// The calls that were given to communicators, in their order: "1: all_reduce of 10, avg". The first
// number is the communicator's size.
std::vector<std::string> nccl_launches();

// How many calls there were, for choosing the number of one that goes wrong.
int nccl_calls();

}  // namespace ddprun::trainer::test
