// Stops, kills and reaps all descendants of this process.
#include "keeper/killing/killing.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/system/boot_clock.h"
#include "base/system/own_proc.h"
#include "base/system/small_file.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// How often one round looks for new processes. A program that forks faster than this meets SIGKILL
// and the next round.
constexpr int kLooks = 100;
// How long a round waits for a process to stop, to find out whether it is a janitor.
constexpr Duration kPatience = std::chrono::milliseconds{200};
// How long processes may take to end by themselves after their worker has succeeded. Most are about
// to: a loader's, whose parent has gone.
constexpr Duration kGoByThemselves = std::chrono::milliseconds{100};
// A wait that takes longer is logged.
constexpr Duration kTellWait = std::chrono::seconds{2};
// How long rounds go on that find nothing to kill. A setuid program may drop its rights, and a
// process that changes its parent may be missed once.
constexpr Duration kNothingToKill = std::chrono::seconds{1};

// If the process has ended in the meantime, kill() fails. This is not an error here. Returns false
// if the process may not be signalled.
bool send(pid_t pid, int signal) { return ::kill(pid, signal) == 0 || errno != EPERM; }

std::string proc_file(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + '/' + name;
}

// The state is the first field after the name, which may contain parentheses.
bool is_zombie(pid_t pid) {
    const std::string stat = read_small_file(proc_file(pid, "stat"));
    const std::size_t name_end = stat.rfind(')');
    return name_end != stat.npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'Z';
}

// Waits until a child ends, or for a few milliseconds: a descendant that is not our child yet
// becomes our child when its parent dies, and the kernel does not announce that.
void wait_a_little(pid_t child) {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd wait{pidfd.get(), POLLIN, 0};
    ::poll(&wait, 1, pidfd ? 5 : 1);
}

}  // namespace

// Returns the stopped processes, sorted by pid. Why stop before killing: a process that dies may
// leave children behind that fork again, while a stopped process cannot fork. The search repeats
// until a pass finds no new process. Left out are janitors that still have time, and what may not
// be signalled.
std::vector<pid_t> Killing::stop_all(Time now) {
    refused_.clear();
    const pid_t self = ::getpid();
    std::vector<pid_t> stopped;
    for (int look = 0; look < kLooks; ++look) {
        bool found_new = false;
        for (const pid_t pid : find_descendants(self)) {
            const auto place = std::lower_bound(stopped.begin(), stopped.end(), pid);
            if (place != stopped.end() && *place == pid) continue;
            const auto spared = janitors_.find(pid);
            if (spared != janitors_.end() && now < spared->second.until) continue;
            if (refused_.contains(pid) || always_spared_.contains(pid)) continue;
            found_new = true;
            if (send(pid, SIGSTOP))
                stopped.insert(place, pid);
            else
                refused_.insert(pid);
        }
        if (!found_new) break;
    }
    return stopped;
}

// Decides whether a stopped process is a janitor that may finish its work first.
bool Killing::spare(pid_t pid, Time now) {
    // It was spared before, and stop_all() stops it only when its time is over.
    if (janitors_.contains(pid)) return false;
    const Janitor kind = janitor(pid);
    if (kind == Janitor::none) return false;
    // SIGSTOP may take a moment to arrive. The next round asks again.
    if (kind == Janitor::unknown) return now < began_ + kPatience;
    janitors_[pid] = {kind, now + patience_with(kind)};
    send(pid, SIGCONT);
    return true;
}

// Returns false if nothing that still runs could be killed.
bool Killing::kill_all(const std::vector<pid_t>& stopped, Time now) {
    bool killed = false;
    for (const pid_t pid : stopped) {
        memory_.belongs(pid);
        all_well_ = false;
        if (!spare(pid, now)) send(pid, SIGKILL);
        // A zombie below a process that may not be killed is never reaped.
        killed |= refused_.empty() || !is_zombie(pid);
    }
    return killed;
}

// The number of a group stays in use as long as it has members. After that another group may get
// it, so it is forgotten. A group none of whose members may be killed stands for its leader.
bool Killing::kill_groups() {
    bool killed = false;
    std::erase_if(groups_, [&](pid_t group) {
        if (::kill(-group, SIGKILL) == 0) {
            killed = true;
            return false;
        }
        if (errno != EPERM) return true;
        refused_.insert(group);
        return false;
    });
    return killed;
}

