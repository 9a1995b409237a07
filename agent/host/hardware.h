// Tells what this host has, as far as a launch needs it: name, CPUs and network addresses.
// topology.h covers GPUs and NUMA.
//
// It uses /proc, sysfs and system calls only; a static binary has no NSS and no CUDA library.
// Thread: any. Every call asks the kernel again.
#pragma once

#include <string>
#include <vector>

namespace ddprun::agent {

// The host's name up to the first dot, which is how Slurm names nodes. "localhost" when it has
// none.
std::string short_host_name();

// The CPUs of this process's affinity mask, in ascending order. Empty when the kernel does not
// answer.
std::vector<int> allowed_cpus();

// All addresses of all network interfaces as text ("10.0.0.7", "fe80::1"), loopback included, each
// once.
std::vector<std::string> interface_addresses();

// An address with the interface that has it.
struct InterfaceAddress {
    std::string interface;
    std::string address;
};
// All pairs of interface and address, in the kernel's order.
std::vector<InterfaceAddress> interfaces();

// The interface that has this address, if it is a bridge to containers or virtual machines of this
// host alone (docker0, virbr0); else empty. Other hosts often have such a bridge with the same
// address, and none can reach it.
std::string host_bridge_at(const std::string& address);

}  // namespace ddprun::agent
