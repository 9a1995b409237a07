// Sockets that are served when they are ready, with an epoll of their own and nothing in between.
//
// An Asio loop asks the kernel anew before each wait for a socket. Here a socket is asked for once:
// the kernel tells that it is ready for as long as it is (level-triggered). This matters where
// thousands of small requests a second come from many connections.
//
// One turn serves the sockets that are ready, each once. Whoever has more to do asks for later().
// The owner makes the turns: a thread that sleeps in turn(), or an Asio loop (follow()).
//
// Thread: one. A callback may call everything but turn(), and may end any socket. Sockets are not
// owned; they leave (want nothing) before they are destroyed.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun {

// A socket, or another descriptor that epoll takes.
class ReadySocket {
  public:
    ReadySocket() = default;
    ReadySocket(const ReadySocket&) = delete;
    ReadySocket& operator=(const ReadySocket&) = delete;

    // A broken connection is both. What is told may be over: a callback before may have read, or
    // may have changed what is wanted.
    virtual void on_ready(bool readable, bool writable) = 0;

  protected:
    ~ReadySocket() = default;

  private:
    friend class ReadySockets;
    std::uint32_t wanted_ = 0;
};

class ReadySockets {
  public:
    ReadySockets();  // throws std::system_error if there is no descriptor for it

    // What to wait for from now on: EPOLLIN, EPOLLOUT, both, or 0 for nothing at all. `fd` is the
    // same each time. No system call where nothing changes. An error, if the kernel has no memory
    // for it or /proc/sys/fs/epoll/max_user_watches is reached, changes nothing.
    std::error_code want(ReadySocket& socket, int fd, std::uint32_t events);
    // Runs when the other sockets had their turn. Call it from within a callback.
    void later(std::function<void()> what) { later_.push_back(std::move(what)); }

    // Waits up to so many milliseconds, -1: for ever, until a socket is ready.
    void turn(int milliseconds);
    // Makes the turns on an Asio loop from now on; this thread's.
    void follow(const boost::asio::any_io_executor& loop);

  private:
    void follow_on();

    UniqueFd epoll_;
    std::array<epoll_event, 128> events_;  // of this turn
    int next_ = 0, count_ = 0;             // those from next_ on are still to be served
    std::vector<std::function<void()>> later_;
    std::optional<boost::asio::posix::stream_descriptor> followed_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what the Asio loop has
};

}  // namespace ddprun
