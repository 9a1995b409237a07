// The FIFO into which workers write their timers (TORCHELASTIC_TIMER_FILE), read, and the moment at
// which one has run out. Shell; the loop's thread; owned by the runner, one for each generation.
//
// Reading never waits: the FIFO is opened without blocking, both ways, and read once when the loop
// says that something is there; what it holds is in the kernel's memory. It is made where a folder
// has just been made (or where the user named it), and removed on the file thread.
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
    using OnExpired = std::function<void(const TimerRequest&)>;
    using Warn = std::function<void(const std::string&)>;

    // Makes the FIFO, in the place of an older one. Possible errors: unavailable, naming the path.
    static Result<std::unique_ptr<TimerFifo>> open(boost::asio::io_context& loop, FileThread& files,
                                                   std::string path, OnExpired on_expired,
                                                   Warn warn);
    ~TimerFifo();  // removes it
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
    std::string rest_;  // of a line that has not ended
    TimerTable table_;
    bool warned_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent
