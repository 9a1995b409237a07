// The calls to members, over real sockets: dormant services of another node answer for sockets of
// this process, with and without a secret; a member that is silent, is lost or comes back.
#include "agent/node/owner_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/loop/file_thread.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"
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
            calls_.emplace(loop_, rendezvous::Hello{"8812", {"gpu01", Incarnation{1}}, "1", 0},
                           secret.empty() ? nullptr : &*secrets_, lines_.log(),
                           [this](const store::OwnersSaid& said) { said_.push_back(said); });
        }
        calls_->begin({{{{"gpu01", Incarnation{1}}, "127.0.0.1", 1}, {"10.0.0.1"}},
                       {{{"gpu02", Incarnation{2}}, "127.0.0.1", port}, {"10.0.0.2"}}});
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
