// Networks as an operator writes them for --store-allow, and which addresses lie in them. Pure.
#include "store/door/network.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::store {
namespace {

using testing::HasSubstr;

AddressBytes address(const std::string& text) { return read_network(text).value().address; }

// Whether the address lies in the network; both as text.
bool contains(const std::string& network, const std::string& inside) {
    return read_network(network).value().contains(address(inside));
}

// The edges of a prefix: at the border of a byte (/8), within a byte (/22), all bits, no bits.
TEST(Network, ContainsByPrefix) {
    EXPECT_TRUE(contains("10.0.0.0/8", "10.255.1.2"));
    EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
    EXPECT_TRUE(contains("192.168.4.0/22", "192.168.7.255"));
    EXPECT_FALSE(contains("192.168.4.0/22", "192.168.8.0"));
    EXPECT_TRUE(contains("192.0.2.7", "192.0.2.7"));
    EXPECT_FALSE(contains("192.0.2.7", "192.0.2.6"));
    EXPECT_TRUE(contains("0.0.0.0/0", "8.8.8.8"));
    EXPECT_TRUE(contains("fd00::/8", "fdff::1"));
    EXPECT_FALSE(contains("fd00::/8", "fe80::1"));
}

// The same host calls over an IPv4 or an IPv6 socket. Its address must count as the same one, or a
// member would be refused on some hosts. And 0.0.0.0/0 must not admit IPv6 hosts.
TEST(Network, KnowsIpv4InIpv6) {
    EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
    EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
    EXPECT_TRUE(contains("::/0", "10.1.2.3"));
    // The network of everybody.
    EXPECT_TRUE((Network{{}, 0}.contains(address("10.1.2.3"))));
}

// A typing error must not admit a wrong network. Each sentence says what was expected.
TEST(Network, RefusesWhatIsNone) {
    const auto sentence = [](const std::string& text) {
        const auto network = read_network(text);
        return network ? std::string("accepted") : network.error().sentence();
    };
    for (const char* bad : {"", "gpu07", "10.0.0", "10.0.0.256", "10.0.0.0 ", "::g", "10.0.0.0:80"})
        EXPECT_THAT(sentence(bad), HasSubstr("not an address or network")) << bad;
    for (const char* bad : {"10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x"})
        EXPECT_THAT(sentence(bad), HasSubstr("give 0 to 32")) << bad;
    EXPECT_THAT(sentence("fd00::/129"), HasSubstr("give 0 to 128"));
    // Either the address or the whole network was meant; only the operator knows.
    EXPECT_THAT(sentence("10.0.0.1/8"), HasSubstr("bits behind its prefix"));
}

}  // namespace
}  // namespace ddprun::store
