// What one worker prints: two pipes, read on the loop, copied to the console and to its files, and
// its last lines kept.
//
// On the console, lines carry the worker's prefix and are not torn: one that is longer than 32 MiB
// has the console to itself, as long as the others can wait (Console::hold). With an empty prefix
// (one worker) bytes pass as they come. Files get every byte, without prefix; the file of
// the filters, which all ranks share, gets whole lines. When one of these has as much waiting as it
// may hold, the pipes that go to it are not read until it has room: then, and only then, a worker
// waits in its write.
//
// A pipe is read as soon as something comes, and then not for half a millisecond, so that a worker
// that prints all the time wakes nobody with each line.
//
// Thread: the loop's. Owner: the worker set, one for each worker and generation; the consoles must
// outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/output/console.h"
#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {

// Where one of the two streams goes: any of these, or none.
struct StreamRoute {
    Console* console = nullptr;
    std::string prefix;             // of each line there; empty: none
    std::unique_ptr<Console> file;  // the worker's own
    Console* filtered = nullptr;    // lines with one of `needles` in them
    std::vector<std::string> needles;
    std::string filtered_prefix;
    // Told once, when one of its lines had to be cut; may be empty.
    std::function<void()> cut;
};

class WorkerOutput {
  public:
    // The ends for the worker; close them (let this go) after Keeper::spawn.
    struct ChildEnds {
        UniqueFd out, err;
    };

    WorkerOutput(boost::asio::io_context& io, StreamRoute out, StreamRoute err);
    WorkerOutput(WorkerOutput&&) noexcept;
    WorkerOutput& operator=(WorkerOutput&&) noexcept;
    ~WorkerOutput();  // stops reading

    // Makes the pipes and begins to read. Possible errors: internal (no descriptors left).
    Result<ChildEnds> open();

    // The worker has exited: takes what is in the pipes now, passes on an unfinished last line,
    // closes. It does not wait for the end of the pipes, which a process that the worker left
    // behind may hold.
    void finish();

    // The last 20 lines of both streams, in the order they came.
    std::vector<std::string> tail() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ddprun::agent
