// A queue of bytes in front of one output that may be slow: our stdout, our stderr, or a worker's
// file.
//
// write() never blocks and never fails. The bytes of one write() stay together in the output. They
// wait in memory up to a limit. When it is reached, full() is true, and writers should wait for
// room. With Overflow::drop whole lines are dropped instead, the oldest first, and counted. A
// regular file is written on the file thread, so a file system that hangs delays only those who
// write to it.
//
// Each of these is reported to the operator in one line: a reader that has gone or a full disk
// (once; what cannot be written is dropped, and no worker is killed), a reader that is too slow
// (once), and the number of dropped lines. main() must ignore SIGPIPE.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/output/collapsed_lines.h"
#include "agent/output/late_fault.h"
#include "agent/output/output_plan.h"
#include "agent/output/output_target.h"
#include "agent/output/pseudo_terminal.h"
#include "base/error.h"
#include "base/loop/file_thread.h"
#include "base/time.h"

namespace ddprun::agent {

class Console {
  public:
    // Default limit: 64 MiB.
    static constexpr std::size_t kLimit = std::size_t{64} << 20;
    // How much may wait, and what happens then.
    struct Options {
        std::size_t limit = kLimit;
        Overflow overflow = Overflow::block;
        // How long the queue must be full before this is reported.
        Duration patience{0};
        // How long a holder may write nothing while others wait (see hold()).
        Duration pause = std::chrono::seconds{5};
        // Hears what the file thread meets when the Console is gone; may be null.
        std::shared_ptr<LateFault> late = nullptr;
        // If it is a terminal, it shows unfinished lines (window()).
        bool terminal = false;
    };
    // Receives what the operator should know. Called later from the loop, never within write().
    using Tell = std::function<void(const Error&)>;

    // `fd` is borrowed and duplicated. `name` appears in messages, for example "stdout".
    Console(boost::asio::io_context& io, FileThread& files, int fd, std::string name, Tell tell,
            Options options);
    // For a file that this object owns from now on.
    Console(boost::asio::io_context& io, FileThread& files, UniqueFd file, std::string name,
            Tell tell, Options options);
    // What waits for a file is still written, and if that fails, Options::late gets the fault. What
    // waits for anything else is lost; call flush() before.
    ~Console();
    Console(const Console&) = delete;
    Console& operator=(const Console&) = delete;

    // `who` identifies a writer that uses hold(); others need not give it.
    void write(std::string bytes, const void* who = nullptr);
    // With Options::terminal: how large it is now. Nothing where it is no terminal, or was not
    // asked for. Then use write(); else what streams print goes through print() and finish(), and
    // what write() gets must be whole lines (screen.h).
    std::optional<WindowSize> window();
    // `index` of the rank among those of collapse().
    void print(const void* who, std::size_t index, std::string_view prefix, std::string_view bytes);
    void finish(const void* who);
    // The terminal itself has ended the row of this stream.
    void typed(const void* who);
    // From now on a line that several of these ranks print is shown once (collapsed_output.h). Only
    // where there is a window(). Without ranks, each line is shown as it comes.
    void collapse(std::vector<int> ranks, CollapsedLines::Label label);
    // For a writer whose line is too long to be kept in memory. What others write waits until
    // release(). If half of the limit waits behind the line, or the line has not grown for `pause`,
    // the line is ended here and holds() becomes false. Returns false when another writer holds the
    // output, or with Overflow::drop.
    bool hold(const void* who);
    bool holds(const void* who) const;
    void release(const void* who);
    std::size_t waiting() const;  // bytes that are not written yet
    bool full() const;            // the limit is reached: stop reading input for it
    // Calls back once, when half of the limit is free again; later, from the loop. Call it only
    // while full().
    void when_room(std::function<void()> callback);
    // For the end of the process: writes without the loop, until nothing waits, or until nothing
    // was taken for `patience`. Returns the number of bytes that nobody has taken. A full disk is
    // told as always, but within this call.
    std::size_t flush(Duration patience);

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
