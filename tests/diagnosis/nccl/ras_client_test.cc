// Asking RAS, played by threads on sockets of this host.
#include "diagnosis/nccl/ras_client.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/system/boot_clock.h"
#include "base/system/unique_fd.h"
#include "diagnosis/nccl/ras_address.h"
#include "diagnosis/nccl/ras_reader.h"
#include "ras_double.h"

namespace ddprun::agent {
namespace {

using namespace test;
using std::chrono::seconds;
using testing::HasSubstr;

PlayedJob job_with_one_behind() {
    return {{{"127.0.0.1", 71}, {"127.0.0.1", 72}, {"127.0.0.1", 73}},
            {{0xabc, {0, 1, 2}, {{"AllReduce", {641, 640, 641}}}}}};
}

class RasClient : public testing::Test {
  protected:
    ~RasClient() override {
        for (std::thread& each : threads_) each.join();
    }
    // A socket that listens on the port of this test, as each process of a job has one.
    UniqueFd listen() {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port_);
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd.get(), 64), 0);
        socklen_t size = sizeof address;
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        return fd;
    }
    // Each connection gets what `reply` makes of what was asked, in pieces.
    void serve(std::function<std::string(std::string)> reply, int connections = 1) {
        auto listening = std::make_shared<UniqueFd>(listen());
        threads_.emplace_back([this, listening, reply, connections] {
            for (int i = 0; i < connections; ++i) {
                const UniqueFd socket(::accept(listening->get(), nullptr, nullptr));
                char asked[1000];
                const ssize_t got = ::recv(socket.get(), asked, sizeof asked, 0);
                const std::string text =
                    reply({asked, static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
                for (std::size_t sent = 0; sent < text.size();) {
                    const ssize_t more =
                        ::send(socket.get(), text.data() + sent,
                               std::min<std::size_t>(text.size() - sent, 7000), MSG_NOSIGNAL);
                    if (more <= 0) break;
                    sent += static_cast<std::size_t>(more);
                    sent_ += static_cast<std::size_t>(more);
                }
            }
        });
    }
    Result<std::string> ask(Duration patience = seconds{20}, RasForm form = RasForm::any) const {
        return ask_ras("127.0.0.1:" + std::to_string(port_), patience, form);
    }

    std::uint16_t port_ = 0;
    std::atomic<std::size_t> sent_ = 0;
    std::vector<std::thread> threads_;
};

TEST_F(RasClient, NewVersionsAnswerJson) {
    const PlayedJob job = job_with_one_behind();
    serve([&](const std::string& lines) { return ras_replies(job, PlayedVersion::v2_29, lines); });
    EXPECT_EQ(ask().value(), ras_json(job));
}

// The error of SET FORMAT is not part of the answer.
TEST_F(RasClient, OldOnesAnswerText) {
    const PlayedJob job = job_with_one_behind();
    serve([&](const std::string& lines) { return ras_replies(job, PlayedVersion::v2_24, lines); });
    EXPECT_EQ(ask().value(), ras_text(job, PlayedVersion::v2_24));
}

TEST_F(RasClient, PeopleMayAskForText) {
    const PlayedJob job = job_with_one_behind();
    serve([&](const std::string& lines) { return ras_replies(job, PlayedVersion::v2_29, lines); });
    EXPECT_THAT(ask(seconds{20}, RasForm::text).value(), HasSubstr("Job summary"));
}

TEST_F(RasClient, NobodyListens) {
    { const UniqueFd gone = listen(); }
    const auto answer = ask();
    EXPECT_EQ(answer.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(answer.error().sentence(), HasSubstr("is not there: Connection refused"));
}

// One process of the job is stopped; the kernel gives it some of the connections.
TEST_F(RasClient, AStoppedProcessIsPassedOver) {
    const PlayedJob job = job_with_one_behind();
    const UniqueFd stopped = listen();
    auto alive = std::make_shared<UniqueFd>(listen());
    std::atomic<bool> done = false;
    threads_.emplace_back([&] {
        pollfd wait{alive->get(), POLLIN, 0};
        while (!done) {
            if (::poll(&wait, 1, 20) <= 0) continue;
            const UniqueFd socket(::accept(alive->get(), nullptr, nullptr));
            char asked[1000];
            const ssize_t got = ::recv(socket.get(), asked, sizeof asked, 0);
            if (got <= 0) continue;
            const std::string text =
                ras_replies(job, PlayedVersion::v2_29, {asked, static_cast<std::size_t>(got)});
            (void)::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
        }
    });
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask());
    done = true;
}

TEST_F(RasClient, TooLateIsNoAnswer) {
    const UniqueFd stopped = listen();
    const Time before = boot_now();
    EXPECT_EQ(ask(std::chrono::milliseconds{1500}).error().code(), ErrorCode::timed_out);
    EXPECT_LT(boot_now() - before, seconds{10});
}

TEST_F(RasClient, AnotherProgramIsNoRas) {
    serve([](const std::string&) { return std::string("HTTP/1.1 400 Bad Request\r\n\r\n"); });
    EXPECT_EQ(ask().error().code(), ErrorCode::malformed);
}

TEST_F(RasClient, MoreThan16MiBAreNotRead) {
    serve([](const std::string& lines) {
        return ras_replies({}, PlayedVersion::v2_27, lines) + std::string(18 << 20, ' ');
    });
    EXPECT_THAT(ask().error().sentence(), HasSubstr("more than 16 MiB"));
}

// Any program of the user may listen there. The kernel's buffers hold some MiB.
TEST_F(RasClient, AFloodWithoutALineIsNotRead) {
    constexpr std::size_t kFlood = std::size_t{24} << 20;
    serve([](const std::string&) { return std::string(kFlood, 'x'); });
    EXPECT_THAT(ask().error().sentence(), HasSubstr("does not answer as NCCL does"));
    for (std::thread& each : threads_) each.join();
    threads_.clear();
    EXPECT_LT(sent_, kFlood / 2);
}

TEST_F(RasClient, HalfAnAnswerIsNotRead) {
    const PlayedJob job = job_with_one_behind();
    serve([&](const std::string& lines) {
        const std::string all = ras_replies(job, PlayedVersion::v2_29, lines);
        return all.substr(0, all.size() / 2);
    });
    const auto answer = ask();
    ASSERT_TRUE(answer);
    EXPECT_FALSE(read_ras_answer(answer.value()));
}

TEST_F(RasClient, OneThatClosesAlwaysIsGivenUp) {
    serve([](const std::string&) { return std::string(); }, 3);
    EXPECT_EQ(ask().error().code(), ErrorCode::closed);
}

TEST(RasAddress, IsAnAddressAndAPort) {
    for (const char* good : {"127.0.0.1:28028", "localhost:1", "[::1]:28028", "0.0.0.0:65535"})
        EXPECT_TRUE(RasAddress::parse(good)) << good;
    for (const char* bad : {"", "28028", ":28028", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000",
                            "127.0.0.1:1x", "::1:28028", "[::1:28028", "n17:28028"})
        EXPECT_FALSE(RasAddress::parse(bad)) << bad;
    EXPECT_EQ(ask_ras("n17", seconds{1}).error().code(), ErrorCode::malformed);
}

}  // namespace
}  // namespace ddprun::agent
