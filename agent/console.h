// The queue of bytes to one descriptor that may be slow: our stdout, stderr, or a worker's file.
//
// write() never blocks and never fails. The descriptor may be shared with other processes, so its
// O_NONBLOCK is left alone: a pipe or terminal is opened anew through /proc (an open file
// description of our own), a socket is written with MSG_DONTWAIT; where neither can be done, no
// more than PIPE_BUF is written after poll has said that there is room. A regular file is written
// at once. What one write() got stands together in the output.
//
// A reader that has gone, or a full disk, is reported once; what cannot be written is dropped, and
// nobody is killed (main ignores SIGPIPE). Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "proto/error.h"
#include "proto/time.h"

namespace ddprun::agent {

class Console {
  public:
    static constexpr std::size_t kDefaultLimit = std::size_t{64} << 20;

    // `fd` is borrowed and duplicated. `name` is for the sentence: "stdout". `broken` comes at most
    // once.
    Console(boost::asio::io_context& io, int fd, std::string name,
            std::function<void(Error)> broken, std::size_t limit = kDefaultLimit);
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    void write(std::string_view bytes);
    std::size_t waiting() const;  // bytes not yet written
    bool full() const;            // as much waits as should: stop reading for it
    // Called once, when half of the limit is free again (later, from the loop). Only while full().
    void when_room(std::function<void()> callback);
    // Called once, from the loop, when nothing waits.
    void when_empty(std::function<void()> callback);
    // For the very end: writes on, without the loop, until nothing waits or `limit` has passed.
    bool flush(Duration limit);

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
