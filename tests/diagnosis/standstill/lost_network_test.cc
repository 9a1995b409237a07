// Between whom the network is lost, from the connections of a node's workers. Pure.
#include "diagnosis/standstill/lost_network.h"

#include <gmock/gmock.h>

namespace ddprun::agent {
namespace {

using testing::ElementsAre;

TcpSocket socket(const std::string& local, std::uint16_t port, const std::string& remote,
                 std::uint16_t remote_port, int sent_again) {
    return {.local = local,
            .remote = remote,
            .local_port = port,
            .remote_port = remote_port,
            .unacknowledged = 100,
            .sent_again = sent_again};
}

constexpr LostConnection kNone;

TEST(LostNetwork, IsAConnectionOnWhichNothingIsAcknowledged) {
    const TcpSocket busy = socket("10.0.0.1", 1000, "10.0.0.2", 80, 2);
    const TcpSocket lost = socket("10.0.0.1", 1001, "10.0.0.3", 80, 3);
    TcpSocket idle = lost;
    idle.unacknowledged = 0;
    EXPECT_THAT(
        lost_connections({{busy}, {busy, lost}, {idle}, {}}),
        ElementsAre(kNone, LostConnection{hash_of("10.0.0.1"), hash_of("10.0.0.3")}, kNone, kNone));
}

// Two workers of one host have one address. Each of them is an end of its own.
TEST(LostNetwork, TellsWorkersOfOneHostApart) {
    const TcpSocket one = socket("127.0.0.1", 1000, "127.0.0.1", 80, 4);
    const TcpSocket other = socket("127.0.0.1", 80, "127.0.0.1", 1000, 0);
    const auto lost = lost_connections({{one}, {}, {other}});
    EXPECT_EQ(lost[2], kNone);
    EXPECT_NE(lost[0].from, lost[0].to);
    // The other way round it is the same two ends.
    TcpSocket back = other, forth = one;
    back.sent_again = 4;
    forth.sent_again = 0;
    const auto reverse = lost_connections({{forth}, {}, {back}});
    EXPECT_EQ(reverse[2], (LostConnection{lost[0].to, lost[0].from}));
}

}  // namespace
}  // namespace ddprun::agent
