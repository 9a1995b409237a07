// Serves torchrun's file timers: reads the FIFO into which workers write them
// (TORCHELASTIC_TIMER_FILE), and reports timers that have expired.
//
// Thread: the loop's. Owner: the runner, one object for each generation. Reading never blocks: the
// FIFO is opened in non-blocking mode and read when the loop reports data, which is in kernel
// memory. The FIFO is made in a folder that was just made (or where the user named it), and is
// removed on the file thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "agent/workers/timer_table.h"
#include "base/loop/file_thread.h"

namespace ddprun::agent {

class TimerFifo {
  public:
    // Called for each timer that has expired.
    using OnExpired = std::function<void(const TimerRequest&)>;
    using Warn = std::function<void(const std::string&)>;

    // Makes the FIFO; an older FIFO under this name is replaced. Possible errors: unavailable
    // (names the path).
    static Result<std::unique_ptr<TimerFifo>> open(boost::asio::io_context& loop, FileThread& files,
                                                   std::string path, OnExpired on_expired,
                                                   Warn warn);
    // Removes the FIFO.
    ~TimerFifo();
    TimerFifo(const TimerFifo&) = delete;
    TimerFifo& operator=(const TimerFifo&) = delete;

    const std::string& path() const { return path_; }

  private:
    TimerFifo(boost::asio::io_context& loop, FileThread& files, std::string path,
              OnExpired on_expired, Warn warn);
    void await_lines();
    void take_lines();
    void arm();

    FileThread& files_;
    std::string path_;
    OnExpired on_expired_;
    Warn warn_;
    boost::asio::posix::stream_descriptor fifo_;
    boost::asio::steady_timer timer_;
    std::string rest_;  // a line whose end has not arrived
    TimerTable table_;
    bool warned_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
