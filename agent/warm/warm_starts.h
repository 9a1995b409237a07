// Starts the workers of each generation: from a fork server if one is ready and may be used, else
// cold, by the keeper. Prepares the server while a generation trains. warm_policy.h decides.
//
//   furnish()    once, on the file thread: the Python files of the bootstrap
//   begin()      a generation
//   spawn()      each of them, in this turn of the loop
//   progressed(), ended(), exited(): what the policy and the server need to know
//
// A cold worker of Python records what it imports. It gets the bootstrap for that. So does each one
// that is to open its flight recorder (bootstrap/_ddprun_recorder.py).
//
// Thread: the loop's, but for furnish(). Owner: the runner.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/keeper/keeper.h"
#include "agent/warm/fork_server.h"
#include "agent/warm/held_start.h"
#include "agent/warm/learnt_imports.h"
#include "agent/warm/warm_policy.h"
#include "base/loop/file_thread.h"

namespace ddprun::agent::warm {

class WarmStarts {
  public:
    struct Job {
        Mode mode = Mode::off;
        bool opens_recorder = false;  // cold workers get the bootstrap in any case
        WorkerStart worker;           // an example, without pipes
        // Variables in its environment that are others as soon as the node has a place.
        std::set<std::string> placed;
        std::map<std::string, std::string> own_environment;  // ddprun's
        int workers = 1, cpus = 1;                           // on this node
    };
    struct Calls {
        std::function<void(const std::string&)> info, debug;  // lines of the log
        // Makes the job's temporary folder, for a server before the first generation.
        std::function<void(std::function<void(const std::string& temporary)>)> make_folder;
    };
    WarmStarts(boost::asio::io_context& io, Keeper& keeper, FileThread& files, Job job,
               Calls calls);

    // What the temporary folder needs before the first worker; empty where no worker can be warm.
    std::function<void(const std::string& temporary)> furnish() const;
    // `temporary`: the job's temporary folder; empty if there is none.
    void begin(const std::string& temporary);
    // As Keeper::spawn(). Or, after cancel(), with the error `refused`.
    void spawn(const WorkerStart& start, Keeper::SpawnCallback done);
    // The workers are being stopped: those that have not started will not.
    void cancel();
    // All workers are dead, and no spawn will be answered.
    void keeper_died();
    void progressed();
    // The generation ends; `failed`: not because all workers have succeeded or were stopped.
    void ended(bool failed);
    // The keeper has reaped a process. Returns whether it is not a worker but of the server.
    bool exited(std::int64_t pid);
    // The loop is about to end.
    void close();

  private:
    // A worker that a server shall fork, or the keeper starts cold after all.
    struct Waiting {
        HeldStart held;
        std::string record;
        Keeper::SpawnCallback done;
    };

    void recall();
    void flush();
    void fork_waiting();
    WorkerStart recorded(const WorkerStart& start, const std::string& record) const;
    WorkerStart cold(const WorkerStart& start) const;
    void start_waiting_cold();
    void arm();
    void read_records(std::function<void()> then);
    void prepare();
    void prepare_to_wait();
    void make_server();
    void import_more();
    bool fits() const;
    void drop_server();
    void remember();
    void on_server_ended(const std::string& reason);
    Words plan(std::size_t first_import) const;
    std::string record_of(int index) const;

    boost::asio::io_context& io_;
    Keeper& keeper_;
    WarmPolicy policy_;
    std::optional<PythonCommand> command_;  // none: no worker can be warm
    Calls calls_;
    boost::asio::steady_timer timer_;
    Job job_;
    const bool crowded_;                     // one import for all workers is quicker than many
    bool begun_ = false;                     // a generation
    Time wait_until_ = kNever;               // if none has begun by then, a server is prepared
    std::unique_ptr<LearntImports> learnt_;  // if workers may be warm

    // Of the generation.
    std::string temporary_;  // empty: no bootstrap
    int requested_ = 0;
    bool warm_ = false;
    bool failed_early_ = false;  // the last one, after a warm start
    std::vector<Waiting> waiting_;
    std::vector<std::vector<std::string>> environments_;  // of all its workers
    std::optional<WorkerStart> first_;                    // of its first worker

    std::size_t imported_ = 0;              // in the server
    int attempts_ = 0;                      // to make this server
    int failures_ = 0;                      // of servers that have never been ready, in a row
    std::set<std::string> rank_variables_;  // of the server
    std::vector<std::string> server_environment_, server_argv_;
    std::unique_ptr<ForkServer> server_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::warm
