// A loop, a real keeper process and everything that it reported, for the tests of the keeper. Waits
// have a condition and a deadline, never a fixed time.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/system/boot_clock.h"
#include "keeper/keeper.h"

namespace ddprun::agent {

// No healthy test waits this long, not even under sanitizers on a loaded machine. When it has
// passed, the test fails instead of hanging.
inline constexpr int kPatienceMs = 30'000;

// A pipe whose writing end goes to processes. It ends when the last of them is gone, so it proves
// that nobody is left. A pid cannot prove this, because it may be in use again.
struct Pipe {
    UniqueFd out, in;  // read, write
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) == 0) out.reset(ends[0]), in.reset(ends[1]);
    }
    // All bytes until every writer has gone. If the end does not come in time: what came, and a
    // failure.
    std::string read_all() {
        in.reset();
        std::string all;
        char buffer[4096];
        for (;;) {
            pollfd wait{out.get(), POLLIN, 0};
            if (::poll(&wait, 1, kPatienceMs) <= 0) {
                ADD_FAILURE() << "the pipe has not ended; so far: " << all;
                return all;
            }
            const ssize_t n = ::read(out.get(), buffer, sizeof buffer);
            if (n <= 0) return all;
            all.append(buffer, static_cast<std::size_t>(n));
        }
    }
    // Waits for one byte. Returns false when none comes in time.
    bool read_byte() {
        pollfd wait{out.get(), POLLIN, 0};
        char byte;
        return ::poll(&wait, 1, kPatienceMs) > 0 && ::read(out.get(), &byte, 1) == 1;
    }
    // Whether every writer has gone and nothing is left to read. It does not wait: the caller
    // states that it is so at this moment.
    bool ended() {
        pollfd now{out.get(), POLLIN, 0};
        return ::poll(&now, 1, 0) > 0 && (now.revents & (POLLHUP | POLLIN)) == POLLHUP;
    }
};

// Plays ddprun: it has a keeper, and counts what the keeper reports. `pids` and `errors` are the
// answers to spawns, in the order of the answers.
struct Bench {
    boost::asio::io_context io;
    Keeper keeper;
    std::map<std::int64_t, int> exits;  // pid → wait status
    int expired = 0, frozen = 0, died = 0;
    std::string how_died;
    std::vector<std::int64_t> pids;
    std::vector<Error> errors;
    std::vector<std::string> order;  // what has come of workers and their signals

    explicit Bench(KeeperOptions options = {}, Duration patience = std::chrono::seconds{5})
        : keeper(std::move(*Keeper::start(options))) {
        KeeperEvents events;
        events.exited = [this](std::int64_t pid, int status, Time) {
            exits[pid] = status;
            order.push_back("exited");
        };
        events.signalled = [this](int signal) {
            order.push_back("signalled");
            ::raise(signal);
        };
        events.expired = [this] { ++expired; };
        events.frozen = [this] { ++frozen; };
        events.died = [this](const std::string& how) {
            ++died;
            how_died = how;
        };
        keeper.attach(io, patience, std::move(events));
    }
    // Each test ends with a sweep that must find an end, so no test leaves a process behind.
    ~Bench() { EXPECT_TRUE(keeper.shutdown()); }

    // Looks at the condition at least each 100 ms, since some conditions depend on a clock or a
    // pipe and not on a handler of the loop.
    bool run_until(const std::function<bool()>& met) {
        const Time give_up = boot_now() + std::chrono::milliseconds{kPatienceMs};
        while (!met() && boot_now() < give_up) {
            io.restart();
            io.run_one_for(std::chrono::milliseconds{100});
        }
        return met();
    }
    void spawn(const WorkerStart& start) {
        keeper.spawn(start, [this](Result<Spawned> result) {
            if (!result) return errors.push_back(result.error());
            pids.push_back(result->pid);
            order.push_back("started");
        });
    }
    // So many spawns have been answered, with a worker or with an error.
    bool answered(std::size_t count) {
        return run_until([&] { return pids.size() + errors.size() >= count; });
    }
    // So many workers have been reaped.
    bool exited(std::size_t count) {
        return run_until([&] { return exits.size() >= count; });
    }
};

// A worker that runs a script. It has no environment but a PATH for basic programs. The rest is the
// default: standard streams at /dev/null, the folder of the test, all CPUs.
inline WorkerStart shell(const std::string& script) {
    WorkerStart start;
    start.argv = {"/bin/sh", "-c", script};
    start.environment = {"PATH=/usr/bin:/bin"};
    return start;
}

}  // namespace ddprun::agent
