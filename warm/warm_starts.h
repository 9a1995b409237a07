// Starts the workers of each generation: from a fork server if one is ready and may be used, else
// cold, by the keeper. Prepares the server while a generation trains. warm_policy.h decides.
//
// furnish() writes the Python files of the bootstrap. progressed(), ended() and exited() are what
// the policy and the server need to know.
//
// A worker of Python records what it imports of the list. It gets the bootstrap for that. So does
// each one that is to open its flight recorder (bootstrap/_ddprun_recorder.py).
//
// From the second generation on, each cold start is logged with its reason.
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

#include "agent/node/worker_starts.h"
#include "agent/workers/python_command.h"
#include "base/loop/file_thread.h"
#include "keeper/keeper.h"
#include "warm/fork_server.h"
#include "warm/held_start.h"
#include "warm/warm_policy.h"
#include "warm/worker_records.h"

namespace ddprun::agent::warm {

class WarmStarts final : public WorkerStarts {
  public:
    WarmStarts(boost::asio::io_context& io, Keeper& keeper, FileThread& files, Job job,
               Calls calls);
    static std::unique_ptr<WorkerStarts> make(boost::asio::io_context& io, Keeper& keeper,
                                              FileThread& files, Job job, Calls calls) {
        return std::make_unique<WarmStarts>(io, keeper, files, std::move(job), std::move(calls));
    }

    // Empty where no worker can be warm.
    std::function<void(const std::string& temporary)> furnish() const override;
    void begin(const std::string& temporary, bool cold) override;
    void spawn(const WorkerStart& start, Keeper::SpawnCallback done) override;
    void cancel() override;
    void keeper_died() override;
    void progressed() override;
    std::optional<std::string> difference(const std::string& error) override;
    // Whether the workers of this generation are forked from the server.
    bool is_warm() const override { return warm_; }
    void ended(bool failed, bool met) override;
    // Helpers are of the server.
    bool exited(std::int64_t pid) override;
    void close() override;

  private:
    // A worker that a server shall fork, or the keeper starts cold after all.
    struct Waiting {
        HeldStart held;
        std::string record;
        Keeper::SpawnCallback done;
    };

    void say_cold(const std::string& reason);
    void flush();
    void fork_waiting();
    WorkerStart recorded(const WorkerStart& start, const std::string& record) const;
    WorkerStart cold(const WorkerStart& start) const;
    void start_waiting_cold();
    void arm();
    void look();
    void prepare();
    void make_server();
    bool fits() const;
    void drop_server();
    void stay_cold(const std::string& why);
    void on_ready(Time began, const std::string& modules, const std::string& partly);
    void on_server_ended(const std::string& reason);
    Words plan() const;
    std::string record_of(int index) const;

    boost::asio::io_context& io_;
    WarmPolicy policy_;
    std::optional<PythonCommand> command_;  // none: no worker can be warm
    Calls calls_;
    boost::asio::steady_timer timer_;
    Job job_;
    WorkerRecords records_;
    bool speaks_ = false;   // of cold starts: they could be warm
    std::string why_cold_;  // why there is no server; empty: none has been tried yet
    int begun_ = 0;         // generations

    // Of the generation.
    std::string temporary_;  // empty: no bootstrap
    int requested_ = 0;
    bool warm_ = false;          // its workers are forked
    bool starting_ = false;      // and none of them runs yet
    bool tried_ = false;         // to make a server
    std::string reason_;         // if it is cold
    bool failed_early_ = false;  // the last one, after a warm start
    std::vector<Waiting> waiting_;
    std::vector<std::vector<std::string>> environments_;  // of all its workers
    std::optional<WorkerStart> first_;                    // of its first worker

    std::vector<std::string> imported_;     // the records that the server has got
    Words left_out_;                        // of its plan: imports before which a server stops
    int failures_ = 0;                      // of servers that have never been ready, in a row
    std::set<std::string> rank_variables_;  // of the server
    std::vector<std::string> server_environment_, server_argv_;
    std::unique_ptr<ForkServer> server_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::warm
