// Connections from another host, whose member is asked whose they are (door.h). The other host is a
// network namespace of a thread, so that it has an address that is not ours. The test plays the
// member. As root, where namespaces are to be had.
#include "store/door/door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <deque>
#include <future>

#include "store/door/held_back_end.h"
#include "tests/store/loopback.h"

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
const SocketOwner kOurs{Whose::ours, 0};

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
    static constexpr uid_t kWorker = 12345;
    void SetUp() override {
        other_ = OtherHost::get();
        if (!other_) GTEST_SKIP() << "no network namespaces here";
    }

    // A store on all addresses, with a member on the other host.
    void open(Duration patience = kLong, Limits limits = {}, uid_t user = ::geteuid()) {
        ServerOptions options;
        options.who.members = {{"here", {make_address("10.7.0.1")}},
                               {"there", {make_address("10.7.0.2")}}};
        options.who.user = user;
        options.who.patience = patience;
        options.limits = limits;
        options.who.ask = [this](OwnersAsked asked) {
            const std::lock_guard lock(mutex_);
            asked_.push_back(std::move(asked));
            changed_.notify_all();
        };
        loopback_ = std::make_unique<Loopback>(std::move(options), test::listen_any());
    }
    std::unique_ptr<Raw> from_there() {
        return other_->on([this] { return std::make_unique<Raw>(loopback_->port, "10.7.0.1"); });
    }
    // With a socket of the test's own; one that is open already lives there.
    void connect_there(tcp::socket& socket) {
        other_->on([&] {
            socket.connect({make_address("10.7.0.1"), loopback_->port});
            return true;
        });
    }
    std::unique_ptr<Raw> from_here() { return std::make_unique<Raw>(loopback_->port, "10.7.0.1"); }
    // The next question; the test fails if none comes.
    OwnersAsked question() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kLong, [this] { return !asked_.empty(); })) {
            ADD_FAILURE() << "nobody is asked";
            return {};
        }
        return take_question();
    }
    std::optional<OwnersAsked> question_now() {
        const std::lock_guard lock(mutex_);
        if (asked_.empty()) return std::nullopt;
        return take_question();
    }
    // What the member says, which looks in its own namespace.
    SocketOwner who_there(const OwnersAsked& asked) {
        return other_->on([&] { return SocketUsers(::geteuid()).owners(asked.sockets); }).at(0);
    }
    void answer(const OwnersAsked& question, SocketOwner said) {
        loopback_->store->owners_said({question.member, question.number,
                                       std::vector<SocketOwner>(question.sockets.size(), said)});
    }
    // One that is served shows that the store has seen all that came before.
    void expect_served(Raw& client) {
        client.send(kPing);
        EXPECT_EQ(client.receive(4), kPong);
    }

    // Programs of a user that connect, count a key up, and end at once; as many as `times`.
    void last_words(uid_t user, int times) {
        const pid_t child = ::fork();
        ASSERT_NE(child, -1);
        if (child == 0) {
            if (::setuid(user) != 0) ::_exit(1);
            for (int i = 0; i < times; ++i) Raw(loopback_->port, "10.7.0.1").send(kAdd);
            ::_exit(0);
        }
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
    }
    // Whether this kernel keeps the user of a socket that its process has closed (Linux 6.17).
    bool keeps_users() {
        tcp::acceptor acceptor(loop_, {make_address("127.0.0.1"), 0});
        hold_back_end(acceptor.native_handle());
        const std::uint16_t port = acceptor.local_endpoint().port();
        const pid_t child = ::fork();
        if (child == 0) {
            if (::setuid(kWorker) != 0) ::_exit(1);
            tcp::socket(loop_, tcp::v4()).connect({make_address("127.0.0.1"), port});
            ::_exit(0);
        }
        ::waitpid(child, nullptr, 0);
        tcp::endpoint peer;
        const tcp::socket accepted = acceptor.accept(peer);
        return SocketUsers(kWorker).owner(peer, accepted.local_endpoint()).whose == Whose::ours;
    }

    OwnersAsked take_question() {
        OwnersAsked next = std::move(asked_.front());
        asked_.pop_front();
        return next;
    }

    OtherHost* other_ = nullptr;
    boost::asio::io_context loop_;
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
    EXPECT_EQ(who_there(asked), kOurs);
    EXPECT_EQ(SocketUsers(::geteuid()).owners(asked.sockets).at(0).whose, Whose::not_here);
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

