// Who calls a port, by the first bytes of the connection: a node, a client of PyTorch's store, or a
// stranger. Pure. All of them use one port, so a wrong guess would break off a caller.
#include "rendezvous/wire/first_bytes.h"

#include <gmock/gmock.h>

#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"
#include "tests/rendezvous/examples.h"

namespace ddprun::rendezvous {
namespace {

using testing::HasSubstr;

// What a node sends first: the preface and its Hello.
std::string hello_bytes() {
    return std::string(kPreface) + frame(encode(examples_to_leader().front()));
}
// The number of bytes that are needed; 0: the caller is known.
std::size_t asked(std::string_view bytes) {
    const FirstBytes opening = judge_first_bytes(bytes);
    const auto* more = std::get_if<NeedsMore>(&opening);
    return more ? more->bytes : 0;
}
// What is wrong with a stranger; empty: it is none.
std::string wrong(std::string_view bytes) {
    const FirstBytes opening = judge_first_bytes(bytes);
    const auto* stranger = std::get_if<Stranger>(&opening);
    return stranger ? stranger->sentence : "";
}

// A node is known by its whole Hello, however the network cuts it, and never before.
TEST(FirstBytes, KnowsANodeByItsHello) {
    const std::string bytes = hello_bytes();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_GT(asked(bytes.substr(0, size)), size) << "else it would be asked again at once";
        EXPECT_LE(asked(bytes.substr(0, size)), bytes.size()) << "else it would wait for ever";
    }
    const FirstBytes opening = judge_first_bytes(bytes + "and what follows");
    ASSERT_TRUE(std::holds_alternative<AgentLink>(opening));
    EXPECT_EQ(ToLeader(std::get<AgentLink>(opening).hello), examples_to_leader().front());
}

// He asks for a run of ddprun-rendezvous, or for the only one there is.
TEST(FirstBytes, KnowsAnOperator) {
    const Operate who{{"8812", {"alice@login1", Incarnation{7}}, "0.1.0"}};
    const FirstBytes opening =
        judge_first_bytes(std::string(kPreface) + frame(encode(ToLeader(who))));
    ASSERT_TRUE(std::holds_alternative<AgentLink>(opening));
    EXPECT_EQ(std::get<AgentLink>(opening).hello, who.as);
}

// The bytes are those that each version of PyTorch sends first: 1.13 to 2.1 one of their requests,
// later versions VALIDATE. A script must work with whatever PyTorch it brings.
TEST(FirstBytes, KnowsTheClientsOfPyTorchsStore) {
    using namespace std::string_view_literals;
    for (const std::string_view first :
         {"\x03\x05\0\0\0\0\0\0\0init/"sv,                 // 1.13, 2.0, 2.1: ADD
          "\x01"sv,                                        // the same, torchrun's COMPARE_SET
          "\0"sv,                                          // 2.2 and later, cut; or SET of 1.13
          "\0\xce\xf7\x85\x3c"sv,                          // VALIDATE
          "\0\xce\xf7\x85\x3c\x0d\x34\x12\0\0"sv,          // 2.5 and later: and PING
          "\x12\x01\0\0\0\0\0\0\0b\x02\0\0\0\0\0\0\0"sv})  // the highest code there is
        EXPECT_TRUE(std::holds_alternative<C10d>(judge_first_bytes(first)));
}

// A wrong caller gets a line in the log, and the user has to find the program by it. Control
// characters are shown as numbers, since a stranger must not write to the user's terminal.
TEST(FirstBytes, SaysWhatIsWrongWithAStranger) {
    using namespace std::string_view_literals;
    EXPECT_EQ(wrong("GET /metrics HTTP/1.1\r\n"),
              "begins with \"GET /metrics HTT\", which is none of ours");
    // A client that begins with TLS.
    EXPECT_EQ(wrong("\x16\x03\x01\""sv),
              "begins with \"\\x16\\x03\\x01\\x22\", which is none of ours");
    // A newer version of the protocol.
    EXPECT_THAT(wrong("DDPRUN\x02\n"), HasSubstr("DDPRUN\\x02\\x0a"));
    // The right preface, then a frame of 65537 bytes. It is refused before it has come.
    EXPECT_EQ(wrong("DDPRUN\x01\n\x00\x01\x00\x01"sv),
              "begins with a message of 65537 bytes (limit 4096)");
    EXPECT_THAT(wrong("DDPRUN\x01\n\x00\x00\x00\x05"
                      "abcde"sv),
                HasSubstr("says ToLeader: "));
    EXPECT_EQ(wrong(std::string(kPreface) + frame(encode(ToLeader(Leave{"first"})))),
              "does not begin with a Hello");
}

}  // namespace
}  // namespace ddprun::rendezvous
