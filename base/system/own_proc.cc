// Compares what /proc says about this process with what the kernel says.
#include "base/system/own_proc.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <string>

#include "base/system/small_file.h"

namespace ddprun {
namespace {

// The text after a name in a file with lines "Name:<tab>value".
std::string field(const std::string& status, const std::string& name) {
    const auto at = status.find('\n' + name + ":\t");
    if (at == status.npos) return {};
    const auto begin = at + name.size() + 3;
    return status.substr(begin, status.find('\n', begin) - begin);
}

// NSpid has a number for each namespace from that of /proc down to ours, so one number means that
// they are the same. Kernels before 4.1 do not have it.
bool look() {
    const std::string status = read_small_file("/proc/self/status");
    const std::string self = std::to_string(::getpid()), inner = field(status, "NSpid");
    return field(status, "Pid") == self && (inner.empty() || inner == self);
}

}  // namespace

bool proc_is_ours() {
    static const bool ours = look();
    return ours;
}

std::string own_program() {
    constexpr const char* kLink = "/proc/self/exe";
    const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    return ::access(kLink, X_OK) == 0 || !started ? kLink : started;
}

}  // namespace ddprun
