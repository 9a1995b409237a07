// The gate over real sockets: only a caller with the job's secret gets through, and a node obeys
// only a leader with it. Also garbage, floods, and MUNGE with real programs where they are
// installed.
#include "rendezvous/service/gate.h"

#include <gmock/gmock.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include "base/system/boot_clock.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/ledger/ledger_memory.h"
#include "rendezvous/link/client.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"
#include "tests/rendezvous/examples.h"
#include "tests/rendezvous/munge_programs.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// As with --secret-file: this secret, no MUNGE, no folder.
IdentityConfig given(const std::string& secret) { return {IdentityMode::automatic, secret, ""}; }
const std::string kSecret = "a secret of all nodes", kOther = "a secret of others only";

// A leader's side: a port, the gate behind it, and who came through. It answers each admitted node
// with a Welcome and keeps what the node says. `room` is how many unknown callers the gate takes at
// a time.
struct Door {
    Door(asio::io_context& loop, const IdentityConfig& config, std::size_t room = 8)
        : files(loop),
          secrets(loop, files, config),
          acceptor(listener(loop)),
          gate(&secrets, {{"gpu00", Incarnation{1000}}, room}, lines.log(),
               [this](std::shared_ptr<Link> link, ToLeader first) {
                   // As the service does: larger frames and no time limit from now on.
                   link->promote(kNodeFrameLimit, {[this](std::string_view body) {
                                                       got.push_back(*decode_to_leader(body));
                                                   },
                                                   [this](const Error& why) { ended = why; }});
                   link->send(encode(examples_to_node()[0]));
                   admitted.push_back(std::get<Hello>(first).node.name);
                   links.push_back(std::move(link));
               }) {
        accept();
    }
    // A link keeps itself alive until it is over, and its handlers refer to this door.
    ~Door() {
        for (const auto& link : links) link->drop();
    }
    // Counts the callers; the tests wait for a node that calls again.
    void accept() {
        acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
            if (error) return;
            ++accepted;
            gate.take(std::move(socket));
            accept();
        });
    }
    std::uint16_t port() { return acceptor.local_endpoint().port(); }

    Lines lines;
    FileThread files;
    Secrets secrets;
    tcp::acceptor acceptor;
    int accepted = 0;
    std::vector<std::string> admitted;
    std::vector<std::shared_ptr<Link>> links;
    std::vector<ToLeader> got;
    std::optional<Error> ended;
    Gate gate;
};

// A real node's side: the client with its own secrets.
struct Node {
    Node(asio::io_context& loop, const IdentityConfig& config, const std::string& name = "gpu01")
        : id{name, Incarnation{std::hash<std::string>{}(name)}},
          files(loop),
          secrets(loop, files, config),
          client(loop, lines.log(),
                 {[](const std::string&) {}, [this](const ToNode& one) { got.push_back(one); },
                  [this](const Error& why) { lost = why; }},
                 &secrets) {}
    void call(std::uint16_t port, Time deadline = kNever) {
        client.connect({{"127.0.0.1", port}}, Hello{"8812", id, "0.1.0", 0}, deadline);
    }
    bool is_welcome() const { return !got.empty() && std::holds_alternative<Welcome>(got[0]); }
    // The sentence with which the node was refused; empty: it was not.
    std::string refusal() const {
        const auto* refused = got.empty() ? nullptr : std::get_if<Refused>(&got[0]);
        return refused ? refused->sentence : "";
    }
    NodeId id;
    Lines lines;
    FileThread files;
    Secrets secrets;
    std::vector<ToNode> got;
    std::optional<Error> lost;
    Client client;
};

