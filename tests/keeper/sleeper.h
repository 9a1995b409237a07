// A process that plays one which a dead ddprun has left.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace ddprun::agent {

// A process with these variables, which would live for long.
struct Sleeper {
    pid_t pid = -1;
    explicit Sleeper(std::vector<std::string> environment) {
        std::string program = "sleep", time = "300";
        char* const argv[] = {program.data(), time.data(), nullptr};
        std::vector<char*> variables;
        for (std::string& each : environment) variables.push_back(each.data());
        variables.push_back(nullptr);
        EXPECT_EQ(::posix_spawn(&pid, "/bin/sleep", nullptr, nullptr, argv, variables.data()), 0);
    }
    ~Sleeper() {
        if (pid <= 0) return;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    // Only after it was killed. It is given ten seconds to end.
    bool was_killed() {
        siginfo_t ended{};
        for (int i = 0; i < 1000 && ended.si_pid == 0; ++i) {
            if (i > 0) ::usleep(10'000);
            if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | WNOHANG) != 0)
                return false;
        }
        if (ended.si_pid == 0) return false;
        int status = 0;
        const bool reaped = ::waitpid(pid, &status, 0) == pid;
        pid = -1;
        return reaped && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    }
    bool lives() const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }
};

}  // namespace ddprun::agent
