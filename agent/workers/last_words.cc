// SIGABRT, and what is written for it.
#include "agent/workers/last_words.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "agent/output/last_lines.h"
#include "diagnosis/stacks/fault_dump.h"

namespace ddprun::agent {

bool abort_without_core(std::int64_t pid) {
    const auto id = static_cast<pid_t>(pid);
    rlimit limit{};
    if (::prlimit(id, RLIMIT_CORE, nullptr, &limit) != 0) return false;
    limit.rlim_cur = std::min<rlim_t>(1, limit.rlim_max);
    return ::prlimit(id, RLIMIT_CORE, &limit, nullptr) == 0 && ::kill(id, SIGABRT) == 0;
}

StackLines take_last_words(std::vector<std::string>& lines) {
    FaultDump dump = fault_dump(lines);
    lines = std::move(dump.before);
    if (lines.size() > LastLines::kCount)
        lines.erase(lines.begin(), lines.end() - static_cast<long>(LastLines::kCount));
    return dump_lines(dump);
}

}  // namespace ddprun::agent