// A socket that sends what the test wants, and keeps the frames that it receives. So a test can
// break the handshake at each step, which the real client never does.
struct Stranger {
    Stranger(asio::io_context& loop, std::uint16_t port) : socket(loop), reader(kLeaderFrameLimit) {
        socket.connect({asio::ip::address_v4::loopback(), port});
        read();
    }
    void read() {
        socket.async_read_some(asio::buffer(piece),
                               [this](boost::system::error_code error, std::size_t size) {
                                   reader.add({piece, size});
                                   while (auto body = reader.next().value())
                                       frames.push_back(*body);
                                   if (error)
                                       ended = true;
                                   else
                                       read();
                               });
    }
    // The gate may have closed the connection already; the test sees that in `ended`.
    void say(const std::string& bytes) {
        boost::system::error_code gone;
        asio::write(socket, asio::buffer(bytes), gone);
    }
    // A Hello with a nonce of the test's choice: what a real node sends first.
    void hello(const std::string& name, std::string nonce = std::string(kNonceSize, 'n')) {
        say(std::string(kPreface) +
            frame(encode_opening(Hello{"8812", {name, Incarnation{7}}, "0.1.0", 0}, nonce)));
    }
    // The leader's Challenge, if that is what came first.
    std::optional<Challenge> challenge() const {
        if (frames.empty()) return {};
        const auto word = decode_leader_word(frames[0]);
        return word && std::holds_alternative<Challenge>(*word)
                   ? std::optional(std::get<Challenge>(*word))
                   : std::nullopt;
    }
    // The sentence of the last frame, if that is a Refused.
    std::string refusal() const {
        if (frames.empty()) return "";
        const auto message = decode_to_node(frames.back());
        const auto* refused = message ? std::get_if<Refused>(&*message) : nullptr;
        return refused ? refused->sentence : "";
    }
    tcp::socket socket;
    FrameReader reader;
    char piece[4096];
    std::vector<std::string> frames;
    bool ended = false;
};

// What both sides have seen of a Stranger's handshake, for a proof made by hand.
Transcript transcript_of(const std::string& name, const Challenge& challenge) {
    return {
        "8812",         0, {name, Incarnation{7}}, challenge.leader, std::string(kNonceSize, 'n'),
        challenge.nonce};
}

// Both sides have the secret. The node is welcome, and every message passes in both directions
// under its seal. So does the final message that a keeper writes after its ddprun is dead.
TEST(Gate, AdmitsWhoHasTheSecret) {
    asio::io_context loop;
    Door door(loop, given(kSecret));
    Node node(loop, given(kSecret));
    node.call(door.port());
    ASSERT_TRUE(run_until(loop, [&] { return node.is_welcome(); })) << door.lines.all.size();
    EXPECT_THAT(door.admitted, testing::ElementsAre("gpu01"));
    for (const ToLeader& message : examples_to_leader()) node.client.send(message);
    door.links[0]->send(encode(examples_to_node()[1]));
    ASSERT_TRUE(run_until(loop, [&] {
        return door.got.size() == examples_to_leader().size() && node.got.size() == 2;
    }));
    EXPECT_EQ(door.got, examples_to_leader());
    EXPECT_EQ(node.got[1], examples_to_node()[1]);
    // Prepared while the link is up, and written to a duplicate of its socket, as the keeper does
    // it.
    const std::string gone = node.client.gone_frame(node.id);
    const int socket = ::dup(node.client.native_handle());
    ASSERT_EQ(::write(socket, gone.data(), gone.size()), static_cast<ssize_t>(gone.size()));
    ::close(socket);
    ASSERT_TRUE(run_until(loop, [&] { return door.got.back() == ToLeader(Gone{node.id}); }));
}

// The node has another secret. Node and leader both say so: the user sees either log. The node goes
// on calling, because anybody on the leader's port could refuse it.
TEST(Gate, RefusesAnotherSecretByName) {
    asio::io_context loop;
    Door door(loop, given(kSecret));
    Node node(loop, given(kOther));
    node.call(door.port());
    ASSERT_TRUE(run_until(loop, [&] { return door.accepted > 3; }));
    EXPECT_EQ(node.refusal(), "");
    EXPECT_TRUE(node.lines.has("node gpu01 does not have the secret"));
    EXPECT_EQ(node.lines.all.size(), 1u) << "said once, however often it calls";
    EXPECT_TRUE(door.lines.has("node gpu01 does not have the secret"));
    // The service has never heard of it.
    EXPECT_TRUE(door.admitted.empty());
}

