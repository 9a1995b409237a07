// The messages of the handshake to bytes and back, and what is refused. Every field comes from a
// peer that has proved nothing yet. Pure.
#include "rendezvous/identity/handshake_messages.h"

#include <gmock/gmock.h>

#include "proto/agent_link.pb.h"
#include "rendezvous/identity/identity.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

const Hello kHello{"8812", {"gpu01", Incarnation{7}}, "0.1.0", 2};
// Bytes that are no text: a nonce is random.
const std::string kNonce(kNonceSize, '\xfe');

// A correct Challenge with a MUNGE credential. The tests spoil one field of it at a time.
Challenge challenge() { return {1, {"gpu00", Incarnation{8}}, kNonce, "MUNGE:abc:", ""}; }

// The error of a Challenge that has gone through the wire; empty: it is accepted.
std::string sentence_of(const Challenge& challenge) {
    const auto word = decode_leader_word(encode(challenge));
    return word ? "" : word.error().sentence();
}

// Each message comes out as it went in.
TEST(WireIdentity, KeepsWhatIsSaid) {
    const auto opening = decode_opening(encode_opening(kHello, kNonce));
    ASSERT_TRUE(opening) << opening.error();
    EXPECT_EQ(opening->message, ToLeader(kHello));
    EXPECT_EQ(opening->nonce, kNonce);
    EXPECT_EQ(opening->scheme, kIdentityScheme);
    const Proof proof{std::string(kProofSize, 'p')};
    EXPECT_EQ(*decode_node_proof(encode_node_proof(proof)), proof);
    EXPECT_EQ(std::get<Proof>(*decode_leader_word(encode_leader_proof(proof))), proof);
    EXPECT_EQ(std::get<Challenge>(*decode_leader_word(encode(challenge()))), challenge());
}

TEST(WireIdentity, AnOperatorBeginsWithANonceToo) {
    const Operate operate{kHello, 5};
    const auto opening = decode_opening(encode_opening(operate, kNonce));
    ASSERT_TRUE(opening) << opening.error();
    EXPECT_EQ(opening->message, ToLeader(operate));
    EXPECT_EQ(opening->nonce, kNonce);
    EXPECT_EQ(opening->scheme, kIdentityScheme);
}

// Nodes with and without the handshake can still talk: a rendezvous that asks for no proof reads
// the Hello as before, and one that does sees from scheme 0 that an old node calls.
TEST(WireIdentity, AHelloIsAHelloWithAndWithout) {
    EXPECT_EQ(*decode_to_leader(encode_opening(kHello, kNonce)), ToLeader(kHello));
    const auto old = decode_opening(encode(ToLeader(kHello)));
    ASSERT_TRUE(old);
    EXPECT_EQ(old->scheme, 0);
    EXPECT_EQ(old->nonce, "");
}

// Handshake and agent link share one stream. A message of one must never pass for a message of the
// other: a Proof that the machine got, or a Refused that was taken for a Challenge.
TEST(WireIdentity, OtherMessagesAreNotOfTheHandshake) {
    EXPECT_TRUE(
        std::holds_alternative<std::monostate>(*decode_leader_word(encode(ToNode(Refused{"no"})))));
    EXPECT_FALSE(decode_node_proof(encode(ToLeader(kHello))));
    EXPECT_THAT(
        decode_to_leader(encode_node_proof({std::string(kProofSize, 'p')})).error().sentence(),
        HasSubstr("proof"));
    EXPECT_FALSE(decode_to_node(encode(challenge())));
}

// A node opens the file that a Challenge names. An attacker could lead it to any file of the user,
// so only a plain name is accepted.
TEST(WireIdentity, AChallengeLeadsNowhere) {
    Challenge one = challenge();
    one.credential.clear();
    for (const std::string file : {"../secret", "a/b", "/etc/shadow", ".", "..", ".ssh", "a b"}) {
        one.file = file;
        EXPECT_THAT(sentence_of(one), HasSubstr("Challenge.file")) << file;
    }
    one.file = "secret";
    EXPECT_EQ(sentence_of(one), "");
}

// Each sentence names the field: sizes of nonces and proofs, the scheme, two secrets at once, and a
// credential that is far larger than those of MUNGE.
TEST(WireIdentity, NamesWhatIsWrong) {
    Challenge one = challenge();
    one.nonce.pop_back();
    EXPECT_THAT(sentence_of(one), HasSubstr("Challenge.nonce: 31 bytes"));
    one = challenge();
    one.scheme = 0;
    EXPECT_THAT(sentence_of(one), HasSubstr("Challenge.scheme"));
    one = challenge();
    one.file = "secret";
    EXPECT_THAT(sentence_of(one), HasSubstr("one secret is enough"));
    one = challenge();
    one.credential.assign(5000, 'x');
    EXPECT_THAT(sentence_of(one), HasSubstr("Challenge.credential: 5000 bytes"));
    EXPECT_THAT(decode_node_proof(encode_node_proof({"short"})).error().sentence(),
                HasSubstr("Proof.mac"));
    EXPECT_THAT(decode_opening(encode_opening(kHello, std::string(33, 'n'))).error().sentence(),
                HasSubstr("Hello.nonce"));
}

}  // namespace
}  // namespace ddprun::rendezvous
