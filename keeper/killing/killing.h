// Kills everything that descends from this process, so that none of it is left, nor anything that
// it kept in shared memory.
//
// The work is done in rounds: SIGSTOP to all until no new process appears (a stopped process cannot
// fork), then SIGKILL to all, then reap (descendants.h). Janitors (janitor.h) get time to do their
// work and are killed last.
//
// Two kinds of processes survive, and nobody waits for them longer than a second: those that may
// not be killed because they belong to another user (a setuid program such as sudo), and those that
// /proc does not show (own_proc.h). Without a /proc of its own a Killing knows only the process
// groups of the workers, and kills these.
//
// But a survivor in the session of a worker that has not succeeded may be the training itself
// (`sudo python train.py`). Then the rounds find no end: while it runs, no other generation may.
//
// Thread: any, one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "keeper/killing/descendants.h"
#include "keeper/killing/janitor.h"
#include "keeper/killing/shared_memory.h"

namespace ddprun::agent {

struct Survivor {
    pid_t pid = 0;     // 0: it is not known which, because /proc does not show it
    std::string name;  // as the kernel has it; empty: hidden, and so is the user
    uid_t user = 0;
    bool blocks = false;  // the rounds find no end while it lives
};

// What /proc says about a process.
Survivor find_survivor(pid_t pid);

// For example "process 4711 (sudo) of user 0, which a worker has started, may not be killed from
// here; it runs on".
std::string survivor_sentence(const Survivor& survivor);

// What was ended although it might have run on.
struct LeftRunning {
    int count = 0;
    Survivor first;
    int killed = 0;  // of these, by SIGKILL
};
// For example "process 4711 (tail) and 2 more, which the workers had left running, were killed".
std::string left_sentence(const LeftRunning& left,
                          const std::string& origin = "which the workers had left running");

// How workers that have succeeded are followed: what they have left running.
struct Patience {
    Duration wait{};           // for it to end by itself
    Duration to_leave{};       // from SIGTERM to SIGKILL after that
    bool leave_alone = false;  // it runs on, also after the keeper's end
};
// For example "process 4711 (tail), which the workers had left running, was ended; …".
std::string left_behind_sentence(const LeftRunning& left, const Patience& patience);
// For example "waiting up to 60.0 s for process 4711 (tail), which …".
std::string waits_sentence(const LeftRunning& left, const Patience& patience);

// Kills generations, one after the other. When nothing of a generation is left, its records are
// cleared for the next one.
class Killing {
  public:
    // Called within a round with each survivor, once.
    using OnSurvivor = std::function<void(const Survivor&)>;
    // Called within a round when it waits for what workers have left running, once.
    using OnWait = std::function<void(const LeftRunning&)>;
    explicit Killing(OnSurvivor on_survivor = {}, OnWait on_wait = {})
        : on_survivor_(std::move(on_survivor)), on_wait_(std::move(on_wait)) {}

    // A worker of the generation was started; it leads a session and a process group.
    void started(pid_t worker) { groups_.insert(worker); }
    // A child that belongs to no generation is not killed, but what it has started is.
    void spare_always(pid_t child) { always_spared_.insert(child); }
    void spare_nobody() { always_spared_.clear(); }
    // A process of the generation was reaped outside a round.
    void reaped(pid_t pid, int wait_status);
    // The workers have succeeded. What they have left running gets this time, a moment at least,
    // and what is ended then is counted. Call it before the first round.
    void give_time(const Patience& patience) { patience_ = patience; }
    // The wait is over: what still runs has this time from SIGTERM to SIGKILL, if it is shorter.
    void hurry(Duration to_leave = {});
    // Waits for what workers have left running, and longer than a moment.
    bool waits_long() const;
    // What the workers have left running runs on after the end of the keeper.
    bool leaves_alone() const { return leaves_alone_; }
    const LeftRunning& left() const { return left_; }  // by the newest generation
    // Nothing of the generation is left.
    void forget();
    // Does one round. Returns true when nothing is left but survivors that do not block. Otherwise
    // call it again when a child has ended, or after a few milliseconds.
    bool round(const Reaped& reaped);
    // A survivor blocks, and nothing else is left.
    bool blocked() const { return blocked_; }

  private:
    std::vector<pid_t> stop_all(Time now);
    bool kill_all(const std::vector<pid_t>& stopped, Time now);
    bool kill_groups();
    bool spare(pid_t pid, Time now);
    std::vector<pid_t> left_running() const;
    bool waits_for_left(Time now);
    bool only_always_spared() const;
    bool janitors_work(Time now) const;
    bool only_survivors(Time now);
    bool blocks(pid_t pid) const;

    SharedMemory memory_;
    // A janitor, and how long it may work.
    struct Spared {
        Janitor kind;
        Time until;
    };
    std::map<pid_t, Spared> janitors_;
    Time began_ = kNever;  // of the first round for this generation; kNever: no killing in progress

    OnSurvivor on_survivor_;
    OnWait on_wait_;
    std::set<pid_t> always_spared_;
    std::set<pid_t> groups_;     // of the workers
    std::set<pid_t> succeeded_;  // workers that have ended with 0 by themselves
    std::set<pid_t> refused_;    // may not be killed, as this round has found
    bool blocked_ = false;
    std::optional<Patience> patience_;  // while it lasts
    Time asked_at_ = kNever;            // what is left got SIGTERM
    bool told_wait_ = false, leaves_alone_ = false;
    bool all_well_ = true;  // no process of the generation has failed or was killed
    LeftRunning left_;
    std::set<pid_t> told_;  // all of them so far
    bool told_hidden_ = false;
    Time nothing_since_ = kNever;  // since when no round has found anything to kill
};

// Repeats rounds until nothing is left but survivors. Returns false when `limit` has passed, which
// means that a process hangs in the kernel. Blocks.
bool kill_all_descendants(Duration limit, const Reaped& reaped = {});

}  // namespace ddprun::agent
