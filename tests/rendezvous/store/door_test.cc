// Connections from another host, whose member is asked whose they are (door.h). The other host is a
// network namespace of a thread, so that it has an address that is not ours. The test plays the
// member. As root, where namespaces are to be had.
#include "rendezvous/store/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <future>
#include <set>

#include "tests/rendezvous/store/loopback.h"

namespace ddprun::store {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using test::kLong;
using test::Loopback;
using test::Raw;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

const std::string kGreeting = encode({Operation::validate, {}, {}, 0});
const std::string kPing = kGreeting + encode({Operation::ping, {}, {}, 7});
const std::string kPong = nonce_reply(ConnectionId(), 7).bytes;
const std::string kAdd = kGreeting + encode({Operation::add, {"/n"}, {}, 1});
const OwnerQuestions::Said kOurs{Whose::ours, 0};

bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

// A host with the address 10.7.0.2, on a cable to this process, which has 10.7.0.1.
class OtherHost {
  public:
    // Runs there, and waits for the end.
    template <class What>
    auto on(What what) {
        std::packaged_task<decltype(what())()> task(std::move(what));
        auto result = task.get_future();
        {
            const std::lock_guard lock(mutex_);
            task_ = [&task] { task(); };
        }
        changed_.notify_all();
        return result.get();
    }
    // Null: no namespaces to be had.
    static OtherHost* get() {
        static OtherHost* const host = make();
        return host;
    }

  private:
    static OtherHost* make() {
        if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) return nullptr;
        static OtherHost host;
        const std::string id = std::to_string(host.id_.get_future().get());
        const bool up =
            run("ip link set lo up && ip link add here type veth peer name there netns " + id +
                " && ip addr add 10.7.0.1/24 dev here && ip link set here up") &&
            host.on(
                [] { return run("ip addr add 10.7.0.2/24 dev there && ip link set there up"); });
        return up ? &host : nullptr;
    }
    OtherHost()
        : thread_([this] {
              ::unshare(CLONE_NEWNET);
              id_.set_value(static_cast<int>(::syscall(SYS_gettid)));
              for (;;) {
                  std::unique_lock lock(mutex_);
                  changed_.wait(lock, [this] { return task_ || over_; });
                  if (over_) return;
                  const auto task = std::exchange(task_, nullptr);
                  lock.unlock();
                  task();
              }
          }) {}
    ~OtherHost() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

    std::promise<int> id_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> task_;
    bool over_ = false;
    std::thread thread_;
};

class StoreDoor : public testing::Test {
  protected:
    void SetUp() override {
        other_ = OtherHost::get();
        if (!other_) GTEST_SKIP() << "no network namespaces here";
    }

    // A store on all addresses, with a member on the other host.
    void open(Duration patience = kLong, Limits limits = {}) {
        ServerOptions options;
        options.allowed = std::set{make_address("10.7.0.1"), make_address("10.7.0.2")};
        options.user = ::geteuid();
        options.members = {{"here", {make_address("10.7.0.1")}},
                           {"there", {make_address("10.7.0.2")}}};
        options.patience = patience;
        options.limits = limits;
        options.ask = [this](OwnersAsked asked) {
            const std::lock_guard lock(mutex_);
            asked_.push_back(std::move(asked));
            changed_.notify_all();
        };
        loopback_ = std::make_unique<Loopback>(std::move(options), test::listen_any());
    }
    std::unique_ptr<Raw> from_there() {
        return other_->on([this] { return std::make_unique<Raw>(loopback_->port, "10.7.0.1"); });
    }
    std::unique_ptr<Raw> from_here() { return std::make_unique<Raw>(loopback_->port, "10.7.0.1"); }
    // The next question; the test fails if none comes.
    OwnersAsked question() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kLong, [this] { return !asked_.empty(); })) {
            ADD_FAILURE() << "nobody is asked";
            return {};
        }
        OwnersAsked next = std::move(asked_.front());
        asked_.pop_front();
        return next;
    }
    void answer(const OwnersAsked& question, OwnerQuestions::Said said) {
        loopback_->store->owners_said(
            {question.member, question.number,
             std::vector<OwnerQuestions::Said>(question.sockets.size(), said)});
    }
    // One that is served shows that the store has seen all that came before.
    void expect_served(Raw& client) {
        client.send(kPing);
        EXPECT_EQ(client.receive(4), kPong);
    }

    OtherHost* other_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<OwnersAsked> asked_;
    std::unique_ptr<Loopback> loopback_;
};

