// PeerMemory: the memory of another process on this host, read without its help (process_vm_readv;
// MPI and UCX call it cross memory attach).
//
// The kernel lets a process read another one of the same user in the same PID namespace, unless
// Yama (kernel.yama.ptrace_scope above 0) or a container's filter forbids it. So it has to be tried
// before it is relied on.
//
// Whoever offers memory marks it with a number that stands in his memory, too, and takes the number
// away before the memory may be used for anything else. Each read ends with the mark. So a read
// fails if the offer was taken back meanwhile, or if another process has got the number of a dead
// one.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddprun::trainer {

// The mark of an offer, as long as the object lives.
class MemoryMark {
  public:
    // What a reader has to know. It travels as bytes between ranks on one host.
    struct Place {
        std::uint64_t address = 0, value = 0;
    };

    // `value`: not 0, and no second time in this process.
    explicit MemoryMark(std::uint64_t value) : value_(value) {}
    ~MemoryMark() { value_ = 0; }
    MemoryMark(const MemoryMark&) = delete;
    MemoryMark& operator=(const MemoryMark&) = delete;

    Place place() const {
        return {reinterpret_cast<std::uint64_t>(&value_), value_.load(std::memory_order_relaxed)};
    }

  private:
    std::atomic<std::uint64_t> value_;
};

class PeerMemory {
  public:
    explicit PeerMemory(pid_t process) : process_(process) {}

    pid_t process() const { return process_; }

    // Copies bytes from an address of the process. Returns 0, or the number of the error: ESRCH
    // (the process is gone), EPERM, EFAULT (no such memory), ESTALE (the mark is no longer there:
    // what was copied may be anything).
    int read(std::uint64_t from, void* to, std::size_t bytes, const MemoryMark::Place& mark) const;

  private:
    pid_t process_;
};

}  // namespace ddprun::trainer
