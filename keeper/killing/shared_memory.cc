// Finds and removes shared memory of dead processes.
#include "keeper/killing/shared_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

template <class Each>
void for_each_entry(const std::string& folder, Each each) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr)
        if (entry->d_name[0] != '.') each(std::string_view(entry->d_name));
}

bool is_letter(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// NCCL's names end with six random characters, as mkstemp() makes them.
bool is_of_nccl(std::string_view name) {
    return name.size() == 11 && name.starts_with("nccl-") &&
           std::ranges::all_of(name.substr(5), is_letter);
}

bool is_tensor(std::string_view name) { return name.starts_with("torch_"); }

// The numbers that processes have in PID namespaces below this one: NSpid in /proc/PID/status has
// the number here first.
std::set<pid_t> numbers_elsewhere() {
    std::set<pid_t> numbers;
    for_each_entry("/proc", [&](std::string_view name) {
        if (name.front() < '1' || name.front() > '9') return;
        const std::string status = read_small_file("/proc/" + std::string(name) + "/status");
        const std::size_t at = status.find("\nNSpid:");
        if (at == status.npos) return;
        std::istringstream line(status.substr(at + 7, status.find('\n', at + 1) - at - 7));
        pid_t number = 0;
        line >> number;
        while (line >> number) numbers.insert(number);
    });
    return numbers;
}

// Returns the pid in a name: torch_PID_RANDOM_COUNT of PyTorch, pym-PID-RANDOM of multiprocessing's
// heap. Nothing for other names.
std::optional<pid_t> process_named(std::string_view name) {
    char behind = '\0';
    if (is_tensor(name)) behind = '_';
    if (name.starts_with("pym-")) behind = '-';
    if (behind == '\0') return std::nullopt;
    name.remove_prefix(name.find_first_of("_-") + 1);
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    const bool whole = error == std::errc{} && end != name.data() + name.size() && *end == behind;
    return whole ? std::optional(pid) : std::nullopt;
}

// The timestamp of a file may be a clock tick older than time(), so a second is subtracted.
time_t a_tick_ago() { return std::time(nullptr) - 1; }

}  // namespace

bool is_first_pid_namespace() {
    constexpr std::string_view kFirst = "pid:[4026531836]";  // PROC_PID_INIT_INO
    char link[64];
    const ssize_t length = ::readlink("/proc/self/ns/pid", link, sizeof link);
    return length > 0 && std::string_view(link, static_cast<std::size_t>(length)) == kFirst;
}

SharedMemory::SharedMemory(std::string folder, bool sees_all_pids)
    : folder_(std::move(folder)), sees_all_pids_(sees_all_pids), since_(a_tick_ago()) {}

// Older objects belong to somebody else: a pid in a name may have been used before.
bool SharedMemory::may_be_ours(const struct stat& status) const {
    return S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_mtime >= since_;
}

// A process that its parent reaped earlier is not in pids_. Its object is recognized by a pid that
// does not exist any more (ESRCH).
bool SharedMemory::tensors_of_unknown() const {
    bool any = false;
    for_each_entry(folder_, [&](std::string_view name) {
        const auto process = process_named(name);
        if (any || !process) return;
        const bool known = pids_.contains(*process);
        if (known && sees_all_pids_) return;
        struct stat status {};
        const std::string path = (folder_ + '/').append(name);
        any = ::lstat(path.c_str(), &status) == 0 && may_be_ours(status) &&
              (known || (::kill(*process, 0) != 0 && errno == ESRCH));
    });
    return any;
}

// Names are collected first, because removing files while reading the folder changes it.
void SharedMemory::remove(bool all_well) {
    std::vector<std::string> names;
    std::map<std::string, pid_t> tensors;
    for_each_entry(folder_, [&](std::string_view name) {
        const auto process = process_named(name);
        if (process ? !pids_.contains(*process) : all_well || !is_of_nccl(name)) return;
        if (is_tensor(name))
            tensors.emplace(name, *process);
        else
            names.emplace_back(name);
    });
    if (!tensors.empty() && sees_all_pids_) {
        const std::set<pid_t> elsewhere = numbers_elsewhere();
        for (const auto& [name, process] : tensors)
            if (!elsewhere.contains(process)) names.push_back(name);
    }
    for (const std::string& name : names) remove_object(name);
    if (!pids_.empty()) remove_segments();
    pids_.clear();
    since_ = a_tick_ago();
}

// A write lease (fcntl(2), F_SETLEASE) is granted only when nobody else has the file open, in any
// container. A process that opens the file after that waits until we close it, and by then the name
// is gone.
void SharedMemory::remove_object(const std::string& name) const {
    const std::string path = folder_ + '/' + name;
    struct stat status {};
    // Most of those that are older or another user's end here.
    if (::lstat(path.c_str(), &status) != 0 || !may_be_ours(status)) return;
    // O_NOFOLLOW and O_NONBLOCK: others may create symbolic links and FIFOs in /dev/shm.
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file || ::fstat(file.get(), &status) != 0 || !may_be_ours(status)) return;
    // If somebody opens the file, the kernel sends us a signal. The default is SIGIO, which would
    // end ddprun. SIGURG is ignored by default.
    ::fcntl(file.get(), F_SETSIG, SIGURG);
    if (::fcntl(file.get(), F_SETLEASE, F_WRLCK) == 0) ::unlink(path.c_str());
}

// System V segments. IPC_PRIVATE: without a key, nobody can find a segment whose creator is dead.
void SharedMemory::remove_segments() const {
    std::istringstream table(read_small_file("/proc/sysvipc/shm"));
    std::string line;
    // The first line has the names of the columns.
    std::getline(table, line);
    while (std::getline(table, line)) {
        std::istringstream fields(line);
        long key = 0, attached = 0, size = 0, last = 0, ignored = 0, changed = 0;
        int id = -1;
        std::string mode;
        pid_t creator = 0;
        uid_t owner = 0;
        fields >> key >> id >> mode >> size >> creator >> last >> attached >> owner;
        for (int i = 0; i < 5; ++i) fields >> ignored;  // gid, cuid, cgid, atime, dtime
        fields >> changed;
        if (fields && key == IPC_PRIVATE && attached == 0 && owner == ::geteuid() &&
            pids_.contains(creator) && changed >= since_)
            ::shmctl(id, IPC_RMID, nullptr);
    }
}

}  // namespace ddprun::agent
