// What a stop means on one node: the meaning of a signal, when the time limit of the job is near,
// how long workers have, which signal they get, and what they can read about the stop. Pure.
//
// All causes take one path: the node asks the leader (StopAsked), and the leader tells all nodes
// (Stop). A job goes back into the queue only after the time limit or a signal that the user has
// named for it. A plain SIGTERM may come from scancel, and nothing may start again after that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/model/messages.h"

namespace ddprun::agent {

// --requeue: after which stops the job is put back into the queue.
enum class RequeueMode : int {
    automatic,  // a time limit that was seen coming, a signal of --requeue-signal
    never,
    always,  // SIGTERM too
};

struct StopOptions {
    bool in_slurm = false;               // whose signals may reach workers before ddprun
    std::optional<Time> job_end;         // of the job's time
    std::optional<Duration> first_left;  // of that, when it became known
    bool ask_job_end = false;            // of Slurm, while the job runs
    std::optional<Duration> before;      // --stop-before; none: by the last snapshot
    std::optional<int> worker_signal;    // --stop-signal
    std::vector<int> requeue_signals;    // --requeue-signal
    bool leaves = false;                 // this node alone at SIGTERM (--on-sigterm=leave)
    RequeueMode requeue =
        RequeueMode::never;  // outside a batch job there is no queue to go back to
};

// How long this node's workers have to end.
struct Grace {
    Duration final_stop = std::chrono::seconds{30};  // from SIGTERM to SIGKILL when the job ends
    Duration restart = std::chrono::seconds{5};      // the same when a generation follows
    // How long processes that workers have left running may run on after their success. None: they
    // are left alone.
    std::optional<Duration> helpers = Duration{};
    // A process may live on after SIGKILL, hanging in the kernel. After this time its node counts
    // as unusable.
    Duration killed = std::chrono::seconds{60};
};

inline constexpr Duration kLeastStopBefore = std::chrono::seconds{60};
// Of the time that is left, what is kept for killing, recording the end and asking Slurm.
inline constexpr Duration kKeptBack = std::chrono::seconds{10};

// How long before the time limit the workers get the stop. The user's value counts if there is one.
// Otherwise it is twice the time of the last snapshot plus the time that is kept back, at least 60
// s, but at most half of the time that the job had.
Duration stop_before(const StopOptions& options, Duration snapshot_took);

// When this node asks for a stop because of the time limit; kNever: the limit is not known.
Time stop_due_at(const StopOptions& options, Duration snapshot_took);

rendezvous::StopAsked stop_by_time_limit(const StopOptions& options, Time now);
// SIGTERM at the end of the job's time or later is the time limit's.
rendezvous::StopAsked stop_by_signal(int signal, const StopOptions& options, Time now);

// Which signal workers get: --stop-signal; else that which came, or SIGTERM.
int signal_for_workers(rendezvous::StopCause cause, int signal, const StopOptions& options);

// How long workers have before SIGKILL. `final`: the grace of other final stops; `left`: what is
// left of the job's time. Without a known limit, a named signal gets the same time as a stop before
// the time limit.
Duration grace_of(rendezvous::StopCause cause, std::optional<Duration> left, Duration final,
                  const StopOptions& options, Duration snapshot_took);

// What workers read in the file that DDPRUN_STOP_FILE names.
struct StopHint {
    Generation generation;
    rendezvous::StopCause cause = rendezvous::StopCause::signal;
    std::string sentence;
    int signal = 0;    // that follows
    Duration grace{};  // until SIGKILL
    bool requeue = false;
    bool operator==(const StopHint&) const = default;
};

const char* to_string(rendezvous::StopCause cause);

// JSON in one line. `now`: of day, since 1970.
std::string to_json(const StopHint& hint, Duration now);

}  // namespace ddprun::agent
