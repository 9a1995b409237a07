// SIGABRT without a core dump.
#include "agent/workers/last_words.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

namespace ddprun::agent {

bool abort_without_core(std::int64_t pid) {
    const auto id = static_cast<pid_t>(pid);
    rlimit limit{};
    if (::prlimit(id, RLIMIT_CORE, nullptr, &limit) != 0) return false;
    limit.rlim_cur = std::min<rlim_t>(1, limit.rlim_max);
    return ::prlimit(id, RLIMIT_CORE, &limit, nullptr) == 0 && ::kill(id, SIGABRT) == 0;
}

}  // namespace ddprun::agent
