// Asks the kernel for all TCP sockets, over netlink.
#include "diagnosis/stacks/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "base/system/unique_fd.h"

namespace ddprun::agent {
namespace {

// Of inet_diag_msg: which timer runs.
constexpr int kRetransmits = 1;
// Sockets that are ending are of no interest: TIME_WAIT alone may be thousands.
constexpr std::uint32_t kStates = 1U << TCP_ESTABLISHED | 1U << TCP_SYN_SENT | 1U << TCP_LISTEN |
                                  1U << TCP_CLOSE_WAIT | 1U << TCP_FIN_WAIT1 | 1U << TCP_LAST_ACK;

// "10.0.0.7"; the same for an IPv4 address in an IPv6 socket.
std::string address_text(int family, const void* words) {
    char text[INET6_ADDRSTRLEN] = "";
    in6_addr six{};
    if (family == AF_INET6) std::memcpy(&six, words, sizeof six);
    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six))
        ::inet_ntop(AF_INET, &six.s6_addr[12], text, sizeof text);
    else
        ::inet_ntop(family, words, text, sizeof text);
    return text;
}

void add(const inet_diag_msg& message, TcpSockets& sockets) {
    TcpSocket socket;
    socket.listens = message.idiag_state == TCP_LISTEN;
    socket.local = address_text(message.idiag_family, message.id.idiag_src);
    socket.remote = address_text(message.idiag_family, message.id.idiag_dst);
    socket.local_port = ntohs(message.id.idiag_sport);
    socket.remote_port = ntohs(message.id.idiag_dport);
    // For one that listens these are other counts.
    if (!socket.listens) {
        socket.unread = message.idiag_rqueue;
        socket.unacknowledged = message.idiag_wqueue;
        if (message.idiag_timer == kRetransmits) socket.sent_again = message.idiag_retrans;
    }
    sockets.emplace(message.idiag_inode, std::move(socket));
}

bool ask_kernel(int netlink, std::uint8_t family) {
    struct {
        nlmsghdr header;
        inet_diag_req_v2 request;
    } question{};
    question.header.nlmsg_len = sizeof question;
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    question.request.sdiag_family = family;
    question.request.sdiag_protocol = IPPROTO_TCP;
    question.request.idiag_states = kStates;
    return ::send(netlink, &question, sizeof question, 0) == sizeof question;
}

}  // namespace

bool add_tcp_sockets(std::string_view answer, TcpSockets& sockets) {
    while (answer.size() >= sizeof(nlmsghdr)) {
        nlmsghdr header{};
        std::memcpy(&header, answer.data(), sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > answer.size()) return false;
        if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) return false;
        inet_diag_msg message{};
        if (header.nlmsg_len < NLMSG_HDRLEN + sizeof message) return false;
        std::memcpy(&message, answer.data() + NLMSG_HDRLEN, sizeof message);
        if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY) add(message, sockets);
        answer.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), answer.size()));
    }
    return true;
}

TcpSockets tcp_sockets() {
    TcpSockets sockets;
    const UniqueFd netlink(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!netlink) return sockets;
    // The kernel answers at once; the limit is for one that does not.
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::vector<char> part(1 << 16);
    for (const int family : {AF_INET, AF_INET6}) {
        if (!ask_kernel(netlink.get(), static_cast<std::uint8_t>(family))) continue;
        for (ssize_t size = 1; size > 0;) {
            size = ::recv(netlink.get(), part.data(), part.size(), 0);
            if (size <= 0 ||
                !add_tcp_sockets({part.data(), static_cast<std::size_t>(size)}, sockets))
                break;
        }
    }
    return sockets;
}

}  // namespace ddprun::agent