TEST_F(StoreDoor, HoldsAConnectionUnreadUntilItsMemberHasSpoken) {
    open();
    const auto worker = from_there();
    worker->send(kAdd);
    const OwnersAsked asked = question();
    EXPECT_EQ(asked.member, 1u);
    ASSERT_THAT(asked.sockets, SizeIs(1));
    EXPECT_EQ(plain_address(asked.sockets[0].first.address()), make_address("10.7.0.2"));
    EXPECT_EQ(plain_address(asked.sockets[0].second.address()), make_address("10.7.0.1"));
    EXPECT_EQ(asked.sockets[0].second.port(), loopback_->port);
    // The member finds it in its own namespace, and here it is not.
    const auto there = other_->on([&] { return SocketUsers().owners(asked.sockets); });
    EXPECT_EQ(there.at(0).kind, SocketUsers::Owner::Kind::user);
    EXPECT_EQ(there.at(0).uid, ::geteuid());
    EXPECT_EQ(SocketUsers().owners(asked.sockets).at(0).kind, SocketUsers::Owner::Kind::not_here);
    // Meanwhile others are served, and it is not.
    const auto neighbour = from_here();
    neighbour->send(kAdd);
    EXPECT_EQ(neighbour->receive(8), number_reply(ConnectionId(), 1).bytes);
    EXPECT_EQ(worker->receive_now(), "");
    answer(asked, kOurs);
    EXPECT_EQ(worker->receive(8), number_reply(ConnectionId(), 2).bytes);
    EXPECT_THAT(loopback_->lines(), SizeIs(0));
}

TEST_F(StoreDoor, RefusesOtherUsersOfOtherHosts) {
    open();
    for (int i = 0; i < 3; ++i) {
        const auto stranger = from_there();
        stranger->send(kAdd);
        const OwnersAsked asked = question();
        answer(asked, {Whose::other, 1001});
        EXPECT_TRUE(stranger->ends());
    }
    ASSERT_THAT(loopback_->lines(), SizeIs(1));
    EXPECT_THAT(loopback_->lines()[0], AllOf(HasSubstr("of user 1001 of node there"),
                                             HasSubstr("--store-allow=10.7.0.2")));
    EXPECT_EQ(loopback_->store->contacts(), 0u);
}

// The stranger has ended its connection, and a worker got the same port: the answer is about the
// worker. What the stranger has sent could still be read.
TEST_F(StoreDoor, WhoHasEndedIsNotServedWhateverIsSaid) {
    open();
    auto stranger = from_there();
    stranger->send(kAdd);
    const OwnersAsked asked = question();
    stranger.reset();
    // Until its end is here, which the kernel of this host says.
    const auto ended = [&] {
        return run("! ss -Htn state established '( sport = :" + std::to_string(loopback_->port) +
                   " )' | grep -q 10.7.0.2");
    };
    for (int i = 0; i < 1000 && !ended(); ++i) ::usleep(20'000);
    answer(asked, kOurs);
    const auto neighbour = from_here();
    neighbour->send(kAdd);
    EXPECT_EQ(neighbour->receive(8), number_reply(ConnectionId(), 1).bytes)
        << "the request of one who has gone was served";
    EXPECT_THAT(loopback_->wait_for_line("had ended before its host said whose it was"),
                HasSubstr("--store-allow=10.7.0.2"));
}

// A member that is frozen, or dies, in the middle of a question.
TEST_F(StoreDoor, ClosesWhoIsNotAnsweredFor) {
    open(std::chrono::milliseconds{300});
    const auto first = from_there(), second = from_there();
    const OwnersAsked asked = question();
    EXPECT_TRUE(first->ends());
    EXPECT_TRUE(second->ends());
    EXPECT_THAT(loopback_->wait_for_line("node there has not said within"),
                HasSubstr("--store-allow=10.7.0.2 admits all users"));
    const auto neighbour = from_here();
    expect_served(*neighbour);
    EXPECT_THAT(loopback_->lines(), SizeIs(1)) << "said once";
    // It goes on, and further connections are asked for. This test itself may be slow, too.
    answer(asked, kOurs);
    bool served = false;
    for (int i = 0; i < 100 && !served; ++i) {
        const auto next = from_there();
        next->send(kPing);
        answer(question(), kOurs);
        served = next->receive(4) == kPong;
    }
    EXPECT_TRUE(served);
}

TEST_F(StoreDoor, TakesByAddressWhatItsMemberDoesNotFind) {
    open();
    for (int i = 0; i < 2; ++i) {
        const auto contained = from_there();
        contained->send(kPing);
        answer(question(), {Whose::not_here, 0});
        EXPECT_EQ(contained->receive(4), kPong);
    }
    ASSERT_THAT(loopback_->lines(), SizeIs(1)) << "said once";
    EXPECT_THAT(loopback_->lines()[0], HasSubstr("by their address, whoever made them"));
}

// Those that wait count as connections: a flood of them leaves descriptors for the others.
TEST_F(StoreDoor, CountsThoseThatWait) {
    Limits limits;
    limits.max_connections = 3;
    open(kLong, limits);
    std::vector<std::unique_ptr<Raw>> waiting;
    for (int i = 0; i < 3; ++i) waiting.push_back(from_there());
    EXPECT_TRUE(from_there()->ends());
    EXPECT_THAT(loopback_->wait_for_line("closed the connection of 10.7.0.2:"),
                HasSubstr("it would be number 4, over the limit of 3"));
}

}  // namespace
}  // namespace ddprun::store
