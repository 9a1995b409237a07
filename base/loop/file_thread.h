// A thread for what may hang on a file system; one for the ledger, one for the files of the
// workers' output, one for a console that is a file, so that none waits for what hangs another.
// Works off what is posted in the order of posting; results come to the loop. While it hangs, the
// loop goes on.
//
// The thread starts with the first post. `work` runs there and must touch nothing of the loop's;
// `done` runs on the loop. A `done` that is owed keeps io_context::run() from returning; who wants
// to leave in spite of a hung file system calls abandon(). The destructor waits up to 2 s for what
// is pending, then leaves the thread to itself: what hangs may then finish or not, but touches
// neither the loop nor this object again. An exception in `work` ends the process: work reports by
// values.
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

    // Loop thread only. Never blocks.
    void post(std::function<void()> work, std::function<void()> done = {});

    // As post; `done` is called within `patience`: whether the work is done by then.
    void post_within(Duration patience, std::function<void()> work,
                     std::function<void(bool in_time)> done);

    // Work that takes long counts up here as it gets on.
    using Progress = std::shared_ptr<std::atomic<std::uint64_t>>;
    Progress progress() const;

    // For the very end: waits, without the loop, until all that was posted has been done. False:
    // nothing has got on for `patience`.
    bool drain(Duration patience);

    // No `done` is called from now on, and the loop may end; work that is pending is still done.
    void abandon();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;  // with the thread, so that it may outlive this object
};

}  // namespace ddprun
