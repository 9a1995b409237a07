// A loop, a file thread, a folder and the reported errors, for the tests of what workers print. The
// pipes and files are real; "the operator" is the list of errors.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/output/console.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent {

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
}

// A pipe. The test reads it without waiting, so that it can play a reader that is slow or never
// comes.
struct Ends {
    UniqueFd out, in;  // read, write
    Ends() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) == 0) out.reset(ends[0]), in.reset(ends[1]);
        ::fcntl(out.get(), F_SETFL, O_NONBLOCK);
    }
    // What lies in the pipe now, which may be nothing.
    std::string read_now() {
        std::string all, buffer(1 << 16, '\0');
        for (ssize_t n; (n = ::read(out.get(), buffer.data(), buffer.size())) > 0;)
            all.append(buffer, 0, static_cast<std::size_t>(n));
        return all;
    }
};

// Each test has one: loop, file thread, and a new folder that goes with it.
struct Rig {
    // Longer than any healthy test takes, even under sanitizers. It only turns a hang into a
    // failure.
    static constexpr auto kPatience = std::chrono::seconds{30};

    boost::asio::io_context io;
    std::string folder;
    FileThread files{io};
    std::vector<Error> errors;
    Console::Tell tell = [this](const Error& error) { errors.push_back(error); };

    Rig() {
        // As main does. A reader that has gone must be an error of write().
        ::signal(SIGPIPE, SIG_IGN);
        char name[] = "/tmp/ddprun-output-XXXXXX";
        folder = ::mkdtemp(name);
    }
    ~Rig() { std::filesystem::remove_all(folder); }

    std::string path(const std::string& name) const { return folder + "/" + name; }
    // The file has O_APPEND, as the log files of workers: two descriptors for it do not overwrite
    // each other's text.
    UniqueFd file(const std::string& name) const {
        return UniqueFd(
            ::open(path(name).c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
    }
    // A console on a borrowed descriptor, as ddprun's own stdout is. Without options: a limit of 64
    // MiB, and writers wait when it is reached.
    std::unique_ptr<Console> console(int fd, Console::Options options = {}) {
        return std::make_unique<Console>(io, files, fd, "stdout", tell, options);
    }
    // A console that owns its file, as a worker's log file does.
    std::unique_ptr<Console> log_file(const std::string& name) {
        return std::make_unique<Console>(io, files, file(name), name, tell, Console::Options{});
    }
    // Runs whatever is ready now.
    void run() {
        io.restart();
        io.poll();
    }
    template <class Condition>
    bool run_until(Condition condition) {
        const Time give_up = boot_now() + kPatience;
        while (!condition()) {
            if (boot_now() > give_up) return false;
            io.restart();
            // 1 ms: conditions also depend on the file thread and on pipes, which wake no handler.
            io.run_one_for(std::chrono::milliseconds{1});
        }
        return true;
    }
    // What stands in a file once the file thread has done all its work.
    std::string written(Console& console, const std::string& name) {
        EXPECT_EQ(console.flush(kPatience), 0U);
        return slurp(path(name));
    }
    // Plays a worker that prints: writes the bytes to its pipe and runs the loop in between, since
    // the bytes may not fit. At the end the loop has read them all.
    void feed(int fd, std::string_view bytes) {
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        EXPECT_TRUE(run_until([&] {
            const ssize_t n = ::write(fd, bytes.data(), bytes.size());
            if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
            return bytes.empty();
        }));
        await_read(fd);
    }
    // Runs the loop until it has taken everything that lies in the pipe. A writing end cannot be
    // asked how much that is, so the pipe is opened once more for reading.
    void await_read(int fd) {
        EXPECT_TRUE(run_until([&] {
            int bytes = 0;
            const std::string name = "/proc/self/fd/" + std::to_string(fd);
            const UniqueFd other(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
            return ::ioctl(other.get(), FIONREAD, &bytes) == 0 && bytes == 0;
        }));
    }
};

}  // namespace ddprun::agent
