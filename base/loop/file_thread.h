// A thread for file operations that may hang, such as those on a network file system. Jobs run in
// the order in which they were posted; their results come back to the loop. The loop never waits
// for a file.
//
// ddprun has several of them (for the ledger, for the workers' output files, for a console that is
// a file), so that one hanging file system does not block work for another. The same holds for
// /proc: the kernel may let nobody look at a process while that process changes its memory.
//
// Thread: `work` runs on the file thread and must not touch anything of the loop. `done` runs on
// the loop. The thread starts with the first post.
//
// Lifetime: io_context::run() does not return while a `done` is owed. Call abandon() to leave
// although a file system hangs. The destructor waits up to 2 s for pending work and then detaches
// the thread. The detached thread may finish its work later, but touches neither the loop nor this
// object.
//
// Errors: `work` reports by values. An exception from `work` ends the process.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/time.h"

namespace ddprun {

class FileThread {
  public:
    explicit FileThread(boost::asio::io_context& loop);
    ~FileThread();
    FileThread(const FileThread&) = delete;
    FileThread& operator=(const FileThread&) = delete;

    // Queues `work`, and `done` if there is one. Call on the loop's thread. Never blocks, except
    // where the process can have no more threads: then the work is done at once, on this one.
    void post(std::function<void()> work, std::function<void()> done = {});

    // As post(), but calls `done` after `patience` at the latest. `in_time` says whether the work
    // was finished by then. Late work still runs to its end.
    void post_within(Duration patience, std::function<void()> work,
                     std::function<void(bool in_time)> done);

    // A counter of finished steps. Long work increments it (a copy is safe on any thread), so that
    // drain() can tell slow from stuck.
    using Progress = std::shared_ptr<std::atomic<std::uint64_t>>;
    Progress progress() const;

    // For the end of the process: blocks, without running the loop, until all posted work is done.
    // Returns false when the progress counter has not moved for `patience`.
    bool drain(Duration patience);

    // From now on no `done` is called, and the loop may end. Pending work is still done.
    void abandon();

    // As abandon(), and the destructor will not wait: for a thread whose work is known to hang.
    // Nothing may be posted after it.
    void let_go();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive this object
};

}  // namespace ddprun
