// The arithmetic of the proofs and seals, without connections: what is accepted, and that nothing
// else is. Pure.
#include "rendezvous/identity/identity.h"

#include <gtest/gtest.h>
#include <boost/algorithm/hex.hpp>

#include <functional>

namespace ddprun::rendezvous {
namespace {

// Above the 16 bytes that a secret must have.
constexpr std::string_view kSecret = "sixteen bytes at least";

// One handshake with fixed nonces, so that every test has the same bytes.
Transcript transcript() {
    return {"8812",
            0,
            {"gpu01", Incarnation{1}},
            {"gpu00", Incarnation{2}},
            std::string(kNonceSize, 'n'),
            std::string(kNonceSize, 'l')};
}

using boost::algorithm::hex_lower;

// The basic case for both sides, and one for a wrong secret.
TEST(Identity, WhoHasTheSecretIsBelieved) {
    for (const Side side : {Side::node, Side::leader}) {
        const std::string proof = prove(kSecret, side, transcript());
        EXPECT_EQ(proof.size(), kProofSize);
        EXPECT_TRUE(is_proof(proof, kSecret, side, transcript()));
        EXPECT_FALSE(is_proof(proof, "another secret, as long", side, transcript()));
    }
}

// An attacker without the secret sends a proof back to its maker. It proves nothing: the side is
// part of it.
TEST(Identity, AProofIsOfOneSide) {
    EXPECT_FALSE(
        is_proof(prove(kSecret, Side::node, transcript()), kSecret, Side::leader, transcript()));
    EXPECT_FALSE(
        is_proof(prove(kSecret, Side::leader, transcript()), kSecret, Side::node, transcript()));
}

// An attacker has recorded a proof. It must be worth nothing on another connection, for another
// process, run or requeue. So every field counts.
TEST(Identity, AProofIsOfOneConnection) {
    const std::string proof = prove(kSecret, Side::node, transcript());
    const std::vector<std::function<void(Transcript&)>> changes = {
        [](Transcript& t) { t.run_id = "8813"; },
        [](Transcript& t) { t.requeue = 1; },
        [](Transcript& t) { t.node.name = "gpu02"; },
        [](Transcript& t) { t.node.incarnation = Incarnation{3}; },
        [](Transcript& t) { t.leader.name = "gpu02"; },
        [](Transcript& t) { t.leader.incarnation = Incarnation{3}; },
        [](Transcript& t) { t.node_nonce[31] = 'x'; },
        [](Transcript& t) { t.leader_nonce[0] = 'x'; },
        [](Transcript& t) { std::swap(t.node, t.leader); },
        [](Transcript& t) { std::swap(t.node_nonce, t.leader_nonce); },
        // The same characters with another border: no byte may move from one field into the next.
        [](Transcript& t) { t.run_id = "88", t.node.name = "12gpu01"; },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        Transcript other = transcript();
        changes[i](other);
        EXPECT_FALSE(is_proof(proof, kSecret, Side::node, other)) << "change " << i;
    }
}

// Empty, cut at each length, one bit wrong in each byte.
TEST(Identity, AnythingElseIsNoProof) {
    const std::string proof = prove(kSecret, Side::node, transcript());
    EXPECT_FALSE(is_proof("", kSecret, Side::node, transcript()));
    for (std::size_t size = 0; size < proof.size(); ++size)
        EXPECT_FALSE(is_proof(proof.substr(0, size), kSecret, Side::node, transcript()));
    for (std::size_t i = 0; i < proof.size(); ++i) {
        std::string wrong = proof;
        wrong[i] = static_cast<char>(wrong[i] ^ 1);
        EXPECT_FALSE(is_proof(wrong, kSecret, Side::node, transcript()));
    }
    // A proof over an empty nonce. The peer could make every handshake alike with it.
    Transcript bare = transcript();
    bare.node_nonce.clear();
    EXPECT_FALSE(is_proof(prove(kSecret, Side::node, bare), kSecret, Side::node, bare));
}

// Nodes with another build, compiler or processor must compute the same bytes. Python's hmac has
// computed these values. A change here needs a new scheme number.
TEST(Identity, SchemeOneIsWrittenDown) {
    EXPECT_EQ(hex_lower(prove(kSecret, Side::node, transcript())),
              "d4d5b5da1e417f48a9344de6b19eb9053ab7797f4ca52fc4c5d9efaf786b9ce8");
    EXPECT_EQ(hex_lower(Seal(kSecret, Side::leader, transcript()).next("body")),
              "bbe0d63cef05620f5815d8a56fdb279f");
}

// Both ends of one direction of a connection.
struct Ends {
    Seal sender{kSecret, Side::node, transcript()};
    Seal receiver{kSecret, Side::node, transcript()};
    std::string seal(const std::string& body) { return body + sender.next(body); }
    bool open(std::string_view sealed) { return receiver.open(sealed); }
};

// An empty body, and the same body twice: the frame's number makes their seals differ.
TEST(Seal, OpensWhatWasSealedInOrder) {
    Ends ends;
    for (const std::string body : {"", "beat", "beat", "report"}) {
        const std::string sealed = ends.seal(body);
        EXPECT_EQ(sealed.size(), body.size() + kSealSize);
        std::string_view opened = sealed;
        ASSERT_TRUE(ends.receiver.open(opened));
        EXPECT_EQ(opened, body);
    }
}

// Somebody between the two alters, repeats, reorders, leaves out or adds frames. None of these is
// opened, and the right frame still is when it comes in its turn.
// Both sides of one handshake have it; another use, side or connection has another one.
TEST(Seal, GivesAKeyForAnotherUse) {
    const Seal seal{kSecret, Side::leader, transcript()};
    const std::string key = seal.key_for("tunnel");
    EXPECT_EQ(key.size(), kProofSize);
    EXPECT_EQ(key, Seal(kSecret, Side::leader, transcript()).key_for("tunnel"));
    EXPECT_NE(key, seal.key_for("other"));
    EXPECT_NE(key, Seal(kSecret, Side::node, transcript()).key_for("tunnel"));
    Transcript other = transcript();
    other.leader_nonce[0] = 'x';
    EXPECT_NE(key, Seal(kSecret, Side::leader, other).key_for("tunnel"));
    EXPECT_NE(key.substr(0, kSealSize), seal.last_word("tunnel"));
}

TEST(Seal, OpensNothingElse) {
    Ends ends;
    const std::string first = ends.seal("one"), second = ends.seal("two");
    std::string altered = first;
    altered[0] = 'O';
    EXPECT_FALSE(ends.open(altered));
    EXPECT_FALSE(ends.open(second));
    EXPECT_FALSE(ends.open("short"));
    EXPECT_FALSE(ends.open(""));
    // Sealed by the other side.
    EXPECT_FALSE(ends.open("one" + Seal(kSecret, Side::leader, transcript()).next("one")));
    EXPECT_TRUE(ends.open(first));
    // Repeated.
    EXPECT_FALSE(ends.open(first));
    EXPECT_TRUE(ends.open(second));
}

// The keeper's Gone is prepared while the link is up. Nobody knows then how many frames its ddprun
// will still send, so its seal must be right after any number of them.
TEST(Seal, TheLastWordIsOpenedAnywhere) {
    for (int before = 0; before < 3; ++before) {
        Ends ends;
        const std::string gone = "gone" + ends.sender.last_word("gone");
        for (int i = 0; i < before; ++i) ASSERT_TRUE(ends.open(ends.seal("beat")));
        EXPECT_TRUE(ends.open(gone));
    }
}

}  // namespace
}  // namespace ddprun::rendezvous
