// A folder of programs that stands first in PATH during a test: munge and unmunge as scripts that
// play a part, or the real ones with a munged of the test's own.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/loop.h"

namespace ddprun::rendezvous {

// Changes PATH of this process and puts it back. One at a time.
class Programs {
  public:
    Programs() : path_(::getenv("PATH")) {
        // The real munged may run as another user and needs to get in.
        ::chmod((folder_ / "").c_str(), 0755);
        ::setenv("PATH", ((folder_ / "") + ":" + path_).c_str(), 1);
    }
    ~Programs() { ::setenv("PATH", path_.c_str(), 1); }
    // A shell script with this text.
    void script(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
        EXPECT_EQ(::chmod((folder_ / name).c_str(), 0755), 0);
    }
    // A munge whose credentials hold their payload in the open. Both programs note each call.
    // unmunge reports code 17, "decoded before", because that is the usual case on a host with
    // several nodes.
    void plain_munge() {
        script("munge", "echo x >>" + asked("munge") + "; echo MUNGE:$(cat):");
        script("unmunge", "echo x >>" + asked("unmunge") +
                              "; printf 'STATUS: 17\\nUID: %s\\n\\n' $(id -u)"
                              "; sed 's/^MUNGE://; s/:$//' | tr -d '\\n'; exit 17");
    }
    // 6: munged does not run.
    void no_munge() { script("munge", "exit 6"); }
    // The file in which the script notes its calls, a line each.
    std::string asked(const std::string& name) const { return folder_ / (name + ".asked"); }
    int times_asked(const std::string& name) const {
        std::ifstream file(asked(name));
        int times = 0;
        for (std::string line; std::getline(file, line);) ++times;
        return times;
    }
    std::string operator/(const std::string& name) const { return folder_ / name; }

  private:
    Folder folder_;
    std::string path_;
};

// The real programs with a real munged of their own key, so that a test needs no service of the
// host. Not running where the package is missing.
class RealMunge {
  public:
    explicit RealMunge(Programs& programs) {
        if (::access("/usr/sbin/munged", X_OK) != 0) return;
        const std::string socket = programs / "socket";
        // A key of 1024 bytes, which munged accepts only if nobody else can read it.
        std::ofstream(programs / "key") << std::string(1024, 'k');
        ::chmod((programs / "key").c_str(), 0600);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::freopen("/dev/null", "w", stderr);
            ::execl("/usr/sbin/munged", "munged", "--foreground", "--force",
                    ("--key-file=" + (programs / "key")).c_str(), ("--socket=" + socket).c_str(),
                    ("--pid-file=" + (programs / "pid")).c_str(),
                    ("--seed-file=" + (programs / "seed")).c_str(), nullptr);
            ::_exit(127);
        }
        for (const std::string name : {"munge", "unmunge"})
            programs.script(name, "exec /usr/bin/" + name + " --socket=" + socket + " \"$@\"");
        // munged is ready when its socket exists.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        while (::access(socket.c_str(), F_OK) != 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    ~RealMunge() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    // False also if munged has refused to start.
    bool is_running() const { return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }

  private:
    pid_t pid_ = -1;
};

}  // namespace ddprun::rendezvous