// The other direction. A stranger has got hold of the leader's port. It must not make a node start
// a program, neither with a wrong proof nor without asking for one. The node goes on calling.
TEST(Gate, ANodeObeysNobodyWithoutTheSecret) {
    asio::io_context loop;
    Node node(loop, given(kSecret));
    tcp::acceptor fake(loop, {asio::ip::address_v4::loopback(), 0});
    std::vector<std::shared_ptr<tcp::socket>> sockets;
    int calls = 0;
    std::function<void()> accept = [&] {
        fake.async_accept([&](boost::system::error_code error, tcp::socket socket) {
            if (error) return;
            sockets.push_back(std::make_shared<tcp::socket>(std::move(socket)));
            // A Challenge without credential and file means --secret-file.
            const Challenge challenge{
                1, {"gpu00", Incarnation{1}}, std::string(kNonceSize, 'l'), "", ""};
            const std::string proof = frame(encode_leader_proof({std::string(kProofSize, 'x')}));
            const std::string welcome = frame(encode(examples_to_node()[0]));
            // In turn: a Challenge with a proof right behind it, a proof without a Challenge, a
            // bare Welcome.
            const std::string says = ++calls % 3 == 0 ? welcome
                                     : calls % 3 == 1 ? frame(encode(challenge)) + proof + welcome
                                                      : proof + welcome;
            boost::system::error_code gone;
            asio::write(*sockets.back(), asio::buffer(std::string(kPreface) + says), gone);
            accept();
        });
    };
    accept();
    node.call(fake.local_endpoint().port());
    // Each of the three has come twice.
    ASSERT_TRUE(run_until(loop, [&] { return calls > 6; }));
    EXPECT_TRUE(node.got.empty());
    EXPECT_FALSE(node.client.is_up());
}

// The leader dies, and a stranger takes its port and refuses the node. A refusal needs no secret. A
// node that has met its real leader must not believe it, or anybody could end the job.
TEST(Gate, AStrangersRefusalDoesNotEndANodeThatWasAdmitted) {
    asio::io_context loop;
    Node node(loop, given(kSecret));
    std::uint16_t port = 0;
    {
        Door door(loop, given(kSecret));
        port = door.port();
        node.call(port);
        ASSERT_TRUE(run_until(loop, [&] { return node.is_welcome(); }));
    }
    ASSERT_TRUE(run_until(loop, [&] { return node.lost.has_value(); }));
    Door stranger(loop, given(kOther));
    // The Welcome of the real leader.
    node.got.clear();
    node.call(stranger.port());
    // The node goes on calling.
    ASSERT_TRUE(run_until(loop, [&] { return stranger.accepted > 3; }));
    EXPECT_EQ(node.refusal(), "");
    EXPECT_FALSE(node.client.is_up());
}

// An attacker has recorded a proof and sends it on another connection, with the same nonce of the
// node. The leader's own nonce is new on each connection, so the proof is worth nothing there.
TEST(Gate, RefusesAReplayedProof) {
    asio::io_context loop;
    Door door(loop, given(kSecret));
    Stranger first(loop, door.port()), second(loop, door.port());
    first.hello("gpu01");
    second.hello("gpu01");
    // Two connections with equal Hellos; only the leader's nonces differ.
    ASSERT_TRUE(run_until(loop, [&] { return first.challenge() && second.challenge(); }));
    const std::string proof = frame(encode_node_proof(
        {prove(kSecret, Side::node, transcript_of("gpu01", *first.challenge()))}));
    // The proof of the first connection.
    second.say(proof);
    ASSERT_TRUE(run_until(loop, [&] { return second.ended; }));
    EXPECT_THAT(second.refusal(), HasSubstr("gpu01"));
    EXPECT_TRUE(door.admitted.empty());
    // Where it belongs it counts.
    first.say(proof);
    EXPECT_TRUE(run_until(loop, [&] { return door.admitted.size() == 1; }));
    // After its proof a node seals every frame. One without a seal is not obeyed.
    first.say(frame(encode(ToLeader(Leave{"unsealed"}))));
    ASSERT_TRUE(run_until(loop, [&] { return first.ended; }));
    EXPECT_TRUE(door.got.empty()) << "who has no key to the seal says nothing more";
}

// A ddprun from before the handshake calls: its Hello has neither scheme nor nonce. The sentence
// names both hosts, so the user knows which one to update.
TEST(Gate, RefusesAnotherSchemeByName) {
    asio::io_context loop;
    Door door(loop, given(kSecret));
    Stranger old(loop, door.port());
    old.say(std::string(kPreface) +
            frame(encode(ToLeader(Hello{"8812", {"gpu07", Incarnation{7}}, "0.0.9", 0}))));
    ASSERT_TRUE(run_until(loop, [&] { return old.ended; }));
    EXPECT_THAT(old.refusal(), AllOf(HasSubstr("gpu07 runs ddprun 0.0.9"),
                                     HasSubstr("the rendezvous on gpu00 has scheme")));
}

