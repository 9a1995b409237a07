// What a process has open: this one, with files and TCP connections of its own.
#include "diagnosis/stacks/open_files.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "base/system/unique_fd.h"
#include "tests/support/loop.h"

namespace ddprun::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Both ends of a connection over loopback, and the socket that listens.
struct Connection {
    UniqueFd listener, client, server;
    Connection() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const to = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        listener.reset(::socket(AF_INET, SOCK_STREAM, 0));
        EXPECT_EQ(::bind(listener.get(), to, size), 0);
        EXPECT_EQ(::listen(listener.get(), 1), 0);
        EXPECT_EQ(::getsockname(listener.get(), to, &size), 0);
        client.reset(::socket(AF_INET, SOCK_STREAM, 0));
        EXPECT_EQ(::connect(client.get(), to, size), 0);
        server.reset(::accept(listener.get(), nullptr, nullptr));
        EXPECT_GE(server.get(), 0);
    }
    // From now on nothing that comes reaches the other end, as on a lost network.
    void lose() const {
        sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
        const sock_fprog program{1, &drop};
        EXPECT_EQ(
            ::setsockopt(server.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
    }
};

std::string port_of(int socket) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

TEST(OpenFiles, TellFilesAndConnections) {
    const Folder folder;
    const std::string path = folder / "train.bin";
    std::ofstream file(path);
    file << "12345" << std::flush;
    const Connection connection;
    ASSERT_EQ(::write(connection.client.get(), "abc", 3), 3);
    const StackLines lines = open_files(::getpid(), tcp_sockets());
    EXPECT_THAT(lines, Contains(EndsWith(": " + path + ", at byte 5")));
    const std::string client = port_of(connection.client.get()),
                      server = port_of(connection.server.get());
    EXPECT_THAT(lines, Contains(std::to_string(connection.client.get()) + ": TCP " + client +
                                " to " + server));
    EXPECT_THAT(lines, Contains(std::to_string(connection.server.get()) + ": TCP " + server +
                                " to " + client + "; 3 bytes not read"));
    EXPECT_THAT(lines,
                Contains(std::to_string(connection.listener.get()) + ": TCP listens on " + server));
    EXPECT_THAT(open_files(999999999, {}), IsEmpty());
}

// What TCP sends again and again without an answer is seen. Nothing of it needs a right.
TEST(TcpSockets, ShowWhatIsNotAcknowledged) {
    const Connection connection;
    connection.lose();
    ASSERT_EQ(::write(connection.client.get(), "abc", 3), 3);
    const std::string client = port_of(connection.client.get());
    const auto lost = [&]() -> const TcpSocket* {
        static TcpSockets sockets;
        sockets = tcp_sockets();
        for (const auto& [inode, socket] : sockets)
            if (socket.local + ":" + std::to_string(socket.local_port) == client && inode != 0)
                return &socket;
        return nullptr;
    };
    // 0.2 + 0.4 + 0.8 s.
    for (int i = 0; i < 1000 && (!lost() || lost()->sent_again < 3); ++i) ::usleep(10'000);
    ASSERT_TRUE(lost());
    EXPECT_GE(lost()->sent_again, 3);
    EXPECT_EQ(lost()->unacknowledged, 3u);
    EXPECT_THAT(socket_text(*lost()),
                AllOf(StartsWith(client + " to "), HasSubstr("; 3 bytes not acknowledged, sent ")));
}

// The kernel's answer is trusted with nothing: any bytes at all harm nobody.
TEST(TcpSockets, SurviveNonsense) {
    std::mt19937 random(1);
    for (int i = 0; i < 10'000; ++i) {
        std::string answer(random() % 300, '\0');
        for (char& byte : answer) byte = static_cast<char>(random() % 4 ? 0 : random());
        if (answer.size() > 4) answer[0] = static_cast<char>(answer.size() % 256);
        TcpSockets sockets;
        add_tcp_sockets(answer, sockets);
    }
}

}  // namespace
}  // namespace ddprun::agent