void Killing::reaped(pid_t pid, int wait_status) {
    memory_.belongs(pid);
    all_well_ &= wait_status == 0;
    always_spared_.erase(pid);
    if (wait_status == 0 && groups_.contains(pid)) succeeded_.insert(pid);
}

bool Killing::janitors_work(Time now) const {
    return std::ranges::any_of(janitors_,
                               [now](const auto& each) { return now < each.second.until; });
}

// What runs and may be killed. Janitors end when all others have.
std::vector<pid_t> Killing::left_running() const {
    std::vector<pid_t> running = find_descendants(::getpid());
    std::erase_if(running, [this](pid_t pid) {
        return is_zombie(pid) || always_spared_.contains(pid) || !send(pid, 0) ||
               may_be_janitor(pid);
    });
    return running;
}

// The rounds kill when it returns false.
bool Killing::waits_for_left(Time now) {
    const std::vector<pid_t> running = left_running();
    if (running.empty()) {
        patience_.reset();
        return false;
    }
    const LeftRunning found{static_cast<int>(running.size()), find_survivor(running.front())};
    if (now < began_ + std::max(patience_->wait, kGoByThemselves)) {
        if (now >= began_ + kTellWait && !std::exchange(told_wait_, true) && on_wait_)
            on_wait_(found);
        return true;
    }
    if (patience_->leave_alone) {
        leaves_alone_ = true;
        return false;
    }
    if (asked_at_ == kNever) {
        asked_at_ = now;
        left_ = found;
        for (const pid_t pid : running) {
            send(pid, SIGTERM);
            send(pid, SIGCONT);  // a stopped one would not act on it
        }
    }
    if (now < asked_at_ + patience_->to_leave) return true;
    left_.killed = found.count;
    patience_.reset();
    return false;
}

void Killing::hurry(Duration to_leave) {
    if (!patience_) return;
    if (to_leave == Duration{}) return patience_.reset();
    patience_->wait = {};
    patience_->to_leave = std::min(patience_->to_leave, to_leave);
}

bool Killing::waits_long() const {
    return patience_ && began_ != kNever && boot_now() >= began_ + kGoByThemselves;
}

// With a spared child waitpid() cannot say that nothing else is left. Two looks one behind the
// other do: stop_all() has found nothing, either.
bool Killing::only_always_spared() const {
    return !always_spared_.empty() && refused_.empty() && proc_is_ours() &&
           std::ranges::all_of(find_descendants(::getpid()),
                               [this](pid_t pid) { return always_spared_.contains(pid); });
}

bool Killing::blocks(pid_t pid) const {
    // At a terminal a worker leads a group only. The leader of a group may have gone.
    for (const pid_t worker : {pid, ::getsid(pid), ::getpgid(pid)})
        if (groups_.contains(worker)) return !succeeded_.contains(worker);
    return false;
}

// Children are left, and nothing could be killed. True: they are given up, and have been told.
bool Killing::only_survivors(Time now) {
    if (nothing_since_ == kNever) nothing_since_ = now;
    const bool known = !refused_.empty() && std::ranges::includes(told_, refused_);
    if (!known && now < nothing_since_ + kNothingToKill) return false;
    // A worker that /proc hides is our child all the same.
    std::ranges::copy_if(groups_, std::inserter(refused_, refused_.end()), is_living_child);
    const auto tell = [this](const Survivor& found) {
        if (on_survivor_) on_survivor_(found);
    };
    for (const pid_t pid : refused_) {
        Survivor found = find_survivor(pid);
        blocked_ |= found.blocks = blocks(pid);
        if (told_.insert(pid).second) tell(found);
    }
    if (refused_.empty() && !std::exchange(told_hidden_, true)) tell({});
    return !blocked_;
}

void Killing::forget() {
    janitors_.clear();
    groups_.clear();
    succeeded_.clear();
    patience_.reset();
    told_wait_ = false;
    all_well_ = true;
    began_ = nothing_since_ = asked_at_ = kNever;
}

