// The pipe on which one worker reports its progress. However much a worker writes, it takes one
// read of each turn of the loop.
//
// Thread: the loop's. Owner: the worker set, one object for each worker and generation.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "agent/workers/progress_lines.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class ProgressPipe {
  public:
    // Called from the loop, and within finish().
    using OnReport = std::function<void(const ProgressReport&)>;

    ProgressPipe(boost::asio::io_context& loop, OnReport on_report)
        : pipe_(loop), on_report_(std::move(on_report)) {}
    ProgressPipe(const ProgressPipe&) = delete;
    ProgressPipe& operator=(const ProgressPipe&) = delete;

    // Makes the pipe and begins to read. Returns the worker's end, or none if no descriptors are
    // left. Close it (destroy it) after Keeper::spawn().
    UniqueFd open();
    // Call when the worker has exited: takes what is in the pipe now (1 MiB at most), and then
    // nothing more. It does not wait for the end of the pipe, because a process that the worker
    // left behind may hold it open.
    void finish();
    // Nothing is read any more: the worker has not been started.
    void stop() { finished_ = true; }

  private:
    void await();
    bool take(int reads);

    boost::asio::posix::stream_descriptor pipe_;
    OnReport on_report_;
    ProgressLines lines_;
    bool finished_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
