// Reads by process_vm_readv().
#include "diagnosis/stacks/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

namespace ddprun::agent {

bool ProcessMemory::read(Address from, void* to, std::size_t size) {
    const iovec here{to, size}, there{reinterpret_cast<void*>(from), size};
    const ssize_t got = ::process_vm_readv(static_cast<pid_t>(pid_), &here, 1, &there, 1, 0);
    if (got < 0) error_ = errno;
    return got == static_cast<ssize_t>(size);
}

}  // namespace ddprun::agent
