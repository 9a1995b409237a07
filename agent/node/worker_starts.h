// How the workers of each generation are started. This class starts all of them cold, by the
// keeper; the product of warm starts overrides it (warm/warm_starts.h).
//
//   furnish()    once, on the file thread: files that workers need
//   begin()      a generation
//   spawn()      each of its workers, in this turn of the loop
//   progressed(), ended(), exited(): what is known of them
//
// Thread: the loop's, but for furnish(). Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/parts/warm_mode.h"
#include "base/loop/file_thread.h"
#include "keeper/keeper.h"

namespace ddprun::agent {

class WorkerStarts {
  public:
    struct Job {
        warm::Mode mode = warm::Mode::off;
        bool needs_bootstrap = false;  // cold workers get the bootstrap in any case
        WorkerStart worker;            // an example, without pipes
        // Variables in its environment that are others as soon as the node has a place.
        std::set<std::string> placed;
        int workers = 1, cpus = 1;  // on this node
    };
    struct Calls {
        std::function<void(const std::string&)> info, debug;  // lines of the log
    };
    explicit WorkerStarts(Keeper& keeper) : keeper_(keeper) {}
    virtual ~WorkerStarts() = default;
    WorkerStarts(const WorkerStarts&) = delete;
    WorkerStarts& operator=(const WorkerStarts&) = delete;

    // What the temporary folder needs before the first worker; may be empty.
    virtual std::function<void(const std::string& temporary)> furnish() const { return {}; }
    // `temporary`: the job's temporary folder; empty if there is none. `cold`: the leader wants a
    // cold start.
    virtual void begin(const std::string& /*temporary*/, bool /*cold*/) {}
    // As Keeper::spawn(). Or, after cancel(), with the error `refused`.
    virtual void spawn(const WorkerStart& start, Keeper::SpawnCallback done) {
        keeper_.spawn(start, std::move(done));
    }
    // The workers are being stopped: those that have not started will not.
    virtual void cancel() {}
    // All workers are dead, and no spawn will be answered.
    virtual void keeper_died() {}
    // A worker has reported progress, or all of the job have met.
    virtual void progressed() {}
    // Why a cold start would differ from this worker's warm one, as its error file says; none: it
    // says nothing like that. Then all later starts are cold.
    virtual std::optional<std::string> difference(const std::string& /*error*/) {
        return std::nullopt;
    }
    // Whether the workers of this generation are not started cold.
    virtual bool is_warm() const { return false; }
    // The generation ends; `failed`: not because all workers have succeeded or were stopped. `met`:
    // all workers of the job had met.
    virtual void ended(bool /*failed*/, bool /*met*/) {}
    // The keeper has reaped a process. Returns whether it is a helper of these starts, and not a
    // worker.
    virtual bool exited(std::int64_t /*pid*/) { return false; }
    // The loop is about to end.
    virtual void close() {}

  protected:
    Keeper& keeper_;
};

using MakeWorkerStarts = std::unique_ptr<WorkerStarts> (*)(boost::asio::io_context& loop,
                                                           Keeper& keeper, FileThread& files,
                                                           WorkerStarts::Job job,
                                                           WorkerStarts::Calls calls);

}  // namespace ddprun::agent
