// The keeper as ddprun sees it. The keeper is a small process, the parent of all workers; this
// class sends requests to it.
//
//   main, before any thread:  Keeper::start()     forks it; makes ddprun a subreaper
//   the runner:               attach(io, patience, events)  answers are now callbacks on that loop
//                             set_deadline, spawn, sweep, prepare_gone, remove_when_gone, noticed
//   the end:                  shutdown()          sweeps, ends the keeper without Gone, reaps it
//
// Order: the keeper carries out requests in the order in which they were made. So a deadline that
// was set before a spawn guards this spawn. All requests may be made at once; only shutdown()
// waits.
//
// The keeper acts on its own in two cases:
// - The deadline passes. It kills all workers and their descendants. If ddprun has not said by then
//   that it noticed the deadline, and stands still, it counts as frozen and is killed 0.1 lease
//   later.
// - ddprun is gone (or this object was destroyed without shutdown()). It kills everything that is
//   left, and then writes the Gone frame.
//
// If the keeper dies, ddprun, as a subreaper, inherits its processes. This object then kills them,
// answers all open spawns (with the error `closed`) and sweeps, and calls Events::died. After
// restart() it works with a new keeper, which knows neither the deadline nor the Gone frame.
//
// A keeper that does not answer for `patience` (keeper_watch.h) is killed, and counts as dead.
//
// Thread: the loop's only. The io_context must outlive this object. Callbacks never run inside a
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
#include "keeper/between/worker_start.h"
#include "keeper/keeper_start.h"
#include "keeper/keyboard.h"
#include "keeper/killing/killing.h"

namespace ddprun::agent {

// A worker whose program runs.
struct Spawned {
    std::int64_t pid = 0;
    // -1 on kernels without pidfds. Events::exited comes in any case.
    UniqueFd pidfd;
};

// What the keeper reports on its own. Each callback may be empty.
struct KeeperEvents {
    // A worker has been reaped: its wait status and the time. Comes after its spawn callback and
    // before the callback of a sweep.
    std::function<void(std::int64_t pid, int wait_status, Time at)> exited;
    // A worker has sent this signal to its parent, and this process has a handler for it. It comes
    // after the spawn callback of the sender, and before its death. A signal without a handler is
    // sent to this process instead, so that what is usual for it happens.
    std::function<void(int signal)> signalled;
    // A sweep leaves this process alone. Comes once, before the callback of the sweep; if it
    // blocks, the sweep finds no end.
    std::function<void(const Survivor& survivor)> survivor;
    // A sweep with patience waits for these. Comes once, before the callback of the sweep.
    std::function<void(const LeftRunning& left)> waits;
    // The deadline has passed, and the keeper has killed everything. This object has already
    // answered the keeper that ddprun noticed.
    std::function<void()> expired;
    // The keeper does not answer, and is now killed with everything below it. `died` follows,
    // unless one of these processes hangs in the kernel.
    std::function<void()> frozen;
    // A worker at a terminal was stopped, and ddprun is about to stop with it.
    std::function<void()> stopping;
    // Several workers are at a terminal, and at least one wants the keyboard. Comes at each look.
    // `ours`: ddprun is in the foreground. `typing`: what is typed for the holder is shown.
    std::function<void(const Keyboard& keyboard, bool ours, bool typing)> keyboard;
    // The keeper has died, and everything that it left has been killed. Call restart(). `how`
    // follows its name: "has died".
    std::function<void(const std::string& how)> died;
};

// Owns the connection to the keeper process, and the process itself.
class Keeper {
  public:
    // Forks the keeper. Call it while the process has one thread and few open descriptors. Possible
    // errors: internal (no process or no socket).
    static Result<Keeper> start(KeeperOptions options = {});

    Keeper(Keeper&&) noexcept;
    Keeper& operator=(Keeper&&) noexcept;
    // Without shutdown() before it, the destructor has the same effect as the death of ddprun.
    ~Keeper();

    // Starts the delivery of answers and events on this loop.
    void attach(boost::asio::io_context& io, Duration patience, KeeperEvents events);

    // Possible errors, with a sentence such as "cannot execute ./train: Permission denied":
    //   not_found   the program or its interpreter does not exist (a shell says 127)
    //   refused     it cannot be executed, or its folder, CPUs or limits cannot be set (126)
    //   timed_out   the deadline had passed before exec
    //   unavailable no process (fork failed), or no descriptors
    //   closed      the keeper is dead
    // Answers to several spawns may come in another order than the requests.
    using SpawnCallback = std::function<void(Result<Spawned>)>;
    void spawn(const WorkerStart& start, SpawnCallback done);

    // Takes a worker that a spared helper has forked as the keeper's child. It waits for a byte on
    // a pipe whose other end is `release` (borrowed), and goes on when the keeper has taken it.
    // Answered as spawn(); if the answer is an error, it never goes on.
    void adopt(std::int64_t pid, int release, SpawnCallback done);

    // Workers may run until `deadline`; kNever means no deadline. `lease` determines when a frozen
    // ddprun is killed (0.1 lease after the deadline).
    void set_deadline(Time deadline, Duration lease);
    // Tells the keeper that ddprun knows that its deadline has passed. It says nothing about a
    // deadline in the future, and may be called at any time.
    void noticed();
    // Kills and reaps all workers and everything that they started. Calls back when nothing is left
    // but spared helpers. With `patience` the workers have succeeded: what they have left running
    // gets this time, and only then `left` is told.
    using SweptCallback = std::function<void(const LeftRunning& left)>;
    void sweep(const std::optional<Patience>& patience, SweptCallback done);
    // The patience of a sweep is over: what is left has this time from SIGTERM to SIGKILL.
    void hurry(Duration to_leave);
    // Whether this worker was the last one that had the keyboard, among several.
    bool had_keyboard(std::int64_t pid) const;
    // Prepares what the keeper does last, when ddprun is gone: it writes `frame` to its duplicate
    // of link_fd, and closes its duplicate of listen_fd. -1 means none. Each call replaces the one
    // before.
    //
    // While a link is prepared, close() on our side does not end the connection, because the keeper
    // has a duplicate. Use shutdown(2), or prepare another link.
    void prepare_gone(const std::string& frame, int link_fd, int listen_fd);
    // Names a folder (absolute path) that the keeper removes with its content when ddprun is gone,
    // and keeps a duplicate of its lock (-1: none) until then. shutdown() leaves the folder. Each
    // call replaces the one before. A new keeper must be told again.
    void remove_when_gone(const std::string& folder, int lock_fd);

    // Starts a new keeper by exec of this program (own_program()); main passes argv[1] ==
    // kKeeperArgument on to keeper_main_exec(). Only after Events::died. Possible errors:
    //   internal     no process or no socket
    //   unavailable  the last keepers died at once, so the next one would, too
    Result<> restart();
    bool alive() const;
    std::int64_t pid() const;

    // Sweeps, ends the keeper without its Gone frame, and reaps it. Blocks up to `limit`. No
    // callback runs after it. Possible errors: timed_out, when a process cannot be killed because
    // it hangs in the kernel; the keeper then stays behind and waits for its end. A keeper that
    // does not answer within the limit is killed, and its processes are killed from here.
    Result<> shutdown(Duration limit = std::chrono::seconds{10});

  private:
    struct Impl;
    explicit Keeper(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
