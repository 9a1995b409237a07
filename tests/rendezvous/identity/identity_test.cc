#include "rendezvous/identity/identity.h"

#include <gtest/gtest.h>
#include <boost/algorithm/hex.hpp>

#include <functional>

namespace ddprun::rendezvous {
namespace {

constexpr std::string_view kSecret = "sixteen bytes at least";

Transcript transcript() {
    return {"8812",
            0,
            {"gpu01", Incarnation{1}},
            {"gpu00", Incarnation{2}},
            std::string(kNonceSize, 'n'),
            std::string(kNonceSize, 'l')};
}

using boost::algorithm::hex_lower;

TEST(Identity, WhoHasTheSecretIsBelieved) {
    for (const Side side : {Side::node, Side::leader}) {
        const std::string proof = prove(kSecret, side, transcript());
        EXPECT_EQ(proof.size(), kProofSize);
        EXPECT_TRUE(is_proof(proof, kSecret, side, transcript()));
        EXPECT_FALSE(is_proof(proof, "another secret, as long", side, transcript()));
    }
}

// What is thrown back at its maker proves nothing.
TEST(Identity, AProofIsOfOneSide) {
    EXPECT_FALSE(
        is_proof(prove(kSecret, Side::node, transcript()), kSecret, Side::leader, transcript()));
    EXPECT_FALSE(
        is_proof(prove(kSecret, Side::leader, transcript()), kSecret, Side::node, transcript()));
}

// Every field counts; so a proof is worth nothing on another connection, for another process, run
// or requeue, and no byte can move from one field into the next.
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
        [](Transcript& t) { t.run_id = "88", t.node.name = "12gpu01"; },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        Transcript other = transcript();
        changes[i](other);
        EXPECT_FALSE(is_proof(proof, kSecret, Side::node, other)) << "change " << i;
    }
}

// Whatever is no proof: empty, cut, one bit wrong, or over nonces that are none.
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
    Transcript bare = transcript();
    bare.node_nonce.clear();
    EXPECT_FALSE(is_proof(prove(kSecret, Side::node, bare), kSecret, Side::node, bare));
}

// The bytes of scheme 1, checked with Python's hmac: another build must make the same.
TEST(Identity, SchemeOneIsWrittenDown) {
    EXPECT_EQ(hex_lower(prove(kSecret, Side::node, transcript())),
              "d4d5b5da1e417f48a9344de6b19eb9053ab7797f4ca52fc4c5d9efaf786b9ce8");
    EXPECT_EQ(hex_lower(Seal(kSecret, Side::leader, transcript()).next("body")),
              "bbe0d63cef05620f5815d8a56fdb279f");
}

struct Ends {
    Seal sender{kSecret, Side::node, transcript()};
    Seal receiver{kSecret, Side::node, transcript()};
    std::string seal(const std::string& body) { return body + sender.next(body); }
    bool open(std::string_view sealed) { return receiver.open(sealed); }
};

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

// Altered, repeated, out of order, left out, of the other direction, too short: not opened, and
// what comes in its turn afterwards is.
TEST(Seal, OpensNothingElse) {
    Ends ends;
    const std::string first = ends.seal("one"), second = ends.seal("two");
    std::string altered = first;
    altered[0] = 'O';
    EXPECT_FALSE(ends.open(altered));
    EXPECT_FALSE(ends.open(second));
    EXPECT_FALSE(ends.open("short"));
    EXPECT_FALSE(ends.open(""));
    EXPECT_FALSE(ends.open("one" + Seal(kSecret, Side::leader, transcript()).next("one")));
    EXPECT_TRUE(ends.open(first));
    EXPECT_FALSE(ends.open(first));
    EXPECT_TRUE(ends.open(second));
}

// The keeper does not know how many frames its ddprun has sent.
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
