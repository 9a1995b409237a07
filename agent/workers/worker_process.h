// One worker as a process: which processes are its, and signals that reach it and nobody else.
//
// Thread: the loop's. Owner: the worker set.
#pragma once

#include <cstdint>

#include "base/system/unique_fd.h"

namespace ddprun::agent {

struct WorkerProcess {
    std::int64_t pid = 0;  // 0 until the keeper has started it
    UniqueFd pidfd;        // -1 on an old kernel, too
    bool ended = false;    // reaped, or never started

    bool lives() const { return pid != 0 && !ended; }
    // Whether a process is in its session or process group.
    bool has(std::int64_t process) const;
    // Sends a signal that asks it to stop: to the processes that live on after it
    // (signal_targets.h), else to its process group. A plain program ends with all that it has
    // started.
    void signal(int number) const;
    // Sends a signal that asks for something else, to these processes only. Returns false if there
    // is none: the worker would die of it.
    bool pass_on(int number) const;
    // Its terminal has another size. Processes that do not ask for SIGWINCH do not notice.
    void resized() const;
    // Sends SIGKILL to this process alone. Without a pidfd the keeper alone kills: it knows which
    // pids are still in use.
    void kill() const;
    // It may be stopped because it waits for the keyboard: then it hears no signal.
    void wake() const;

  private:
    bool is_there() const;
    void signal_group(int number) const;
};

}  // namespace ddprun::agent
