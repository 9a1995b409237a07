// torchrun's file timers of the workers of one ddprun: a FIFO for each generation, and the signal
// for a worker whose timer has expired.
//
// torchrun ends together with such a worker. Here its death is a failure like any other, and
// restarts apply.
//
// Thread: the loop's. Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/workers/timer_fifo.h"

namespace ddprun::agent {

class WorkerTimers {
  public:
    // Sends the signal to a worker's process, and says why if it dies of it. Returns false if the
    // process belongs to no worker.
    using Send = std::function<bool(std::int64_t pid, int signal, const std::string& why)>;

    // `path`: of the FIFO; empty: beside the workers' files.
    WorkerTimers(boost::asio::io_context& loop, FileThread& files, std::string path, Send send,
                 TimerFifo::Warn warn)
        : loop_(loop),
          files_(files),
          path_(std::move(path)),
          send_(std::move(send)),
          warn_(std::move(warn)) {}

    // Begins a generation whose first worker has this folder (empty: none). Returns the path of the
    // FIFO; empty if there is none.
    std::string serve(const std::string& folder);

  private:
    void expired(const TimerRequest& request);

    boost::asio::io_context& loop_;
    FileThread& files_;
    std::string path_;
    Send send_;
    TimerFifo::Warn warn_;
    std::unique_ptr<TimerFifo> fifo_;
    int strangers_ = 0;  // expired timers of no worker, in this generation
};

}  // namespace ddprun::agent
