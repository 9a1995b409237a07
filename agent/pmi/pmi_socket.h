// The socket on which one worker asks by PMI-1. However much it writes, it takes no more than its
// share of each turn of the loop (turn_budget.h), and what it does not read is bounded.
//
// Thread: the loop's. Owner: the PMI server, one for each worker and generation.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent::pmi {

class Socket {
  public:
    // Answers that may wait for a worker that does not read them.
    static constexpr std::size_t kMostUnread = std::size_t{1} << 20;
    // A line without its newline.
    using OnLine = std::function<void(std::string_view line)>;
    // The worker cannot be served any more, and why. Comes once.
    using OnFault = std::function<void(const std::string& why)>;

    Socket(boost::asio::io_context& loop, std::shared_ptr<TurnBudget> turns, OnLine on_line,
           OnFault on_fault);
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    // Makes the pair and begins to read. Returns the worker's end, or none if no descriptors are
    // left. Close it (destroy it) when the worker has been requested.
    UniqueFd open();
    void send(std::string_view line);  // without its newline
    // Nothing is read or sent any more. The connection stays: a worker that waits for an answer is
    // ended by ddprun's signal, and not, with another reason, by a connection that breaks.
    void stop();
    // The worker has exited: takes what it has written before, and stops.
    void finish();

  private:
    void await();
    std::size_t take_some();
    std::size_t read_once();  // bytes that were there
    void take_lines();
    void flush();
    void fault(const std::string& why);

    boost::asio::posix::stream_descriptor socket_;
    std::shared_ptr<TurnBudget> turns_;
    OnLine on_line_;
    OnFault on_fault_;
    std::string read_;    // not yet a line
    std::string unread_;  // by the worker
    bool writing_ = false, stopped_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::pmi
