// What a node believes of a leader that has not proved itself, over a real socket. gate_test.cc has
// the leader's half, and handshakes that succeed.
#include "rendezvous/link/node_handshake.h"

#include <gmock/gmock.h>

#include <boost/asio/write.hpp>

#include "base/system/boot_clock.h"
#include "rendezvous/identity/handshake_messages.h"
#include "rendezvous/link/client.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/wire/frame.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

const std::string kSecret = "a secret of all nodes";

// A stranger on the leader's port. It answers the node's opening with one text, and the node's next
// frame, its Proof, with another.
struct Impostor {
    Impostor(asio::io_context& loop, std::string challenge, std::string after_proof)
        : challenge(std::move(challenge)),
          after_proof(std::move(after_proof)),
          acceptor(listener(loop)),
          socket(loop),
          reader(kNodeFrameLimit) {
        accept();
    }
    void accept() {
        acceptor.async_accept(socket, [this](boost::system::error_code error) {
            if (error) return;
            frames = 0;
            reader = FrameReader(kNodeFrameLimit);
            read();
        });
    }
    void read() {
        socket.async_read_some(
            asio::buffer(piece), [this](boost::system::error_code error, std::size_t size) {
                if (error) {
                    socket.close();
                    return accept();  // the node calls again
                }
                reader.add({piece, size});
                while (reader.next().value())
                    say(++frames == 1 ? std::string(kPreface) + challenge : after_proof);
                proofs += frames == 2;
                read();
            });
    }
    void say(const std::string& bytes) {
        boost::system::error_code gone;
        asio::write(socket, asio::buffer(bytes), gone);
    }

    std::string challenge, after_proof;
    tcp::acceptor acceptor;
    tcp::socket socket;
    FrameReader reader;
    char piece[4096];
    int frames = 0, proofs = 0;
};

// A Challenge without credential and file asks for the secret of --secret-file, which the node has.
std::string asks_for_the_secret_file() {
    return frame(encode(Challenge{
        kIdentityScheme, {"gpu00", Incarnation{1}}, std::string(kNonceSize, 'l'), "", ""}));
}

// The node's side: it calls for two seconds and keeps what came through, and why it gave up.
struct Node {
    explicit Node(asio::io_context& loop)
        : files(loop),
          secrets(loop, files, {.secret = kSecret}),
          client(
              loop, [](const Note&) {},
              {[](const std::string&) {}, [this](const ToNode& one) { got.push_back(one); },
               [this](const Error& why) { lost = why; }},
              &secrets) {}
    void call(std::uint16_t port) {
        client.connect({{"127.0.0.1", port}}, Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0},
                       boot_now() + std::chrono::seconds{2});
    }
    FileThread files;
    Secrets secrets;
    std::vector<ToNode> got;
    std::optional<Error> lost;
    Client client;
};

// An impostor asks for a proof in the right form. It cannot prove that it has the secret itself, so
// the node obeys nothing that comes behind its wrong proof.
TEST(NodeHandshake, ObeysNoLeaderWhoseProofIsWrong) {
    asio::io_context loop;
    Impostor impostor(loop, asks_for_the_secret_file(),
                      frame(encode_leader_proof({std::string(kProofSize, 'x')})) +
                          frame(encode(examples_to_node()[0])));
    Node node(loop);
    node.call(impostor.acceptor.local_endpoint().port());
    ASSERT_TRUE(run_until(loop, [&] { return node.lost.has_value(); }));
    EXPECT_GT(impostor.proofs, 0) << "the handshake did not get that far";
    EXPECT_TRUE(node.got.empty());
    EXPECT_THAT(node.lost->sentence(), HasSubstr("does not have the secret that it asks for"));
}

// The same without any proof: a Welcome behind the node's Proof.
TEST(NodeHandshake, ObeysNoLeaderThatAsksAndDoesNotProve) {
    asio::io_context loop;
    Impostor impostor(loop, asks_for_the_secret_file(), frame(encode(examples_to_node()[0])));
    Node node(loop);
    node.call(impostor.acceptor.local_endpoint().port());
    ASSERT_TRUE(run_until(loop, [&] { return node.lost.has_value(); }));
    EXPECT_GT(impostor.proofs, 0) << "the handshake did not get that far";
    EXPECT_TRUE(node.got.empty());
    EXPECT_THAT(node.lost->sentence(), HasSubstr("has not proved itself"));
}

// A refusal in place of the Challenge, and one behind the node's Proof. The node has a secret, so
// neither ends it before its own deadline. The user reads the reason then.
TEST(NodeHandshake, IsNotSentAwayByWhoHasProvedNothing) {
    const std::string refused = frame(encode(ToNode(Refused{"the job has ended"})));
    for (const std::string& challenge : {refused, asks_for_the_secret_file()}) {
        asio::io_context loop;
        Impostor impostor(loop, challenge, refused);
        Node node(loop);
        node.call(impostor.acceptor.local_endpoint().port());
        ASSERT_TRUE(run_until(loop, [&] { return node.lost.has_value() || !node.got.empty(); }));
        EXPECT_TRUE(node.got.empty());
        ASSERT_TRUE(node.lost);
        EXPECT_EQ(node.lost->code(), ErrorCode::timed_out);
        EXPECT_THAT(node.lost->sentence(),
                    HasSubstr("refuses, without a proof of its own: the job has ended"));
    }
}

// A leader that refuses ends the link at once. Whether its refusal counts is looked up meanwhile.
TEST(NodeHandshake, ARefusalIsToldThoughTheLinkHasEnded) {
    asio::io_context loop;
    tcp::acceptor leader = listener(loop);
    tcp::socket socket(loop);
    socket.connect(leader.local_endpoint());
    FileThread files(loop);
    Secrets secrets(loop, files, {});
    std::vector<Error> failed;
    const auto link = std::make_shared<Link>(std::move(socket), kLeaderFrameLimit,
                                             Link::Handlers{[](auto) {}, [](const Error&) {}});
    NodeHandshake handshake(secrets, link, Hello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 0},
                            true, {[](auto) {}, [&](const Error& why) { failed.push_back(why); }});
    handshake.start();
    EXPECT_FALSE(handshake.ended()) << "nothing has been said";
    handshake.take(encode(ToNode(Refused{"this job has no secret"})));
    EXPECT_TRUE(failed.empty());
    EXPECT_TRUE(handshake.ended());
    ASSERT_EQ(failed.size(), 1U);
    EXPECT_EQ(failed[0].code(), ErrorCode::refused);
    EXPECT_THAT(failed[0].sentence(), HasSubstr("this job has no secret"));
    EXPECT_FALSE(handshake.ended()) << "it has been told";
}

}  // namespace
}  // namespace ddprun::rendezvous
