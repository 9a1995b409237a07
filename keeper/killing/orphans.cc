// Finds the orphans of a dead ddprun in /proc, and kills them.
#include "keeper/killing/orphans.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/system/own_proc.h"
#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// Rounds of stopping and killing: a process may fork until it is stopped, and one that is in the
// middle of execve() is looked at again.
constexpr int kRounds = 20;
constexpr auto kPauseForExec = std::chrono::milliseconds{2};

std::string proc(pid_t pid, const char* name) {
    return "/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + '/' + name;
}

std::string link_of(const std::string& path) {
    char target[256];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

// The value of a variable in the text of /proc/PID/environ.
std::string variable(const std::string& environment, const std::string& name) {
    const std::string begin = name + '=';
    std::size_t at = environment.starts_with(begin) ? 0 : environment.find('\0' + begin);
    if (at == environment.npos) return {};
    at += begin.size() + (at == 0 && environment.starts_with(begin) ? 0 : 1);
    return environment.substr(at, environment.find('\0', at) - at);
}

// This process is looked at like any other (0). In the middle of execve() the kernel shows a new
// program, but not yet its variables: nothing can be said then.
enum class Stems { no, yes, unclear };
Stems stems_from(pid_t pid, const Origin& origin) {
    const std::string environment = read_small_file(proc(pid, "environ"));
    if (environment.empty()) return link_of(proc(pid, "exe")).empty() ? Stems::no : Stems::unclear;
    const bool same = variable(environment, "DDPRUN_STOP_FILE").starts_with(origin.folder + "/") &&
                      variable(environment, "SLURM_JOB_ID") == origin.slurm_job_id &&
                      link_of(proc(pid, "ns/pid")) == origin.pid_namespace &&
                      read_small_file(proc(pid, "cgroup")) == origin.cgroup;
    return same ? Stems::yes : Stems::no;
}

bool is_of_job(pid_t pid) {
    struct stat status {};
    return ::stat(proc(pid, "").c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

std::vector<pid_t> all_processes() {
    std::vector<pid_t> found;
    DIR* folder = ::opendir("/proc");
    if (folder == nullptr) return found;
    while (const dirent* entry = ::readdir(folder))
        if (const long pid = std::strtol(entry->d_name, nullptr, 10); pid > 0)
            found.push_back(static_cast<pid_t>(pid));
    ::closedir(folder);
    return found;
}

// The descriptor is opened first, so what was looked at and what gets the signal are the same.
using Handles = std::map<pid_t, UniqueFd>;

// Returns whether there may be more.
bool add_orphans(const Origin& origin, Handles& handles) {
    const std::size_t before = handles.size();
    bool unclear = false;
    for (const pid_t pid : all_processes()) {
        if (handles.contains(pid) || !is_of_job(pid)) continue;
        UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        if (!handle) continue;
        const Stems stems = stems_from(pid, origin);
        if (stems == Stems::yes) handles.emplace(pid, std::move(handle));
        unclear |= stems == Stems::unclear;
    }
    if (unclear) std::this_thread::sleep_for(kPauseForExec);
    return unclear || handles.size() > before;
}

void signal_all(const Handles& handles, int number) {
    for (const auto& [pid, handle] : handles)
        ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0);
}

}  // namespace

Origin origin_here(std::string folder) {
    const char* job = std::getenv("SLURM_JOB_ID");
    return {.folder = std::move(folder),
            .boot = read_small_file("/proc/sys/kernel/random/boot_id"),
            .pid_namespace = link_of(proc(0, "ns/pid")),
            .cgroup = read_small_file(proc(0, "cgroup")),
            .slurm_job_id = job != nullptr ? job : ""};
}

std::string to_json(const Origin& origin) {
    return nlohmann::json{{"format", "ddprun origin"}, {"folder", origin.folder},
                          {"boot", origin.boot},       {"pid_namespace", origin.pid_namespace},
                          {"cgroup", origin.cgroup},   {"slurm_job_id", origin.slurm_job_id}}
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
           "\n";
}

std::optional<Origin> read_origin(const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    Origin origin;
    const std::pair<const char*, std::string*> fields[] = {{"folder", &origin.folder},
                                                           {"boot", &origin.boot},
                                                           {"pid_namespace", &origin.pid_namespace},
                                                           {"cgroup", &origin.cgroup},
                                                           {"slurm_job_id", &origin.slurm_job_id}};
    for (const auto& [name, value] : fields) {
        if (!json.is_object() || !json.contains(name) || !json[name].is_string())
            return std::nullopt;
        *value = json[name].get<std::string>();
    }
    // An empty folder would fit every process.
    return origin.folder.starts_with('/') && origin.folder.size() > 1 ? std::optional(origin)
                                                                      : std::nullopt;
}

std::optional<LeftRunning> kill_orphans(const Origin& origin) {
    LeftRunning left;
    const Origin here = origin_here({});
    // Of an earlier boot nothing is left. Of another namespace nothing can be seen here.
    if (!proc_is_ours() || here.boot != origin.boot || here.pid_namespace != origin.pid_namespace)
        return left;
    // A worker of the dead ddprun has started this one, perhaps by way of others.
    if (stems_from(0, origin) == Stems::yes) return std::nullopt;
    Handles handles;
    for (int round = 0; round < kRounds && add_orphans(origin, handles); ++round)
        signal_all(handles, SIGSTOP);
    left.count = static_cast<int>(handles.size());
    if (!handles.empty()) left.first = find_survivor(handles.begin()->first);
    signal_all(handles, SIGKILL);
    return left;
}

}  // namespace ddprun::agent
