// Asking the servers of workers, played by threads on Unix sockets.
#include "diagnosis/recorder/recorder_sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/system/boot_clock.h"
#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

class RecorderSockets : public testing::Test {
  protected:
    RecorderSockets() {
        // Longer than the address of a socket may be.
        folder_ = testing::TempDir() + "recorders_" + std::to_string(::getpid()) + "/" +
                  std::string(120, 'x');
        std::filesystem::create_directories(folder_);
    }
    ~RecorderSockets() override {
        for (std::thread& each : threads_) each.join();
        std::filesystem::remove_all(std::filesystem::path(folder_).parent_path());
    }

    // Answers one request with this, in pieces, and keeps the request.
    void serve(const std::string& name, const std::string& reply, std::string* asked = nullptr) {
        auto listening = std::make_shared<UniqueFd>(bound(name));
        threads_.emplace_back([listening, reply, asked] {
            const UniqueFd socket(::accept(listening->get(), nullptr, nullptr));
            char request[1000];
            const ssize_t got = ::recv(socket.get(), request, sizeof request, 0);
            if (asked && got > 0) asked->assign(request, static_cast<std::size_t>(got));
            for (std::size_t sent = 0; sent < reply.size();) {
                const ssize_t more =
                    ::send(socket.get(), reply.data() + sent,
                           std::min<std::size_t>(reply.size() - sent, 3000), MSG_NOSIGNAL);
                if (more <= 0) return;
                sent += static_cast<std::size_t>(more);
            }
        });
    }
    UniqueFd bound(const std::string& name) {
        const std::filesystem::path before = std::filesystem::current_path();
        std::filesystem::current_path(folder_);
        UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{AF_UNIX, {}};
        std::strcpy(address.sun_path, name.c_str());
        EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(socket.get(), 5), 0);
        std::filesystem::current_path(before);
        return socket;
    }
    std::vector<std::string> ask(const std::vector<RecorderQuestion>& questions,
                                 Duration patience = std::chrono::seconds{20}) {
        return ask_recorders(folder_, questions, patience, 100'000);
    }

    std::string folder_;
    std::vector<std::thread> threads_;
};

TEST_F(RecorderSockets, EachAnswersItsQuestion) {
    std::string asked;
    const std::string large(90'000, 'a');
    serve("0_0", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":1}", &asked);
    serve("0_1", "HTTP/1.1 200 OK\r\n\r\n" + large);
    EXPECT_THAT(ask({{"0_0", "fr_trace_json"}, {"0_1", "fr_trace_json"}}),
                ElementsAre("{\"a\":1}", large));
    for (std::thread& each : threads_) each.join();
    threads_.clear();
    EXPECT_TRUE(asked.starts_with("POST /handler/fr_trace_json HTTP/1.0\r\n")) << asked;
    EXPECT_TRUE(asked.ends_with("\r\n\r\n"));
}

// An older PyTorch has another server, a worker may not have opened any, and anything may listen.
TEST_F(RecorderSockets, WhatIsNoAnswerIsEmpty) {
    serve("old", "HTTP/1.1 404 Not Found\r\n\r\nHandler nosuch not found");
    serve("rude", "");
    serve("long", "HTTP/1.1 200 OK\r\n\r\n" + std::string(200'000, 'a'));
    serve("header", "HTTP/1.1 200 OK\r\n" + std::string(50'000, 'a') + "\r\n\r\nb");
    serve("bare", "HTTP/1.1\r\n\r\n");
    serve("late", "HTTP/1.1\r\n\r\n 200 b");
    serve("noise", std::string(500, '\0') + "\r\n\r\nb");
    EXPECT_THAT(ask({{"old", "a"},
                     {"rude", "a"},
                     {"long", "a"},
                     {"header", "a"},
                     {"bare", "a"},
                     {"late", "a"},
                     {"noise", "a"},
                     {"none", "a"},
                     {std::string(200, 'n'), "a"}}),
                ElementsAre("", "", "", "", "", "", "", "", ""));
    EXPECT_THAT(ask_recorders(folder_ + "/none", {{"a", "a"}}, milliseconds{10}, 10),
                ElementsAre(""));
}

// A stopped worker: the kernel still takes the connection.
TEST_F(RecorderSockets, WhoDoesNotAnswerDelaysNobodyFurther) {
    const UniqueFd stopped = bound("stopped");
    serve("0_0", "HTTP/1.1 200 OK\r\n\r\nb");
    const Time before = boot_now();
    EXPECT_THAT(ask({{"stopped", "a"}, {"0_0", "a"}}, milliseconds{300}), ElementsAre("", "b"));
    EXPECT_GE(boot_now() - before, milliseconds{300}) << "it waits for as long as it may";
}

}  // namespace
}  // namespace ddprun::agent
