// One fork server: a Python process that has imported what the workers import, and forks them.
//
//   constructor   a probe: the interpreter with the bootstrap, but without the script
//                 → the server: the workers' own command line with the bootstrap → `ready`
//   fork()        the workers of a generation; the keeper adopts each of them
//
// The server is a child of the keeper, which spares it when it sweeps. It never runs the script: if
// the probe has not answered, it is not started.
//
// Every step has a time limit. What goes wrong ends the server, with a reason; workers that have
// been requested get an error then, and none of them runs.
//
// Thread: the loop's. Owner: WarmStarts.
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

#include "agent/workers/python_command.h"
#include "keeper/keeper.h"
#include "warm/channel.h"

namespace ddprun::agent::warm {

// A worker to be forked.
struct WarmWorker {
    std::vector<std::string> environment;
    std::string record;  // file for the record of its imports
    std::vector<int> cpus;
    struct Fd {
        int number;  // in the worker
        int fd;      // borrowed during fork()
    };
    std::vector<Fd> fds;  // those that are missing among 0, 1 and 2 are /dev/null
    Keeper::SpawnCallback done;
};

WarmWorker warm_worker(const WorkerStart& start, const std::string& record,
                       Keeper::SpawnCallback done);

class ForkServer {
  public:
    struct Wanted {
        PythonCommand command;
        WorkerStart start;   // argv, environment without bootstrap, stdin, limits, CPUs
        std::string folder;  // of the bootstrap
        std::set<std::string> rank_variables;
        Words plan;  // payload of `import`
    };
    struct Events {
        // What the constructor or import() has asked for is imported. `modules`: how many there
        // are, as a number. `partly`: why the workers import more than it has; empty: they do not.
        std::function<void(const std::string& modules, const std::string& partly)> ready;
        // It is at its end: another server must stop before this import.
        std::function<void(const std::string& import, const std::string& why)> again;
        // It is at its end: no server can be had, or this one has died. Follows "because".
        std::function<void(const std::string& reason)> ended;
    };
    // Callbacks never run inside a call; they may destroy this object.
    ForkServer(boost::asio::io_context& io, Keeper& keeper, Wanted wanted, Events events);
    ~ForkServer();
    ForkServer(const ForkServer&) = delete;
    ForkServer& operator=(const ForkServer&) = delete;

    bool ready() const { return state_ == State::ready; }
    // Only when ready. Each worker is answered as by Keeper::spawn(); with the error `unavailable`
    // none of them runs, and the server is at its end.
    void fork(std::vector<WarmWorker> workers);
    // Ends it. Workers that are being forked are answered with this error, and never run.
    void stop(const Error& error);
    bool forking() const { return state_ == State::forking; }
    // Imports more. It is not ready until that is done.
    void import(Words plan);
    // The keeper has reaped a process. Returns whether it was of this object.
    bool exited(std::int64_t pid);
    std::int64_t pid() const { return pid_; }

  private:
    enum class State { probing, starting, importing, ready, forking, over };
    struct Forking {
        WarmWorker worker;
        UniqueFd release;
    };

    void start(const char* mode, std::vector<std::string> argv);
    void on_words(const Words& words);
    void on_end();
    void probed();
    void forked(const Words& words);
    void go_to(State state, Duration limit);
    void fail(const std::string& reason);
    void fail_later(const std::string& reason);
    void kill();

    boost::asio::io_context& io_;
    Keeper& keeper_;
    Wanted wanted_;
    Events events_;
    State state_ = State::probing;
    std::unique_ptr<Channel> channel_;
    boost::asio::steady_timer limit_;
    std::int64_t pid_ = 0;
    UniqueFd pidfd_;
    std::vector<std::int64_t> past_;  // processes of this object that have not been reaped yet
    std::vector<Forking> forking_;
    int forks_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ddprun::agent::warm
