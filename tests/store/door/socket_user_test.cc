// What the kernel says of a socket: the messages of its diagnostics, and its table. Pure, but for
// sockets of this process.
#include "store/door/socket_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

namespace ddprun::store {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;
using testing::Each;
using testing::Optional;

constexpr uid_t kUser = 1003, kNobody = 65534;
const SocketOwner kOurs{Whose::ours, 0};

// ---- what counts

TEST(SocketOwner, IsWhoHasAConnectionOpen) {
    EXPECT_EQ(owner_of({kUser, 4711, TCP_ESTABLISHED}, kUser), kOurs);
    EXPECT_EQ(owner_of({0, 4711, TCP_ESTABLISHED}, kUser), kOurs);
    EXPECT_EQ(owner_of({1004, 4711, TCP_ESTABLISHED}, kUser), (SocketOwner{Whose::other, 1004}));
    EXPECT_EQ(owner_of({kUser, 4711, TCP_FIN_WAIT2}, kUser), kOurs) << "it still reads";
    // Its process has closed it. The user is that of the socket if it is none that a kernel puts in
    // its place: root, or the one for users that are not known in a namespace.
    EXPECT_EQ(owner_of({0, 0, TCP_FIN_WAIT2}, kUser).whose, Whose::gone);
    EXPECT_EQ(owner_of({0, 0, TCP_FIN_WAIT1}, 0).whose, Whose::gone);
    EXPECT_EQ(owner_of({kNobody, 0, TCP_FIN_WAIT1}, kNobody).whose, Whose::gone);
    EXPECT_EQ(owner_of({kUser, 0, TCP_FIN_WAIT1}, kUser), kOurs);
    EXPECT_EQ(owner_of({1004, 0, TCP_FIN_WAIT1}, kUser), (SocketOwner{Whose::other, 1004}));
    EXPECT_EQ(owner_of({kUser, 4711, TCP_CLOSE}, kUser).whose, Whose::gone);
    // Another socket at the same port. While the store's end is there, none can be connected.
    for (const int state : {TCP_LISTEN, TCP_SYN_SENT, TCP_SYN_RECV})
        EXPECT_EQ(owner_of({kUser, 4711, state}, kUser).whose, Whose::not_here);
}

// ---- socket diagnostics

std::string message(std::uint16_t type, const void* body, std::size_t size) {
    nlmsghdr head{};
    head.nlmsg_type = type;
    head.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(size));
    std::string bytes(NLMSG_HDRLEN + size, '\0');
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + NLMSG_HDRLEN, body, size);
    return bytes;
}

Whose at_error(int error) {
    nlmsgerr body{};
    body.error = -error;
    return read_diagnosis(message(NLMSG_ERROR, &body, sizeof body), kUser).whose;
}

// Who cannot be asked now is not taken for one who is not there: that one comes in by its address.
TEST(SocketDiagnostics, OnlyOneErrorSaysThatThereIsNone) {
    EXPECT_EQ(at_error(ENOENT), Whose::not_here);
    for (const int error : {ENOMEM, ENOBUFS, EAGAIN, EINTR})
        EXPECT_EQ(at_error(error), Whose::failed) << error;
    for (const int error : {EPERM, EOPNOTSUPP, EINVAL}) EXPECT_EQ(at_error(error), Whose::unknown);
}

TEST(SocketDiagnostics, NameTheUser) {
    inet_diag_msg body{};
    body.idiag_uid = 1004;
    body.idiag_inode = 4711;
    body.idiag_state = TCP_ESTABLISHED;
    const std::string whole = message(SOCK_DIAG_BY_FAMILY, &body, sizeof body);
    EXPECT_EQ(read_diagnosis(whole, kUser), (SocketOwner{Whose::other, 1004}));
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(read_diagnosis(whole.substr(0, size), kUser).whose, Whose::failed) << size;
    EXPECT_EQ(read_diagnosis(message(NLMSG_NOOP, &body, sizeof body), kUser).whose, Whose::failed);
}

// ---- the table

const std::string kHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n";

std::string line(const std::string& local, const std::string& remote, const char* rest) {
    return "   0: " + local + " " + remote + rest;
}
const char* const kOpen = " 01 00000000:00000000 02:00000FA6 00000000  1003        0 4711 2 00\n";
const char* const kOrphan = " 04 00000000:00000000 02:00000FA6 00000000     0        0 0 2 00\n";

