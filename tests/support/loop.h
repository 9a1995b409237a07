// What the tests with real sockets and processes share: a loop that runs until a condition holds or
// a deadline passes, a folder that is removed with the test, a listener, and the lines of a log.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <filesystem>
#include <functional>

#include "base/log.h"

namespace ddprun {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// Runs the loop until the condition is true, and looks at it after each handler. Returns false
// after 20 s, which no healthy test needs, or as soon as the loop has nothing left that could make
// it true.
inline bool run_until(asio::io_context& loop, const std::function<bool()>& condition,
                      std::chrono::seconds within = std::chrono::seconds{20}) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
        loop.restart();
        if (loop.run_one_until(deadline) == 0 && std::chrono::steady_clock::now() >= deadline)
            return condition();
        // No handler is waiting. One more poll catches what another thread has just posted.
        if (loop.stopped() && !condition()) {
            loop.restart();
            if (loop.poll() == 0 && !condition()) return false;
        }
    }
    return true;
}

// Runs everything that is ready now, and waits for nothing.
inline void settle(asio::io_context& loop) {
    loop.restart();
    loop.poll();
}

// A new folder, removed with all its content at the end.
class Folder {
  public:
    explicit Folder(const std::string& parent = testing::TempDir()) {
        std::string name = parent + "ddprun-test-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        path_ = name;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

// It listens on loopback, at a port that the kernel chooses, so tests that run at the same time do
// not collide.
inline tcp::acceptor listener(asio::io_context& loop) {
    return tcp::acceptor(loop, {asio::ip::address_v4::loopback(), 0});
}

// The log lines of the code under test. What an operator would read is part of what is tested.
struct Lines {
    std::vector<std::string> all;
    Log log() {
        return [this](const Note& note) { all.push_back(note.sentence); };
    }
    bool has(const std::string& part) const {
        for (const std::string& line : all)
            if (line.find(part) != std::string::npos) return true;
        return false;
    }
};

}  // namespace ddprun