// Each message at the wrong time ends its own connection with a line, and a node is welcome
// afterwards.
TEST(Gate, ClosesOnWhatIsOutOfPlace) {
    asio::io_context loop;
    Door door(loop, given(kSecret));
    const std::string preface(kPreface);
    const std::string hello = frame(encode_opening(
        Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0}, std::string(kNonceSize, 'n')));
    for (const std::string& says :
         // Gone first, Join first, Hello twice, a proof without a Hello, a proof before the
         // Challenge, a frame above the limit of 4 KiB, garbage, another protocol.
         {preface + frame(encode(ToLeader(Gone{{"gpu01", Incarnation{7}}}))),
          preface + frame(encode(ToLeader(Join{example_offer(), Beat{.number = 1}}))),
          preface + hello + hello,
          preface + frame(encode_node_proof({std::string(kProofSize, 'x')})),
          preface + hello + frame(encode_node_proof({std::string(kProofSize, 'x')})),
          preface + frame(std::string(5000, 'x')), preface + frame("\xff\xff"),
          std::string("GET /")}) {
        door.lines.all.clear();
        Stranger stranger(loop, door.port());
        stranger.say(says);
        ASSERT_TRUE(run_until(loop, [&] { return stranger.ended; }));
        EXPECT_TRUE(door.lines.has("127.0.0.1:"));
    }
    EXPECT_TRUE(door.admitted.empty());
    Node node(loop, given(kSecret));
    node.call(door.port());
    EXPECT_TRUE(run_until(loop, [&] { return node.is_welcome(); }));
}

// The room is full. The oldest caller that has said nothing makes place. A caller that has said
// Hello is probably a node and stays.
TEST(Gate, TheOldestMakesPlace) {
    asio::io_context loop;
    // Room for three: one that has spoken and two silent ones.
    Door door(loop, given(kSecret), 3);
    Stranger spoken(loop, door.port());
    spoken.hello("gpu01");
    ASSERT_TRUE(run_until(loop, [&] { return spoken.challenge().has_value(); }));
    Stranger first(loop, door.port()), second(loop, door.port());
    ASSERT_TRUE(run_until(loop, [&] { return door.accepted == 3; }));
    // The fourth caller.
    Stranger third(loop, door.port());
    ASSERT_TRUE(run_until(loop, [&] { return first.ended; }));
    EXPECT_FALSE(spoken.ended || second.ended || third.ended);
    spoken.say(frame(encode_node_proof(
        {prove(kSecret, Side::node, transcript_of("gpu01", *spoken.challenge()))})));
    EXPECT_TRUE(run_until(loop, [&] { return door.admitted.size() == 1; }));
}

// A thousand strangers must not fill the log: ten lines in ten seconds, and the rest is counted.
TEST(Gate, AFloodIsAFewLines) {
    asio::io_context loop;
    Door door(loop, given(kSecret), 4);
    for (int i = 0; i < 1000; ++i) {
        Stranger stranger(loop, door.port());
        stranger.say("GET /");
        ASSERT_TRUE(run_until(loop, [&] { return stranger.ended; }));
    }
    // Ten lines, and at most the summary and a line of the next ten seconds.
    EXPECT_LE(door.lines.all.size(), 12u);
}

