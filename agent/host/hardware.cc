// Asks the kernel for the host's name, CPUs and addresses.
#include "agent/host/hardware.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/system/folder_names.h"

namespace ddprun::agent {

// gethostname() may omit the final zero byte of a long name. The array is zeroed and has one byte
// more than is passed.
std::string short_host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
    const std::string full = name;
    return full.substr(0, full.find('.'));
}

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    // sched_getaffinity() fails with EINVAL when the mask is smaller than the kernel's own, whose
    // size cannot be asked for. So the mask grows until it fits.
    for (int size = 1024; size <= (1 << 20); size *= 2) {
        cpu_set_t* set = CPU_ALLOC(size);
        if (set == nullptr) return cpus;
        const std::size_t bytes = CPU_ALLOC_SIZE(size);
        const int failed = ::sched_getaffinity(0, bytes, set) != 0 ? errno : 0;
        for (int cpu = 0; failed == 0 && cpu < size; ++cpu)
            if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
        CPU_FREE(set);
        if (failed != EINVAL) break;
    }
    return cpus;
}

std::vector<InterfaceAddress> interfaces() {
    std::vector<InterfaceAddress> found;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return found;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        // An interface without an address, for example a tunnel.
        if (one->ifa_addr == nullptr) continue;
        const int family = one->ifa_addr->sa_family;
        const void* bytes = nullptr;
        if (family == AF_INET)
            bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
        if (family == AF_INET6)
            bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
        char text[INET6_ADDRSTRLEN];
        if (bytes != nullptr && ::inet_ntop(family, bytes, text, sizeof text) != nullptr)
            found.push_back({one->ifa_name, text});
    }
    ::freeifaddrs(list);
    return found;
}

// An address may be on several interfaces.
std::vector<std::string> interface_addresses() {
    std::vector<std::string> addresses;
    for (const InterfaceAddress& one : interfaces())
        if (std::find(addresses.begin(), addresses.end(), one.address) == addresses.end())
            addresses.push_back(one.address);
    return addresses;
}

namespace {

// A bridge with a card of the host as port leads to other hosts; so does a bond or a VLAN, which
// has a link to what lies below it. What is left are ends of containers and of virtual machines.
bool leads_out(const std::string& port) {
    bool out = ::access((port + "/device").c_str(), F_OK) == 0;
    for_each_name(port, [&](std::string_view name) { out = out || name.starts_with("lower_"); });
    return out;
}

bool is_host_bridge(const std::string& interface) {
    const std::string all = "/sys/class/net/", bridge = all + interface;
    if (::access((bridge + "/bridge").c_str(), F_OK) != 0) return false;
    bool out = false;
    for_each_name(bridge + "/brif",
                  [&](std::string_view port) { out = out || leads_out(all + std::string(port)); });
    return !out;
}

}  // namespace

std::string host_bridge_at(const std::string& address) {
    for (const InterfaceAddress& one : interfaces())
        if (one.address == address && is_host_bridge(one.interface)) return one.interface;
    return {};
}

}  // namespace ddprun::agent
