// The keeper as ddprun sees it: the small process that is the parent of all workers, and the
// requests to it.
//
//     main, before any thread:  Keeper::start()      forks it; makes ddprun a subreaper
//     the runner:               attach(io, events)   from here on all answers come as callbacks on that loop
//                               set_deadline, spawn, sweep, prepare_gone, remove_when_gone, noticed
//     the end:                  shutdown()           sweeps, ends the keeper without its `Gone`, reaps it
//
// Requests are carried out in the order they were made, so a deadline set before a spawn guards it.
// All requests may be made at once: nothing here waits, but shutdown(). The keeper works on its own
// in two cases: when the deadline passes it kills all workers and their descendants, and 0.1 lease
// later a ddprun that has not said since the deadline that it noticed; when ddprun is gone (or this
// object is destroyed without shutdown()) it kills all that is left, then writes the Gone frame.
//
// When the keeper dies, ddprun as subreaper has adopted what it left: this object kills it, calls
// back all open spawns and sweeps (spawns with `closed`), then Events::died. After restart() it
// goes on with a new one, that knows nothing: no deadline, no Gone frame.
//
// Thread: the loop's only; the io_context outlives this. Callbacks never come from inside a
// request.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"
#include "base/time.h"

namespace ddprun::agent {

struct ExtraFd {
    int number = -1;  // which descriptor it is in the worker, 3 or more
    int fd = -1;
};

// One worker to be started. Descriptors are borrowed: spawn() duplicates them, the caller may close
// its own at once. Every other descriptor of the worker is closed at exec.
struct WorkerStart {
    std::vector<std::string> argv;  // argv[0] without a slash is looked up in PATH of `environment`
    std::vector<std::string> environment;  // "K=V", complete
    std::string cwd;                       // empty: where ddprun was started
    int stdin_fd = -1;                     // -1: /dev/null, for each of the three
    int stdout_fd = -1;
    int stderr_fd = -1;
    std::vector<ExtraFd> extra;  // e.g. the progress pipe
    std::vector<int> cpus;       // empty: all that ddprun may use
    std::optional<std::uint64_t>
        nofile_soft;  // the soft limit that the user had before ddprun raised its own
    // Process group but no session of its own, and the foreground one of the terminal on stdin
    // (which it may then read), if that is ddprun's now. Ctrl-Z stops it and ddprun (terminal.h).
    bool foreground = false;
};

struct Spawned {
    std::int64_t pid = 0;
    UniqueFd pidfd;  // -1 on kernels without pidfds; Events::exited comes in any case
};

struct KeeperEvents {
    // A worker has been reaped: its wait status, and when. Comes after its spawn callback, before
    // that of a sweep.
    std::function<void(std::int64_t pid, int wait_status, Time at)> exited;
    // The deadline has passed and the keeper has killed everything; this object has answered that
    // it noticed.
    std::function<void()> expired;
    // The keeper has died, and what it left has been killed. Call restart().
    std::function<void()> died;
};

struct KeeperOptions {
    bool own_session =
        true;  // false for a lone worker at a terminal: keeper and worker stay in ddprun's session
};

class Keeper {
  public:
    // Forks the keeper. Call with one thread and few descriptors open. Possible errors: internal
    // (no process, no socket).
    static Result<Keeper> start(KeeperOptions options = {});

    Keeper(Keeper&&) noexcept;
    Keeper& operator=(Keeper&&) noexcept;
    ~Keeper();  // without shutdown() before it, this is like the death of ddprun

    void attach(boost::asio::io_context& io, KeeperEvents events);

    // Possible errors, with a sentence such as "cannot execute ./train: Permission denied":
    //   not_found   the program or its interpreter is not there (a shell would say 127)
    //   refused     it cannot be executed, or its directory, CPUs or limits cannot be had (126)
    //   timed_out   the deadline had passed before exec
    //   unavailable no process (fork failed)
    //   closed      the keeper is dead
    // Several spawns may be answered in another order than they were made.
    using SpawnCallback = std::function<void(Result<Spawned>)>;
    void spawn(const WorkerStart& start, SpawnCallback done);

    // Until when workers may run; kNever: no deadline. `lease` gives the time after which a frozen
    // ddprun is killed.
    void set_deadline(Time deadline, Duration lease);
    // ddprun knows that its deadline passed; says nothing of one that is still to come. Harmless at
    // any time.
    void noticed();
    // Kills and reaps all workers and whatever they started; calls back when nothing is left.
    void sweep(std::function<void()> done);
    // What the keeper does last when ddprun is gone: write `frame` on its duplicate of link_fd, and
    // let go of its duplicate of listen_fd. Replaces what was prepared before; -1 for none. While
    // prepared, a link does not end by close() alone: use shutdown(2) on it, or prepare anew.
    void prepare_gone(const std::string& frame, int link_fd, int listen_fd);
    // A folder, by its absolute path, which the keeper removes with all that is in it when ddprun is
    // gone; shutdown() leaves it. Replaces the one named before; a new keeper must be told again.
    void remove_when_gone(const std::string& folder);

    // A new keeper by exec of /proc/self/exe (main hands argv[1] == kKeeperArgument to
    // keeper_main_exec). Only after died.
    Result<> restart();
    bool alive() const;
    std::int64_t pid() const;

    // Sweeps, ends the keeper without its Gone frame and reaps it; blocks, no longer than `limit`.
    // No callback after it. timed_out: something cannot be killed (it hangs in the kernel); the
    // keeper stays behind, waiting for its end.
    Result<> shutdown(Duration limit = std::chrono::seconds{10});

  private:
    struct Impl;
    explicit Keeper(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

// argv[1] of a keeper that was started by exec. main() looks for it first: `return
// keeper_main_exec(argc, argv);`
inline constexpr const char* kKeeperArgument = "--ddprun-keeper";
int keeper_main_exec(int argc, char** argv);

}  // namespace ddprun::agent