// The form of /proc/net/tcp and tcp6 on this host.
TEST(SocketTable, HasOwners) {
    const Ends ends{{make_address("127.0.0.1"), 0xA001}, {make_address("127.0.0.1"), 80}};
    const auto owner = [&](const std::string& lines) {
        std::istringstream text(kHead + lines);
        const TableRead read = read_socket_table(text, {ends}, kUser, 10);
        EXPECT_TRUE(read.whole);
        return read.owners.at(0);
    };
    EXPECT_THAT(owner(line("0100007F:A001", "0100007F:0050", kOpen)), Optional(kOurs));
    EXPECT_EQ(owner(line("0100007F:A001", "0100007F:0050", kOrphan))->whose, Whose::gone);
    EXPECT_FALSE(owner(line("0100007F:0050", "0100007F:A001", kOpen))) << "our own end";
    EXPECT_FALSE(owner(line("0100007F:A001", "00000000:0000",
                            " 0A 00000000:00000000 02:00000FA6 00000000  1003        0 4711\n")))
        << "one that listens";
    EXPECT_THAT(owner(line("0000000000000000FFFF00000100007F:A001",
                           "0000000000000000FFFF00000100007F:0050", kOpen)),
                Optional(kOurs));
    EXPECT_FALSE(owner(""));
    EXPECT_FALSE(owner("   0: \n :\n: 1\n" + line("0100007F:A001", "0100007F:0050", " 01\n")));
}

// A text that can be read once only, and counts its lines.
class Lines : public std::streambuf {
  public:
    explicit Lines(std::vector<std::string> lines) : lines_(std::move(lines)) {}
    std::size_t given = 0;

  private:
    int_type underflow() override {
        if (given == lines_.size()) return traits_type::eof();
        std::string& next = lines_[given++];
        setg(next.data(), next.data(), next.data() + next.size());
        return traits_type::to_int_type(next[0]);
    }
    std::vector<std::string> lines_;
};

// A question of the largest size, on a host with many connections: one pass, and not one for each.
TEST(SocketTable, IsReadOnceForAll) {
    std::vector<std::string> lines = {kHead};
    std::vector<Ends> all;
    char local[32];
    for (std::uint16_t i = 0; i < 10'000; ++i) {
        std::snprintf(local, sizeof local, "0100007F:%04X", i);
        lines.push_back(line(local, "0100007F:0050", kOpen));
        if (all.size() < kSocketsAsked && i % 10 == 9)
            all.push_back({{make_address("127.0.0.1"), i}, {make_address("127.0.0.1"), 80}});
    }
    ASSERT_EQ(all.size(), kSocketsAsked);
    Lines text(lines);
    std::istream table(&text);
    const TableRead read = read_socket_table(table, all, kUser, lines.size() + 1);
    EXPECT_EQ(text.given, lines.size());
    EXPECT_TRUE(read.whole);
    EXPECT_THAT(read.owners, Each(Optional(kOurs)));
    // Other users of the host can make it longer: it is not read without a bound.
    Lines long_text(lines);
    std::istream long_table(&long_text);
    EXPECT_FALSE(read_socket_table(long_table, all, kUser, 100).whole);
    EXPECT_LE(long_text.given, 101u);
}

// ---- this kernel

// A socket that is bound to an interface needs no privilege, and is not found without its name.
TEST(SocketUsers, FindSocketsThatAreBoundToAnInterface) {
    boost::asio::io_context loop;
    tcp::acceptor acceptor(loop, {make_address("127.0.0.1"), 0});
    tcp::socket bound(loop, tcp::v4());
    if (::setsockopt(bound.native_handle(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) != 0)
        GTEST_SKIP() << "older kernels let only root do it";
    bound.connect(acceptor.local_endpoint());
    tcp::socket plain(loop);
    plain.connect(acceptor.local_endpoint());
    SocketUsers users(::geteuid());
    // Once the diagnostics have found something, the table is not read, where it would stand, too.
    EXPECT_EQ(users.owner(plain.local_endpoint(), plain.remote_endpoint()), kOurs);
    EXPECT_EQ(users.owner(bound.local_endpoint(), bound.remote_endpoint()), kOurs);
    const tcp::endpoint free(make_address("127.0.0.1"), 1);
    EXPECT_EQ(users.owner(free, bound.remote_endpoint()).whose, Whose::not_here);
}

}  // namespace
}  // namespace ddprun::store