// With the real munged: a node of this user gets in without any option. A credential that another
// user made does not count, though it can be decoded. Anybody can make one for us.
TEST(Gate, AdmitsByMunge) {
    Programs programs;
    RealMunge munge(programs);
    if (!munge.is_running()) GTEST_SKIP() << "munged is not installed";
    asio::io_context loop;
    Door door(loop, {});
    Node node(loop, {}), again(loop, {}, "gpu02");
    node.call(door.port());
    again.call(door.port());
    ASSERT_TRUE(run_until(loop, [&] { return node.is_welcome() && again.is_welcome(); }));
    if (::geteuid() != 0) return;
    // --uid makes the credential in the name of user 65534, which is another user.
    programs.script("munge", "exec /usr/bin/munge --socket=" + (programs / "socket") +
                                 " --uid=65534 \"$@\"");  // root may speak for others
    Door other(loop, {});
    Node careful(loop, {}, "gpu03");
    careful.call(other.port());
    // The node goes on calling and never obeys.
    ASSERT_TRUE(run_until(loop, [&] { return other.accepted > 2; }));
    EXPECT_TRUE(careful.got.empty());
    // The reason, asked of the node's secrets directly.
    std::optional<Result<SecretText>> found;
    other.secrets.own([&](const Result<OwnSecret>& own) {
        const Challenge challenge{1, {"gpu00", Incarnation{1}}, "", own->credential, ""};
        careful.secrets.of_leader(challenge, [&](Result<SecretText> got) { found = got; });
    });
    ASSERT_TRUE(run_until(loop, [&] { return found.has_value(); }));
    ASSERT_FALSE(*found);
    EXPECT_THAT(found->error().sentence(), HasSubstr("not made by user 0"));
}

// Another process opens ten thousand connections as fast as it can, while nodes of a job meet the
// service. The gate closes the flood's connections and serves the nodes. Prints how long the
// slowest meeting took; a loaded machine decides about it, so there is no limit.
TEST(Gate, AFloodDelaysNobody) {
    asio::io_context loop;
    FileThread files(loop);
    Secrets secrets(loop, files, given(kSecret));
    LedgerMemory ledger(loop);
    Lines lines;
    MachineConfig config;
    config.run_id = "8812";
    config.self = {"gpu00", Incarnation{1000}};
    config.version = "0.1.0";
    // Two nodes, so that no generation begins: only the meetings are of interest here.
    config.limits.min_nodes = config.limits.max_nodes = 2;
    auto acceptor = listener(loop);
    const std::uint16_t port = acceptor.local_endpoint().port();
    Service service(
        loop, std::move(acceptor), config, ledger, lines.log(), [](const Ending&) {}, &secrets);
    service.start();
    constexpr int kFlood = 10000;
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    // A process of its own: on this loop it would not be a flood.
    const pid_t flood = ::fork();
    // Opens all connections and keeps those that it is left. A byte after a tenth of them and at
    // the end tells this process how far it is.
    if (flood == 0) {
        asio::io_context own;
        std::vector<tcp::socket> sockets;
        for (int i = 0; i < kFlood; ++i) {
            boost::system::error_code error;
            sockets.emplace_back(own);
            sockets.back().connect({asio::ip::address_v4::loopback(), port}, error);
            if (i == kFlood / 10 && ::write(told[1], "x", 1) != 1) ::_exit(1);
        }
        if (::write(told[1], "x", 1) != 1) ::_exit(1);
        ::pause();
    }
    // Meetings go on all through the flood and after it, ten at least.
    asio::posix::stream_descriptor pipe(loop, told[0]);
    int marks = 0;
    char mark = 0;
    std::function<void()> read = [&] {
        pipe.async_read_some(asio::buffer(&mark, 1),
                             [&](boost::system::error_code error, std::size_t) {
                                 if (error) return;
                                 ++marks;
                                 read();
                             });
    };
    read();
    ASSERT_TRUE(run_until(loop, [&] { return marks > 0; }));
    int meetings = 0;
    Duration longest{};
    do {
        Node node(loop, given(kSecret));
        const Time begin = boot_now();
        node.call(port);
        ASSERT_TRUE(run_until(loop, [&] { return node.is_welcome(); }));
        longest = std::max(longest, boot_now() - begin);
        ++meetings;
    } while (marks < 2 || meetings < 10);
    int strangers = 0;
    for (const std::string& line : lines.all)
        strangers += line.find("had to make room") != line.npos;
    // At most ten lines in ten seconds; 50 leave time for a slow machine.
    EXPECT_GT(strangers, 0);
    EXPECT_LE(strangers, 50);
    RecordProperty("meetings", meetings);
    RecordProperty("longest_ms", static_cast<int>(longest / std::chrono::milliseconds{1}));
    std::printf("%d meetings, the longest took %.1f ms\n", meetings,
                static_cast<double>(longest.count()) / 1e6);
    ::kill(flood, SIGKILL);
    ::waitpid(flood, nullptr, 0);
    ::close(told[1]);
}

}  // namespace
}  // namespace ddprun::rendezvous
