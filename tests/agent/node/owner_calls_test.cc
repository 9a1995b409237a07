// The calls to members, over real sockets: dormant services of another node answer for sockets of
// this process, with and without a secret; a member that is silent, is lost or comes back.
#include "agent/node/owner_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/loop/file_thread.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/link.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"
#include "rendezvous/wire/wire.h"
#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using rendezvous::NodeId;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kSecret = "a secret of all nodes", kOther = "a secret of others only";

// A node on "another host", with a dormant service. Port 0: any.
struct Member {
    Member(asio::io_context& loop, FileThread& files, const std::string& secret,
           std::uint16_t port = 0)
        : ledger(loop), secrets(loop, files, {rendezvous::IdentityMode::automatic, secret, ""}) {
        rendezvous::MachineConfig config;
        config.run_id = "8812";
        config.self = id;
        config.limits.max_nodes = 2;
        tcp::acceptor acceptor(loop);
        acceptor.open(tcp::v4());
        acceptor.set_option(tcp::acceptor::reuse_address(true));
        acceptor.bind({asio::ip::address_v4::loopback(), port});
        acceptor.listen();
        at = acceptor.local_endpoint().port();
        service.emplace(
            loop, std::move(acceptor), config, ledger, lines.log(),
            [](const rendezvous::Ending&) {}, secret.empty() ? nullptr : &secrets);
        service->listen();
    }
    NodeId id{"gpu02", Incarnation{2}};
    rendezvous::LedgerMemory ledger;
    Lines lines;
    rendezvous::Secrets secrets;
    std::uint16_t at = 0;
    std::optional<rendezvous::Service> service;
};

class OwnerCallsTest : public testing::Test {
  protected:
    // This node, with another one that is called at this port.
    void begin(const std::string& secret, std::uint16_t port) {
        if (!calls_) {
            secrets_.emplace(
                loop_, files_,
                rendezvous::IdentityConfig{rendezvous::IdentityMode::automatic, secret, ""});
            open(secret.empty() ? nullptr : &*secrets_, std::chrono::seconds{20});
        }
        calls_->begin({{{{"gpu01", Incarnation{1}}, "127.0.0.1", 1}, {"10.0.0.1"}},
                       {{{"gpu02", Incarnation{2}}, "127.0.0.1", port}, {"10.0.0.2"}}});
    }
    void open(rendezvous::Secrets* secrets, Duration patience) {
        calls_.emplace(loop_, rendezvous::Hello{"8812", {"gpu01", Incarnation{1}}, "1", 0}, secrets,
                       patience, lines_.log(),
                       [this](const store::OwnersSaid& said) { said_.push_back(said); });
    }
    // Asks whose our own connection is, and one that does not exist.
    void ask(std::int64_t number) {
        calls_->ask({1,
                     number,
                     {{socket_.local_endpoint(), socket_.remote_endpoint()},
                      {{asio::ip::make_address("192.0.2.1"), 1}, socket_.remote_endpoint()}}});
    }
    void expect_answer(std::int64_t number) {
        ASSERT_TRUE(run_until(loop_, [&] { return !said_.empty(); })) << "no answer";
        EXPECT_EQ(said_[0].member, 1u);
        EXPECT_EQ(said_[0].number, number);
        ASSERT_THAT(said_[0].owners, SizeIs(2));
        EXPECT_EQ(said_[0].owners[0].whose, Whose::ours);
        EXPECT_EQ(said_[0].owners[1].whose, Whose::not_here);
        said_.clear();
    }
    void SetUp() override { socket_.connect(acceptor_.local_endpoint()); }

    asio::io_context loop_;
    FileThread files_{loop_};
    tcp::acceptor acceptor_ = listener(loop_);
    tcp::socket socket_{loop_};
    Lines lines_;
    std::optional<rendezvous::Secrets> secrets_;
    std::vector<store::OwnersSaid> said_;
    std::optional<OwnerCalls> calls_;
};

TEST_F(OwnerCallsTest, AMemberAnswersForTheSocketsOfItsHost) {
    for (const std::string& secret : {kSecret, std::string()}) {
        calls_.reset();
        Member member(loop_, files_, secret);
        begin(secret, member.at);
        ask(7);
        expect_answer(7);
        // A new generation of the same ddprun needs no new call.
        const std::size_t connections = member.service->connections();
        EXPECT_EQ(connections, 1u);
        begin(secret, member.at);
        ask(8);
        expect_answer(8);
        EXPECT_EQ(member.service->connections(), connections);
        calls_.reset();
        EXPECT_TRUE(run_until(loop_, [&] { return member.service->connections() == 0; }));
    }
}

// Somebody else has the port. What he would say is never heard.
TEST_F(OwnerCallsTest, WhoHasNotTheSecretIsNotBelieved) {
    Member stranger(loop_, files_, kOther);
    begin(kSecret, stranger.at);
    ask(7);
    EXPECT_TRUE(run_until(loop_, [&] { return lines_.has("does not have the secret"); }));
    EXPECT_THAT(said_, IsEmpty());
    // And one without any proof.
    calls_.reset();
    Member open(loop_, files_, "");
    begin(kSecret, open.at);
    ask(8);
    EXPECT_TRUE(run_until(loop_, [&] { return lines_.has("asks for no proof"); }));
    EXPECT_THAT(said_, IsEmpty());
}

