// The pipe on which one worker reports its progress. However much a worker writes, it takes no more
// than its share of each turn of the loop (turn_budget.h).
//
// Thread: the loop's. Owner: the worker set, one object for each worker and generation.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "agent/output/flood_watch.h"
#include "agent/workers/progress_lines.h"
#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

class ProgressPipe {
  public:
    // Called from the loop, and within finish(): once for all lines of a read, with the newest of
    // their numbers, and the sum of what snapshots have taken from training.
    using OnReport = std::function<void(const ProgressReport&)>;
    // Called once, when so many bytes have come without a pause (flood_watch.h). May be empty.
    using OnFlood = std::function<void(std::size_t bytes)>;

    ProgressPipe(boost::asio::io_context& loop, std::shared_ptr<TurnBudget> turns,
                 OnReport on_report, OnFlood on_flood = {})
        : pipe_(loop),
          turns_(std::move(turns)),
          on_report_(std::move(on_report)),
          on_flood_(std::move(on_flood)) {}
    ProgressPipe(const ProgressPipe&) = delete;
    ProgressPipe& operator=(const ProgressPipe&) = delete;

    // Makes the pipe and begins to read. Returns the worker's end, or none if no descriptors are
    // left. Close it (destroy it) after Keeper::spawn().
    UniqueFd open();
    // Call when the worker has exited: takes what is in the pipe now (1 MiB at most), and then
    // nothing more. It does not wait for the end of the pipe, because a process that the worker
    // left behind may hold it open.
    void finish();
    // Where this process says in which collective call it is (base/call_board.h); 0: it has not
    // told. A worker may have started another one that trains.
    std::uint64_t calls_at(std::int64_t pid) const { return pid == calls_of_ ? calls_at_ : 0; }
    // Nothing is read any more: the worker has not been started.
    void stop() { finished_ = true; }

  private:
    void await();
    std::size_t take_some();
    std::ptrdiff_t read_once();
    void tell(std::span<const ProgressReport> reports);
    void report(std::span<const ProgressReport> reports);

    boost::asio::posix::stream_descriptor pipe_;
    std::shared_ptr<TurnBudget> turns_;
    OnReport on_report_;
    OnFlood on_flood_;
    FloodWatch watch_{std::chrono::milliseconds{250}};
    ProgressLines lines_;
    SavingTime saving_;
    std::uint64_t calls_at_ = 0;
    std::int64_t calls_of_ = 0;
    bool told_not_finite_ = false;
    bool finished_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
