// Where a worker of the trainer library says in which collective call it is. It lies in the
// worker's own memory, and costs a call some stores. ddprun reads it from outside, once a second: a
// worker that hangs has nothing left to do for it.
//
// The worker tells the address once, as `ddprun_calls=ADDRESS pid=PID` (decimal) on its progress
// descriptor (trainer/group/call_teller.h). A reader may see a call that is just changing. It
// trusts nothing: the other process may be another version, or hostile
// (diagnosis/standstill/call_reader.h).
//
// Thread: each group's entry belongs to the thread that carries out its calls. Any process reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddprun {

// The newest call of one process group. It is under way if `begun` and `ended` differ.
struct GroupCall {
    std::atomic<std::uint64_t> begun{0}, ended{0};  // how many calls
    std::atomic<std::uint64_t> number{0};           // of the call, equal on all ranks
    std::atomic<std::uint64_t> elements{0};         // of its buffer
    std::atomic<std::int64_t> peer{-1};             // for calls between two ranks; -1: all ranks
    std::atomic<std::uint64_t> kind{0};             // into kCallNames
};

inline constexpr std::size_t kCallGroups = 8;
struct CallBoard {
    static constexpr std::uint64_t kMark = 0x316c6c6163706464;  // "ddpcall1"
    std::atomic<std::uint64_t> mark{kMark};
    GroupCall groups[kCallGroups];
};

// The first ones are those of trainer/group/operation.h, in its order.
inline constexpr const char* kCallNames[] = {
    "all_reduce",        "broadcast",          "reduce", "all_gather", "reduce_scatter", "gather",
    "scatter",           "all_to_all",         "send",   "receive",    "exchange",       "barrier",
    "monitored_barrier", "make_process_group", "split"};
inline constexpr std::uint64_t kMeetingCall = 13, kSplitCall = 14;

}  // namespace ddprun
