// Has this program locked in memory (base/system/locked_program.h), some time after the first
// workers were started: it takes some milliseconds, and some more when the job ends, so a job of a
// second does without.
//
// Thread: the loop's. The work is done on a thread of its own, because nothing may wait for the
// file system below the program. Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace ddprun::agent {

class ProgramLock {
  public:
    explicit ProgramLock(boost::asio::io_context& loop) : loop_(loop), timer_(loop) {}
    // `whole`: also what is seldom used, because this job uses it. The first call counts.
    void later(bool whole);
    void close() { timer_.cancel(); }

  private:
    boost::asio::io_context& loop_;
    boost::asio::steady_timer timer_;
    bool begun_ = false;
};

}  // namespace ddprun::agent