// The member dies in the middle of the question; another ddprun starts at the same port. Nobody
// listens in between.
TEST_F(OwnerCallsTest, AQuestionIsRepeatedWhenTheConnectionIsLost) {
    auto silent = listener(loop_);
    const std::uint16_t port = silent.local_endpoint().port();
    begin(kSecret, port);
    tcp::socket caller(loop_);
    bool accepted = false;
    silent.async_accept(caller, [&](boost::system::error_code) { accepted = true; });
    ASSERT_TRUE(run_until(loop_, [&] { return accepted; }));
    ask(7);
    settle(loop_);
    caller.close();
    silent.close();
    for (int i = 0; i < 20; ++i) loop_.run_one_for(std::chrono::milliseconds{20});
    EXPECT_THAT(said_, IsEmpty());
    Member member(loop_, files_, kSecret, port);
    expect_answer(7);
}

// The end that the member has of the connection to it.
int accepted_at(std::uint16_t port) {
    for (int fd = 3; fd < 1024; ++fd) {
        sockaddr_in ours{}, peer{};
        socklen_t size = sizeof ours, peer_size = sizeof peer;
        if (::getsockname(fd, reinterpret_cast<sockaddr*>(&ours), &size) == 0 &&
            ntohs(ours.sin_port) == port &&
            ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0)
            return fd;
    }
    return -1;
}

// A connection that was silent for days is forgotten on the way: packets are dropped, and nobody
// says so. A new one is taken.
TEST_F(OwnerCallsTest, AConnectionThatIsDeadIsMadeAgain) {
    Member member(loop_, files_, "");
    open(nullptr, std::chrono::seconds{2});
    begin("", member.at);
    ask(7);
    expect_answer(7);
    sock_filter drop_all{BPF_RET | BPF_K, 0, 0, 0};
    const sock_fprog filter{1, &drop_all};
    const int fd = accepted_at(member.at);
    ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
    // Of a question that is open too long nobody waits for the answer. So it is asked again.
    for (int number = 8; said_.empty() && number < 20; ++number) {
        ask(number);
        run_until(
            loop_, [this] { return !said_.empty(); }, std::chrono::seconds{3});
    }
    EXPECT_THAT(said_, SizeIs(1));
}

// Nobody listens, and nobody waits for the answer any more.
TEST_F(OwnerCallsTest, AMemberThatIsGoneIsNotCalledForEver) {
    std::uint16_t port = 0;
    {
        auto gone = listener(loop_);
        port = gone.local_endpoint().port();
    }
    open(nullptr, std::chrono::milliseconds{300});
    begin("", port);
    ask(7);
    loop_.restart();
    loop_.run_for(std::chrono::seconds{20});
    EXPECT_TRUE(loop_.stopped()) << "it still calls";
    EXPECT_THAT(said_, IsEmpty());
}

// It answers the call with something else, and stays. It must not keep its place among the calls.
TEST_F(OwnerCallsTest, WhoAnswersNonsenseIsLeft) {
    auto stranger = listener(loop_);
    open(nullptr, std::chrono::seconds{20});
    begin("", stranger.local_endpoint().port());
    tcp::socket socket(loop_);
    bool accepted = false, ended = false;
    stranger.async_accept(socket, [&](boost::system::error_code) { accepted = true; });
    ASSERT_TRUE(run_until(loop_, [&] { return accepted; }));
    const auto link = std::make_shared<rendezvous::Link>(
        std::move(socket), 1 << 20,
        rendezvous::Link::Handlers{[](std::string_view) {}, [&](const Error&) { ended = true; }});
    link->start(Duration{0});
    link->send(rendezvous::encode(rendezvous::ToNode(rendezvous::Owners{1, {}})));
    EXPECT_TRUE(run_until(loop_, [&] { return ended; }));
}

// A hundred members that take connections and say nothing: few are called at the same time, and a
// question is not held up by the early calls.
TEST_F(OwnerCallsTest, FewAreCalledAtTheSameTime) {
    auto silent = listener(loop_);
    std::vector<rendezvous::StoreCaller> members;
    for (int i = 0; i < 100; ++i) {
        const std::string n = std::to_string(i);
        members.push_back(
            {{{"gpu" + n, Incarnation{1}}, "127.0.0.1", silent.local_endpoint().port()},
             {"10.0.0." + n}});
    }
    std::vector<tcp::socket> accepted;
    std::function<void()> accept = [&] {
        silent.async_accept([&](boost::system::error_code error, tcp::socket socket) {
            if (error) return;
            accepted.push_back(std::move(socket));
            accept();
        });
    };
    accept();
    open(nullptr, std::chrono::seconds{20});
    calls_->begin(members);
    const auto called = [&](std::size_t count) {
        EXPECT_TRUE(run_until(loop_, [&] { return accepted.size() >= count; }));
        settle(loop_);
        EXPECT_THAT(accepted, SizeIs(count));
    };
    called(OwnerCalls::kEarlyCalls);
    for (std::size_t i = 1; i < members.size(); ++i) calls_->ask({i, 1, {}});
    called(OwnerCalls::kCalls);
    // The end of one makes room for the next one.
    accepted.front().close();
    EXPECT_TRUE(run_until(loop_, [&] { return accepted.size() > OwnerCalls::kCalls; }));
    silent.close();
}

// The question of a generation that has ended is not answered.
TEST_F(OwnerCallsTest, ANewGenerationForgetsTheQuestionsOfTheOld) {
    Member member(loop_, files_, kSecret);
    begin(kSecret, member.at);
    ask(1);
    expect_answer(1);
    calls_->ask({1, 1, {}});
    begin(kSecret, member.at);
    // The store of the new generation counts from 1, too. The old answer has another length.
    ask(1);
    expect_answer(1);
    settle(loop_);
    EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace ddprun::agent
