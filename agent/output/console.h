// The queue of bytes to one place that may be slow: our stdout, stderr, or a worker's file.
//
// write() never blocks and never fails. What one write() got stands together in the output. Up to
// the limit waits in memory. Then full() says so, and whoever writes should wait for room; or, with
// Overflow::drop, whole lines are dropped, the oldest first, and counted. A regular file is written
// on the file thread, so that a file system that hangs holds up nothing but those who write to it.
//
// What an operator should know is told in one line each: a reader that has gone or a full disk
// (once; what cannot be written is dropped, and nobody is killed: main ignores SIGPIPE), a reader
// that does not keep up (once), and how many lines were dropped. Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/output/output_plan.h"
#include "agent/output/output_target.h"
#include "base/error.h"
#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

class Console {
  public:
    static constexpr std::size_t kLimit = std::size_t{64} << 20;
    struct Options {
        std::size_t limit = kLimit;
        Overflow overflow = Overflow::block;
        // How long it has to be full without taking a byte before that is told.
        Duration patience{0};
        // How long one who holds it may let the others wait without a byte.
        Duration pause = std::chrono::seconds{5};
    };
    // Always later, from the loop; never from within write().
    using Tell = std::function<void(const Error&)>;

    // `fd` is borrowed and duplicated. `name` is for the sentences: "stdout".
    Console(boost::asio::io_context& io, FileThread& files, int fd, std::string name, Tell tell,
            Options options);
    // A file of ours.
    Console(boost::asio::io_context& io, FileThread& files, UniqueFd file, std::string name,
            Tell tell, Options options);
    // A file gets what waits for it; what waits for anything else is lost.
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    // `who` may be none; see hold().
    void write(std::string bytes, const void* who = nullptr);
    // For one whose line is too long to be kept: what others write waits until release(). When half
    // of the limit waits behind it, or the line has not grown for 5 s, it is ended, holds() is false
    // from then on, and the others go on. False: another holds it, or lines are to be dropped.
    bool hold(const void* who);
    bool holds(const void* who) const;
    void release(const void* who);
    std::size_t waiting() const;  // bytes not yet written
    bool full() const;            // as much waits as should: stop reading for it
    // Called once, when half of the limit is free again (later, from the loop). Only while full().
    void when_room(std::function<void()> callback);
    // For the very end: writes on, without the loop, until nothing waits or nothing has been taken
    // for `patience`. Returns how many bytes are lost.
    std::size_t flush(Duration patience);

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
