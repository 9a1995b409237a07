// Reads what one worker prints (two pipes, or pseudo terminals where ddprun has a terminal), copies
// it to the console and to files, and keeps its last lines for reports and its newest text for who
// reads along (recent_output.h).
//
// On the console, lines have the worker's prefix and are never torn. A line that is longer than 32
// MiB has the console to itself as long as the others can wait (Console::hold). With an empty
// prefix (one worker) bytes pass as they come. The worker's own files get every byte, without
// prefix. The file of the filters, which all ranks share, gets whole lines.
//
// If a destination is full, the pipes that lead to it are not read until it has room. Only then a
// worker waits in its write().
//
// A pipe is read as soon as bytes arrive, and then not for half a millisecond. So a worker that
// prints all the time does not wake ddprun with each line. All pipes share each turn of the loop
// (turn_budget.h), and the memory for unfinished lines.
//
// Thread: the loop's. Owner: the worker set, one object for each worker and generation. The
// consoles must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/output/console.h"
#include "agent/output/prefixed_lines.h"
#include "agent/output/recent_output.h"
#include "base/error.h"
#include "base/loop/turn_budget.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

// The destinations of one stream. Each of them may be missing.
struct StreamRoute {
    Console* console = nullptr;
    std::string prefix;     // for each line on the console; empty: none
    std::size_t index = 0;  // of the worker, among those whose lines are collapsed
    // The stream is a terminal of this size, not a pipe. Only where the console has a window() and
    // the stream goes nowhere else.
    std::optional<WindowSize> window;
    std::unique_ptr<Console> file;  // the worker's own file
    Console* filtered = nullptr;    // receives lines that contain one of `needles`
    std::vector<std::string> needles;
    std::string filtered_prefix;
    // Called once, when a line had to be cut at so many bytes. May be empty.
    std::function<void(std::size_t bytes)> cut;
    // Called once, when so many bytes have come without a pause (flood_watch.h). May be empty.
    std::function<void(std::size_t bytes)> flood;
    // Grows by each byte that is read; if empty, nobody counts.
    std::shared_ptr<std::int64_t> printed;
    // Shared with the other streams; if empty, this stream has its own.
    std::shared_ptr<LineBudget> lines;
    std::shared_ptr<TurnBudget> turns;
};

class WorkerOutput {
  public:
    // The pipe ends for the worker. Close them (destroy this) after Keeper::spawn().
    struct ChildEnds {
        UniqueFd out, err;
    };

    WorkerOutput(boost::asio::io_context& io, StreamRoute out, StreamRoute err);
    WorkerOutput(WorkerOutput&&) noexcept;
    WorkerOutput& operator=(WorkerOutput&&) noexcept;
    // Stops reading.
    ~WorkerOutput();

    // Makes the pipes and begins to read. Possible errors: internal (no descriptors left).
    Result<ChildEnds> open();

    // Call when the worker has exited: takes what is in the pipes now, and passes on an unfinished
    // last line. It does not wait for the end of the pipes, because a process that the worker has
    // left running may hold them open; what this process prints still comes.
    void settle();
    // Call when nothing of the generation is left: settles, and closes the pipes.
    void finish();

    // The terminal shows what is typed for this worker, and the \n at its end: the row of its
    // prompt will be over when it prints again.
    void is_typed_for();
    // Takes what the worker has written until now.
    void read_now();
    // The terminals of its streams, if there are any, get the present size of ddprun's. Returns
    // whether there are any.
    bool resize();

    // The last lines of both streams, in the order in which they arrived: 20 (LastLines::kCount),
    // or as many as were asked for.
    std::vector<std::string> tail() const;
    // Keeps so many lines from now on.
    void keep_lines(std::size_t count);
    // The newest text, for who reads it along. It ends with finish(), or with this object.
    std::shared_ptr<RecentOutput> recent() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