// Called again and again until it returns true. It never blocks, so that the keeper can watch the
// deadline between two rounds.
bool Killing::round(const Reaped& reaped) {
    const Time now = boot_now();
    if (began_ == kNever) {
        began_ = now;
        left_ = {};
        leaves_alone_ = false;
    }
    // The pids of dead processes are recorded, too: the names of their objects in shared memory
    // contain them.
    const Reaped reap = [&](pid_t pid, int status) {
        memory_.belongs(pid);
        all_well_ &= status == 0;
        always_spared_.erase(pid);
        if (reaped) reaped(pid, status);
    };
    if (patience_ && waits_for_left(now)) {
        reap_children(reap);
        return false;
    }
    if (leaves_alone_) {
        forget();
        return true;
    }
    blocked_ = false;
    const std::vector<pid_t> stopped = stop_all(now);
    const bool killed = proc_is_ours() ? kill_all(stopped, now) : kill_groups();
    const bool none_left = reap_children(reap) || (stopped.empty() && only_always_spared());
    const bool busy = killed || janitors_work(now);
    if (busy) nothing_since_ = kNever;
    if (none_left || (!busy && only_survivors(now))) {
        // Only now, when no process can create or open another object.
        memory_.remove(all_well_);
        forget();
        return true;
    }
    // Only janitors are left. PyTorch's janitor is slow, and it is needed only for tensors whose
    // process we do not know. If there are none, its time ends now.
    if (stopped.empty() && !memory_.tensors_of_unknown())
        for (auto& [pid, spared] : janitors_)
            if (spared.kind == Janitor::of_tensors) spared.until = now;
    return false;
}

Survivor find_survivor(pid_t pid) {
    Survivor found{pid, read_small_file(proc_file(pid, "comm")), 0};
    if (found.name.ends_with('\n')) found.name.pop_back();
    struct stat folder {};
    if (::stat(proc_file(pid, "").c_str(), &folder) == 0) found.user = folder.st_uid;
    return found;
}

std::string survivor_sentence(const Survivor& survivor) {
    if (survivor.pid == 0)
        return "something that the workers have started runs on: /proc does not show it, so it "
               "cannot be killed from here";
    std::string who = "process " + std::to_string(survivor.pid);
    // hidepid hides both.
    if (!survivor.name.empty())
        who += " (" + survivor.name + ") of user " + std::to_string(survivor.user);
    if (survivor.blocks) return who + " belongs to a worker, and may not be killed from here";
    return who + ", which a worker has started, may not be killed from here; it runs on";
}

namespace {

std::string names_of(const LeftRunning& left) {
    std::string who = "process " + std::to_string(left.first.pid);
    if (!left.first.name.empty()) who += " (" + left.first.name + ")";
    if (left.count > 1) who += " and " + std::to_string(left.count - 1) + " more";
    return who;
}

}  // namespace

std::string left_sentence(const LeftRunning& left, const std::string& origin) {
    return names_of(left) + ", " + origin + ", " + (left.count > 1 ? "were" : "was") + " killed";
}

std::string left_behind_sentence(const LeftRunning& left, const Patience& patience) {
    std::string text = names_of(left) + ", which the workers had left running, " +
                       (left.count > 1 ? "were" : "was") + " ended";
    if (left.killed > 0)
        text += ", " + std::to_string(left.killed) + " of them by SIGKILL " +
                to_text(patience.to_leave) + " after SIGTERM";
    if (patience.wait > Duration{})
        return text + " (--wait-for-helpers=" + to_text(patience.wait) + ")";
    return text + "; --wait-for-helpers=SECONDS waits for such processes";
}

std::string waits_sentence(const LeftRunning& left, const Patience& patience) {
    return "the workers have succeeded; waiting up to " + to_text(patience.wait) + " for " +
           names_of(left) + ", which they have left running (--wait-for-helpers)";
}

bool kill_all_descendants(Duration limit, const Reaped& reaped) {
    const Time give_up = boot_now() + limit;
    Killing killing;
    while (!killing.round(reaped)) {
        if (boot_now() >= give_up) return false;
        siginfo_t ended{};
        // WNOWAIT leaves the zombie in place: the next round reaps it at once. Without a zombie
        // there is something to wait for.
        if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0)
            continue;
        const std::vector<pid_t> left = find_descendants(::getpid());
        wait_a_little(left.empty() ? 0 : left.front());
    }
    return true;
}

}  // namespace ddprun::agent
