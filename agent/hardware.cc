#include "agent/hardware.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>

namespace ddprun::agent {

std::string short_host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
    const std::string full = name;
    return full.substr(0, full.find('.'));
}

int gpu_count() {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible != nullptr ? count_visible_devices(visible) : count_driver_gpus();
}

int count_visible_devices(const std::string& list) {
    std::set<std::string> seen;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t end = std::min(list.find(',', at), list.size());
        std::string id = list.substr(at, end - at);
        id.erase(0, id.find_first_not_of(" \t"));
        id.erase(id.find_last_not_of(" \t") + 1);
        const bool number = !id.empty() && id.find_first_not_of("0123456789") == id.npos;
        const bool named = id.starts_with("GPU-") || id.starts_with("MIG-");
        // CUDA takes what stands before the first entry that is no device (such as -1), and nothing
        // at all of a list that names one twice.
        if (!number && !named) break;
        if (!seen.insert(id).second) return 0;
        at = end + 1;
    }
    return static_cast<int>(seen.size());
}

int count_driver_gpus(const std::string& folder) {
    DIR* dir = ::opendir(folder.c_str());
    if (dir == nullptr) return 0;
    int count = 0;
    while (const dirent* entry = ::readdir(dir)) count += entry->d_name[0] != '.' ? 1 : 0;
    ::closedir(dir);
    return count;
}

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    // The kernel refuses (EINVAL) a mask smaller than its own.
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

std::vector<std::string> interface_addresses() {
    std::vector<std::string> addresses;
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return addresses;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr) continue;
        const int family = one->ifa_addr->sa_family;
        const void* bytes = nullptr;
        if (family == AF_INET)
            bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
        if (family == AF_INET6)
            bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
        char text[INET6_ADDRSTRLEN];
        if (bytes == nullptr || ::inet_ntop(family, bytes, text, sizeof text) == nullptr) continue;
        if (std::find(addresses.begin(), addresses.end(), text) == addresses.end())
            addresses.emplace_back(text);
    }
    ::freeifaddrs(list);
    return addresses;
}

std::optional<std::uint64_t> raise_nofile_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    const std::uint64_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return before;
}

}  // namespace ddprun::agent
