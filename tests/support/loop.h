// What the shell tests share: a loop that is run until a condition holds or a deadline passes, a
// folder that goes away, and a service with its listener.
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

// Whether the condition came true; each handler is followed by a look.
inline bool run_until(asio::io_context& loop, const std::function<bool()>& condition,
                      std::chrono::seconds within = std::chrono::seconds{20}) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
        loop.restart();
        if (loop.run_one_until(deadline) == 0 && std::chrono::steady_clock::now() >= deadline)
            return condition();
        if (loop.stopped() && !condition()) {  // nothing is left that could make it true
            loop.restart();
            if (loop.poll() == 0 && !condition()) return false;
        }
    }
    return true;
}

// Runs everything that is ready now.
inline void settle(asio::io_context& loop) {
    loop.restart();
    loop.poll();
}

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

inline tcp::acceptor listener(asio::io_context& loop) {
    return tcp::acceptor(loop, {asio::ip::address_v4::loopback(), 0});
}

// Log lines as they came.
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
