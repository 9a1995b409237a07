// The question to sock_diag(7), and /proc/net/tcp.
#include "rendezvous/store/socket_user.h"

#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "rendezvous/store/plain_address.h"

namespace ddprun::store {
namespace {

namespace ip = boost::asio::ip;
using Owner = SocketUsers::Owner;
using Endpoint = SocketUsers::Endpoint;

Owner owned_by(uid_t uid, std::uint64_t inode, int state) {
    // A listening socket with this port is not the connection.
    if (state == TCP_LISTEN) return {Owner::Kind::not_here, 0};
    const bool is_open = inode != 0 && state != TCP_CLOSE;
    return is_open ? Owner{Owner::Kind::user, uid} : Owner{Owner::Kind::gone, 0};
}

void put(const ip::address& address, std::uint32_t (&into)[4]) {
    if (address.is_v4())
        std::memcpy(into, address.to_v4().to_bytes().data(), 4);
    else
        std::memcpy(into, address.to_v6().to_bytes().data(), 16);
}

struct Question {
    nlmsghdr head{};
    inet_diag_req_v2 ask{};
};

Question question(const Endpoint& theirs, const Endpoint& ours) {
    Question q;
    q.head.nlmsg_len = sizeof q;
    q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q.head.nlmsg_flags = NLM_F_REQUEST;
    const ip::address from = plain_address(theirs.address());
    q.ask.sdiag_family = from.is_v4() ? AF_INET : AF_INET6;
    q.ask.sdiag_protocol = IPPROTO_TCP;
    q.ask.idiag_states = ~0u;
    q.ask.id.idiag_sport = htons(theirs.port());
    q.ask.id.idiag_dport = htons(ours.port());
    put(from, q.ask.id.idiag_src);
    put(plain_address(ours.address()), q.ask.id.idiag_dst);
    // A link-local address is one only together with its interface.
    if (from.is_v6())
        q.ask.id.idiag_if = static_cast<std::uint32_t>(theirs.address().to_v6().scope_id());
    q.ask.id.idiag_cookie[0] = q.ask.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return q;
}

// Nothing: there is no such socket, or no diagnostics of TCP; the kernel says the same for both.
std::optional<Owner> ask_kernel(int diagnostics, const Question& q) {
    if (::send(diagnostics, &q, sizeof q, 0) != static_cast<ssize_t>(sizeof q)) return std::nullopt;
    alignas(nlmsghdr) std::array<char, 1024> bytes;
    const ssize_t got = ::recv(diagnostics, bytes.data(), bytes.size(), 0);
    const auto* head = reinterpret_cast<const nlmsghdr*>(bytes.data());
    if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))) ||
        head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return std::nullopt;
    const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(head));
    return owned_by(found->idiag_uid, found->idiag_inode, found->idiag_state);
}

// As the kernel prints it: the address as words of this host in hexadecimal, a colon, the port.
std::string as_in_table(const Endpoint& endpoint, bool as_v6) {
    const ip::address address = plain_address(endpoint.address());
    std::uint32_t words[4] = {};
    put(address.is_v4() && as_v6 ? ip::address(ip::make_address_v6(ip::v4_mapped, address.to_v4()))
                                 : address,
        words);
    std::string text;
    char piece[16];
    for (int i = 0; i < (address.is_v6() || as_v6 ? 4 : 1); ++i) {
        std::snprintf(piece, sizeof piece, "%08X", words[i]);
        text += piece;
    }
    std::snprintf(piece, sizeof piece, ":%04X", endpoint.port());
    return text + piece;
}

std::map<ip::address, std::uint32_t> addresses_of_host() {
    std::map<ip::address, std::uint32_t> all;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return all;
    for (const ifaddrs* one = first; one; one = one->ifa_next) {
        if (!one->ifa_addr) continue;
        if (one->ifa_addr->sa_family == AF_INET) {
            const auto* v4 = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
            all.emplace(ip::address_v4(ntohl(v4->sin_addr.s_addr)), 0);
        } else if (one->ifa_addr->sa_family == AF_INET6) {
            const auto* v6 = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
            ip::address_v6::bytes_type bytes;
            std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
            all.emplace(plain_address(ip::address_v6(bytes)), v6->sin6_scope_id);
        }
    }
    ::freeifaddrs(first);
    return all;
}

// All of the kernel's tables of TCP connections; they are read once for many questions.
std::string kernel_tables() {
    std::string all;
    for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream file(path);
        all.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return all;
}

}  // namespace

SocketUsers::SocketUsers()
    : diagnostics_(
          ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG)),
      here_(addresses_of_host()) {}

bool SocketUsers::is_here(const ip::address& address) const {
    const ip::address plain = plain_address(address);
    return plain.is_loopback() || here_.contains(plain);
}

// The other host names a link-local address without the interface, which only this host knows.
Endpoint SocketUsers::with_scope(const Endpoint& theirs) const {
    const auto found = here_.find(plain_address(theirs.address()));
    if (found == here_.end() || found->second == 0 || !theirs.address().is_v6()) return theirs;
    ip::address_v6 address = theirs.address().to_v6();
    if (address.scope_id() == 0) address.scope_id(found->second);
    return {address, theirs.port()};
}

Owner SocketUsers::owner(const Endpoint& theirs, const Endpoint& ours) const {
    return owners({{theirs, ours}}).front();
}

std::vector<Owner> SocketUsers::owners(const std::vector<Ends>& all) const {
    std::vector<Owner> owners;
    std::optional<std::string> tables;
    for (const auto& [theirs, ours] : all) {
        std::optional<Owner> found;
        if (diagnostics_.get() >= 0)
            found = ask_kernel(diagnostics_.get(), question(with_scope(theirs), ours));
        has_answered_ |= found.has_value();
        if (!found && !has_answered_) {
            if (!tables) tables = kernel_tables();
            found = owner_in_table(*tables, theirs, ours);
        }
        const bool is_told = has_answered_ || (tables && !tables->empty());
        owners.push_back(
            found.value_or(Owner{is_told ? Owner::Kind::not_here : Owner::Kind::unknown, 0}));
    }
    return owners;
}

std::optional<Owner> owner_in_table(std::string_view table, const Endpoint& theirs,
                                    const Endpoint& ours) {
    std::istringstream lines{std::string(table)};
    std::string line, place, local, remote, state, queues, timer, retries, timeout;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        uid_t uid = 0;
        std::uint64_t inode = 0;
        int number = 0;
        if (!(words >> place >> local >> remote >> state >> queues >> timer >> retries >> uid >>
              timeout >> inode))
            continue;
        const bool as_v6 = local.size() > sizeof "00000000:0000";
        if (local != as_in_table(theirs, as_v6) || remote != as_in_table(ours, as_v6)) continue;
        std::from_chars(state.data(), state.data() + state.size(), number, 16);
        return owned_by(uid, inode, number);
    }
    return std::nullopt;
}

}  // namespace ddprun::store