// The stranger has aborted its connection, and a worker got the same port: the answer is about the
// worker. What the stranger has sent could still be read.
TEST_F(StoreDoor, WhoHasEndedIsNotServedWhateverIsSaid) {
    open();
    tcp::socket stranger(loop_);
    connect_there(stranger);
    boost::asio::write(stranger, boost::asio::buffer(kAdd));
    const OwnersAsked asked = question();
    stranger.set_option(boost::asio::socket_base::linger(true, 0));
    stranger.close();
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

// A rank that dies writes why, and is gone before the store has looked at its connection. Where the
// kernel still knows whose it was, all of it counts.
TEST_F(StoreDoor, AppliesLastWordsOfTheJobsUser) {
    if (!keeps_users()) GTEST_SKIP() << "this kernel forgets whose a closed socket was";
    open(kLong, {}, kWorker);
    constexpr int kTimes = 100;
    last_words(kWorker, kTimes);
    last_words(kWorker + 1, 3);
    const auto neighbour = from_here();  // root comes in, too; what came before has been accepted
    expect_served(*neighbour);
    for (int i = 0; i < 1000 && loopback_->store->contacts() < kTimes + 1; ++i) ::usleep(20'000);
    neighbour->send(encode({Operation::add, {"/n"}, {}, 1}));
    EXPECT_EQ(neighbour->receive(8), number_reply(ConnectionId(), kTimes + 1).bytes);
    EXPECT_THAT(loopback_->wait_for_line("of user 12346"), HasSubstr("of this host"));
    EXPECT_THAT(loopback_->lines(), SizeIs(1));
}

// The same from another host, whose member is asked when the worker has gone.
TEST_F(StoreDoor, AppliesLastWordsFromAnotherHost) {
    if (!keeps_users()) GTEST_SKIP() << "this kernel forgets whose a closed socket was";
    open();
    tcp::socket worker(loop_);
    other_->on([&] {
        ::syscall(SYS_setresuid, -1, kWorker, -1);  // this thread only
        worker.open(tcp::v4());
        ::syscall(SYS_setresuid, -1, 0, -1);
        return true;
    });
    connect_there(worker);
    boost::asio::write(worker, boost::asio::buffer(kAdd));
    worker.close();
    const OwnersAsked asked = question();
    ::usleep(200'000);  // by then a kernel has confirmed an end that nothing holds back
    const SocketOwner said =
        other_->on([&] { return SocketUsers(kWorker).owners(asked.sockets); }).at(0);
    EXPECT_EQ(said, kOurs);
    answer(asked, said);
    const auto neighbour = from_here();
    for (int i = 0; i < 1000 && loopback_->store->contacts() < 1; ++i) ::usleep(20'000);
    neighbour->send(kAdd);
    EXPECT_EQ(neighbour->receive(8), number_reply(ConnectionId(), 2).bytes);
}

// What is lost is told each time, with what had been sent; a connection that said nothing is not.
TEST_F(StoreDoor, TellsEachThatIsLost) {
    open();
    for (int i = 0; i < 3; ++i) {
        auto gone = from_there();
        if (i != 1) gone->send(kAdd);
        const OwnersAsked asked = question();
        gone.reset();
        answer(asked, {Whose::gone, 0});
    }
    loopback_->wait_for_line("had ended before its host said whose it was");
    const auto neighbour = from_here();
    expect_served(*neighbour);
    ASSERT_THAT(loopback_->lines(), SizeIs(2));
    EXPECT_THAT(loopback_->lines()[1],
                HasSubstr(std::to_string(kAdd.size()) + " bytes that it had sent are lost"));
}

// A client that has said all still gets its answer. One that is gone has no owner.
TEST_F(StoreDoor, ServesWhoHasOnlyEndedItsSendingHalf) {
    open();
    tcp::socket half(loop_);
    connect_there(half);
    boost::asio::write(half, boost::asio::buffer(kAdd));
    half.shutdown(tcp::socket::shutdown_send);
    const OwnersAsked asked = question();
    EXPECT_EQ(who_there(asked), kOurs);
    answer(asked, kOurs);
    std::string reply(8, '\0');
    boost::asio::read(half, boost::asio::buffer(reply));
    EXPECT_EQ(reply, number_reply(ConnectionId(), 1).bytes);
    auto gone = from_there();
    const OwnersAsked next = question();
    gone.reset();
    EXPECT_EQ(who_there(next).whose, Whose::gone);
}

// A stranger on the other host, whose socket is bound to the interface there. Nobody needs a
// privilege for that, and the kernel finds such a socket only by the interface.
TEST_F(StoreDoor, NamesWhoIsBoundToAnInterface) {
    open();
    constexpr int kStranger = 65534;
    tcp::socket bound(loop_);
    other_->on([&] {
        // This thread only. The user of a socket is who made it.
        ::syscall(SYS_setresuid, -1, kStranger, -1);
        bound.open(tcp::v4());
        ::syscall(SYS_setresuid, -1, 0, -1);
        return ::setsockopt(bound.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, "there", 6);
    });
    connect_there(bound);
    const OwnersAsked asked = question();
    EXPECT_EQ(who_there(asked), (SocketOwner{Whose::other, kStranger}));
}

// A link-local address is one only together with its interface, which only its own host knows.
TEST_F(StoreDoor, NamesWhoHasALinkLocalAddress) {
    if (!run("ip addr add fe80::1/64 dev here nodad") ||
        !other_->on([] { return run("ip addr add fe80::2/64 dev there nodad"); }))
        GTEST_SKIP() << "no IPv6 here";
    tcp::acceptor acceptor(loop_, {tcp::v6(), 0});
    tcp::socket worker(loop_);
    other_->on([&] {
        worker.connect({make_address("fe80::1%there"), acceptor.local_endpoint().port()});
        return true;
    });
    tcp::endpoint peer;
    const tcp::socket accepted = acceptor.accept(peer);
    const Ends ends{{plain_address(peer.address()), peer.port()},
                    {plain_address(make_address("fe80::1")), acceptor.local_endpoint().port()}};
    EXPECT_EQ(plain_address(peer.address()), make_address("fe80::2"));
    EXPECT_EQ(who_there({1, 1, {ends}}), kOurs);
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
    // It goes on, and further connections are asked for. This test itself may be slow, too: then a
    // connection is closed, and its question is not the newest.
    answer(asked, kOurs);
    bool served = false;
    for (int i = 0; i < 100 && !served; ++i) {
        const auto next = from_there();
        next->send(kPing);
        OwnersAsked newest = question();
        while (auto newer = question_now()) newest = *newer;
        answer(newest, kOurs);
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

// Whose kernel has no memory left is not taken for a container.
TEST_F(StoreDoor, ClosesWhoseOwnerCouldNotBeSaid) {
    open();
    for (int i = 0; i < 2; ++i) {
        const auto worker = from_there();
        answer(question(), {Whose::failed, 0});
        EXPECT_TRUE(worker->ends());
    }
    ASSERT_THAT(loopback_->lines(), SizeIs(1)) << "said once";
    EXPECT_THAT(loopback_->lines()[0], HasSubstr("the kernel of node there could not say whose"));
}

// A stranger keeps more connections open than may wait, while the member answers all the time.
TEST_F(StoreDoor, SaysOnceThatThereIsACrowd) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    open();
    std::deque<std::unique_ptr<Raw>> crowd;
    for (std::size_t i = 0; i < OwnerQuestions::kMostWaiting; ++i) crowd.push_back(from_there());
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(from_there()->ends());
        // Makes room for some, which is taken at once.
        const OwnersAsked asked = question();
        answer(asked, {Whose::other, 1001});
        for (std::size_t one = 0; one < asked.sockets.size(); ++one) {
            EXPECT_TRUE(crowd.front()->ends());
            crowd.pop_front();
        }
        while (crowd.size() < OwnerQuestions::kMostWaiting) crowd.push_back(from_there());
    }
    ASSERT_THAT(loopback_->lines(), SizeIs(2));
    EXPECT_THAT(loopback_->lines()[0], HasSubstr("1024 connections from there wait until node"));
    EXPECT_THAT(loopback_->lines()[1], HasSubstr("of user 1001"));
}

// The store is stopped; a member's answer is still on its way.
TEST_F(StoreDoor, AnAnswerAfterTheEndDoesNothing) {
    WhoMayEnter who;
    who.members = {{"here", {make_address("10.7.0.1")}}, {"there", {make_address("10.7.0.2")}}};
    who.user = ::geteuid();
    std::vector<OwnersAsked> asked;
    who.ask = [&](OwnersAsked one) { asked.push_back(std::move(one)); };
    int admitted = 0;
    Door door(
        loop_.get_executor(), std::move(who), [](const std::string&) {},
        [&](tcp::socket, const tcp::endpoint&) { ++admitted; });
    tcp::acceptor acceptor(loop_, {make_address("10.7.0.1"), 0});
    const auto worker = other_->on(
        [&] { return std::make_unique<Raw>(acceptor.local_endpoint().port(), "10.7.0.1"); });
    tcp::endpoint peer;
    tcp::socket accepted = acceptor.accept(peer);
    door.take(std::move(accepted), peer);
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_EQ(door.waiting(), 1u);
    door.close();
    EXPECT_TRUE(worker->ends());
    door.owners_said({1, asked[0].number, {kOurs}});
    loop_.poll();
    EXPECT_EQ(admitted, 0);
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
