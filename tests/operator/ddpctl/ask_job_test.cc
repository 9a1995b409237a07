// How long ddpctl waits for a job, and what it says meanwhile (operator/ddpctl/ask_job.h), with
// real sockets on loopback.
#include "operator/ddpctl/ask_job.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

using namespace ddprun;
using namespace ddprun::launcher;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

AskedJob job_at(const std::string& endpoint) {
    const std::string option = "--rdzv-endpoint=" + endpoint;
    auto call = read_call({"stop", option});
    EXPECT_TRUE(call) << call.error();
    auto job = AskedJob::find(*call);
    EXPECT_TRUE(job) << job.error();
    return std::move(*job);
}

// A server that takes each connection and ends it at once.
class Rude {
  public:
    Rude() {
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof any;
        auto* const address = reinterpret_cast<sockaddr*>(&any);
        EXPECT_EQ(::bind(fd_, address, size), 0);
        EXPECT_EQ(::listen(fd_, 16), 0);
        EXPECT_EQ(::getsockname(fd_, address, &size), 0);
        endpoint_ = "127.0.0.1:" + std::to_string(ntohs(any.sin_port));
        thread_ = std::thread([this] {
            for (int one; (one = ::accept(fd_, nullptr, nullptr)) >= 0;) ::close(one);
        });
    }
    ~Rude() {
        ::shutdown(fd_, SHUT_RDWR);  // wakes accept()
        thread_.join();
        ::close(fd_);
    }
    const std::string& endpoint() const { return endpoint_; }

  private:
    const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string endpoint_;
    std::thread thread_;
};

}  // namespace

// A mistyped port, or a job that has ended: no waiting changes it. The patience is longer than the
// test may take.
TEST(AskJob, WhereNobodyListensNobodyWaits) {
    for (const auto then : {AskedJob::NobodyLeads::wait, AskedJob::NobodyLeads::tell}) {
        AskedJob job = job_at("127.0.0.1:1");
        const auto stub = job.connect(1h, then);
        ASSERT_FALSE(stub);
        EXPECT_EQ(stub.error().code(), ErrorCode::closed);
        EXPECT_THAT(stub.error().sentence(),
                    HasSubstr("nobody answers at 127.0.0.1:1 (Connection refused): its ddprun has "
                              "ended"));
    }
}

// Such a job may be about to start, or its leader is busy.
TEST(AskJob, SaysOnceThatItWaits) {
    const Rude rude;
    AskedJob job = job_at(rude.endpoint());
    testing::internal::CaptureStderr();
    const auto stub = job.connect(6s);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_FALSE(stub);
    EXPECT_EQ(stub.error().code(), ErrorCode::unavailable);
    EXPECT_THAT(said, testing::MatchesRegex("ddpctl: [^\n]*; asking again for up to [1-4].0 s\n"));
}
