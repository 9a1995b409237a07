// Looks for evidence about a worker's death in the kernel's counters and log.
#include "agent/death/death_witness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/death/core_dump.h"
#include "agent/death/memory_kills.h"
#include "agent/host/hardware.h"
#include "base/system/small_file.h"

namespace ddprun::agent {
namespace {

constexpr int kKill = 9;  // SIGKILL
// Most records of the kernel's log that one look reads, so that a flood of records cannot block the
// loop.
constexpr int kMostRecords = 20000;

// The kernel's log has pids of the initial pid namespace. In a container the same number is another
// process. The initial namespace has a fixed inode number (PROC_PID_INIT_INO in the kernel).
bool in_first_pid_namespace() {
    constexpr ino_t kFirst = 0xEFFFFFFC;
    struct stat ns {};
    return ::stat("/proc/self/ns/pid", &ns) == 0 && ns.st_ino == kFirst;
}

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::string core_place(const DeathFacts& facts) {
    std::error_code ignored;
    return core_dump_place(
        {.pattern = trimmed(read_small_file("/proc/sys/kernel/core_pattern")),
         .uses_pid = trimmed(read_small_file("/proc/sys/kernel/core_uses_pid")) == "1",
         .working_directory = std::filesystem::current_path(ignored).string(),
         .pid = facts.pid,
         .signal = facts.status.signal,
         .hostname = short_host_name()});
}

}  // namespace

// The first file that has a count is used. The count before the generation is remembered, because
// only later kills matter. Old records of the log are skipped for the same reason.
DeathWitness::DeathWitness() {
    for (const std::string& path : memory_kill_files(read_small_file("/proc/self/cgroup"))) {
        const auto count = memory_kill_count(read_small_file(path));
        if (!count) continue;
        count_file_ = path;
        counted_before_ = *count;
        break;
    }
    if (!in_first_pid_namespace()) return;
    kernel_log_.reset(::open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (kernel_log_) ::lseek(kernel_log_.get(), 0, SEEK_END);
}

void DeathWitness::look(DeathFacts& facts) {
    look_for_memory_kill(facts);
    if (facts.status.core) facts.core_place = core_place(facts);
}

// The kernel's log names the killed process, so it is certain. The counter of the cgroup only says
// that there was a kill. It is attributed to the first worker that died of a SIGKILL which ddprun
// did not send. The kernel increments the counter before it kills, so the counter is up to date
// here.
void DeathWitness::look_for_memory_kill(DeathFacts& facts) {
    read_kernel_log();
    const long more = count_file_.empty() ? 0 : counted() - counted_before_;
    const bool killed = facts.status.signal == kKill && !facts.stopped && facts.sent_signal.empty();
    if (killed && killed_.erase(static_cast<long>(facts.pid)) != 0)
        facts.memory_kill = "the kernel's log says that the kernel killed this worker (dmesg)";
    else if (killed && more > 0)
        facts.memory_kill = "its cgroup counts one more process killed by the kernel (" +
                            count_file_.substr(count_file_.rfind('/') + 1) + ": oom_kill)";
    if (facts.memory_kill.empty())
        facts.other_kills = std::max(more, 0L);
    else if (more > 0)
        // This kill has found its worker. It must not explain the death of another one.
        ++counted_before_;
}

// /dev/kmsg returns one record for each read. EPIPE means that records were overwritten before they
// were read; reading continues with the oldest that is left.
void DeathWitness::read_kernel_log() {
    if (!kernel_log_) return;
    char record[8192];
    for (int i = 0; i < kMostRecords; ++i) {
        const ssize_t size = ::read(kernel_log_.get(), record, sizeof record);
        if (size < 0 && (errno == EPIPE || errno == EINTR)) continue;
        if (size <= 0) return;
        if (const auto pid = memory_kill_process({record, static_cast<std::size_t>(size)}))
            killed_.insert(*pid);
    }
}

long DeathWitness::counted() const {
    return memory_kill_count(read_small_file(count_file_)).value_or(counted_before_);
}

}  // namespace ddprun::agent
