// What one worker prints: two pipes, read on the loop, copied to the console and to its files, and
// its last lines kept.
//
// On the console, lines carry the worker's prefix and are never torn, however long; with an empty
// prefix (one worker) bytes pass as they come. Files get every byte, without prefix. When a console
// has as much waiting as it may hold, the pipes that go to it are not read until it has room: then,
// and only then, a worker waits in its write.
//
// Thread: the loop's. Owner: the runner, one for each worker and generation; the consoles must
// outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/console.h"
#include "agent/unique_fd.h"
#include "proto/error.h"

namespace ddprun::agent {

// Where one of the two streams goes. Both, one or none may be given.
struct StreamRoute {
    Console* console = nullptr;
    std::string file;  // path; truncated when opened; its directory must exist
};

struct OutputConfig {
    std::string prefix;  // "[default0]:"; empty: none
    StreamRoute out, err;
};

// torchrun's prefix of a line: "[default0]:".
std::string console_prefix(const std::string& role, int local_rank);

class WorkerOutput {
  public:
    // The ends for the worker; close them (let this go) after Keeper::spawn.
    struct ChildEnds {
        UniqueFd out, err;
    };

    // A file that cannot be opened or written is reported once through `warn`, and the worker runs
    // on without it.
    WorkerOutput(boost::asio::io_context& io, OutputConfig config, std::function<void(Error)> warn);
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
