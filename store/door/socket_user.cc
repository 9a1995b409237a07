// The question to sock_diag(7), and to /proc/net/tcp.
#include "store/door/socket_user.h"

#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "store/door/plain_address.h"

namespace ddprun::store {
namespace {

namespace ip = boost::asio::ip;

// Whether another attempt may succeed. Else this process may not ask at all.
bool passes(int error) {
    return error == ENOMEM || error == ENOBUFS || error == EAGAIN || error == EINTR ||
           error == EMFILE || error == ENFILE || error == EBUSY;
}

SocketOwner without_answer(int error) {
    return {passes(error) ? Whose::failed : Whose::unknown, 0};
}

struct Question {
    nlmsghdr head{};
    inet_diag_req_v2 ask{};
};

Question question(const Ends& ends, unsigned interface, std::uint32_t number) {
    Question q;
    q.head.nlmsg_len = sizeof q;
    q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    q.head.nlmsg_flags = NLM_F_REQUEST;
    q.head.nlmsg_seq = number;
    const auto& [theirs, ours] = ends;
    const ip::address from = plain_address(theirs.address());
    q.ask.sdiag_family = from.is_v4() ? AF_INET : AF_INET6;
    q.ask.sdiag_protocol = IPPROTO_TCP;
    q.ask.idiag_states = ~0u;
    q.ask.id.idiag_sport = htons(theirs.port());
    q.ask.id.idiag_dport = htons(ours.port());
    put_address(from, q.ask.id.idiag_src);
    put_address(plain_address(ours.address()), q.ask.id.idiag_dst);
    q.ask.id.idiag_if = interface;
    q.ask.id.idiag_cookie[0] = q.ask.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return q;
}

std::set<ip::address> addresses_of_host() {
    std::set<ip::address> all;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return all;
    for (const ifaddrs* one = first; one; one = one->ifa_next) {
        if (!one->ifa_addr) continue;
        if (one->ifa_addr->sa_family == AF_INET) {
            const auto* v4 = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
            all.emplace(ip::address_v4(ntohl(v4->sin_addr.s_addr)));
        } else if (one->ifa_addr->sa_family == AF_INET6) {
            const auto* v6 = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
            ip::address_v6::bytes_type bytes;
            std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
            all.emplace(plain_address(ip::address_v6(bytes)));
        }
    }
    ::freeifaddrs(first);
    return all;
}

std::vector<unsigned> interfaces_of_host() {
    std::vector<unsigned> all;
    struct if_nameindex* const first = ::if_nameindex();
    for (const auto* one = first; one && one->if_index != 0; ++one) all.push_back(one->if_index);
    if (first) ::if_freenameindex(first);
    return all;
}

// Both of the kernel's tables of TCP connections. What is in neither is not here; if one cannot be
// read to its end, that is open.
std::vector<SocketOwner> owners_in_tables(const std::vector<Ends>& all, uid_t user) {
    std::vector<SocketOwner> owners(all.size(), {Whose::not_here, 0});
    for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        errno = 0;
        std::ifstream file(path);
        // A host may have no IPv6.
        if (!file && errno == ENOENT && path == std::string_view("/proc/net/tcp6")) continue;
        TableRead read{std::vector<std::optional<SocketOwner>>(all.size()), false};
        const SocketOwner else_ = file ? SocketOwner{Whose::failed, 0} : without_answer(errno);
        if (file) read = read_socket_table(file, all, user, SocketUsers::kMostLines);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (read.owners[i])
                owners[i] = *read.owners[i];
            else if (!read.whole && owners[i].whose == Whose::not_here)
                owners[i] = else_;
        }
    }
    return owners;
}

}  // namespace

SocketUsers::SocketUsers(uid_t user) : user_(user) { open_diagnostics(); }

void SocketUsers::open_diagnostics() {
    diagnostics_ =
        UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
    without_ = diagnostics_ ? 0 : errno;
}

bool SocketUsers::is_here(const ip::address& address) {
    const ip::address plain = plain_address(address);
    if (plain.is_loopback()) return true;
    if (!here_) here_ = addresses_of_host();
    return here_->contains(plain);
}

SocketOwner SocketUsers::owner(const Endpoint& theirs, const Endpoint& ours) {
    return owners({{theirs, ours}}).front();
}

std::vector<SocketOwner> SocketUsers::owners(const std::vector<Ends>& all) {
    if (!diagnostics_ && passes(without_)) open_diagnostics();
    std::vector<SocketOwner> owners;
    std::vector<unsigned> interfaces;
    for (const Ends& ends : all) owners.push_back(ask(ends, interfaces));
    std::vector<std::size_t> open;
    std::vector<Ends> open_ends;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Whose whose = owners[i].whose;
        const bool is_open = whose == Whose::unknown || whose == Whose::failed ||
                             (whose == Whose::not_here && !has_found_);
        if (!is_open) continue;
        open.push_back(i);
        open_ends.push_back(all[i]);
    }
    if (open.empty()) return owners;
    const std::vector<SocketOwner> in_tables = owners_in_tables(open_ends, user_);
    for (std::size_t i = 0; i < open.size(); ++i) {
        SocketOwner& owner = owners[open[i]];
        // A kernel that usually tells has not told this time.
        const bool is_error = owner.whose == Whose::failed || has_found_;
        owner = in_tables[i].whose == Whose::unknown && is_error ? SocketOwner{Whose::failed, 0}
                                                                 : in_tables[i];
    }
    return owners;
}

// `interfaces`: of this host; empty: not looked up yet.
SocketOwner SocketUsers::ask(const Ends& ends, std::vector<unsigned>& interfaces) {
    const SocketOwner owner = ask_kernel(ends, 0);
    if (owner.whose != Whose::not_here) return owner;
    if (interfaces.empty()) interfaces = interfaces_of_host();
    if (interfaces.empty() || interfaces.size() > kMostInterfaces) return {Whose::failed, 0};
    for (const unsigned interface : interfaces)
        if (const SocketOwner bound = ask_kernel(ends, interface); bound.whose != Whose::not_here)
            return bound;
    return owner;
}

SocketOwner SocketUsers::ask_kernel(const Ends& ends, unsigned interface) {
    if (!diagnostics_) return without_answer(without_);
    const Question q = question(ends, interface, ++question_);
    if (::send(diagnostics_.get(), &q, sizeof q, 0) != static_cast<ssize_t>(sizeof q))
        return without_answer(errno);
    alignas(nlmsghdr) std::array<char, 1024> bytes;
    const nlmsghdr* const head = reinterpret_cast<const nlmsghdr*>(bytes.data());
    for (;;) {
        const ssize_t got = ::recv(diagnostics_.get(), bytes.data(), bytes.size(), 0);
        if (got < 0) return without_answer(errno);
        // The answer to a question whose own answer was not taken.
        if (got >= static_cast<ssize_t>(sizeof *head) && head->nlmsg_seq != question_) continue;
        const SocketOwner owner =
            read_diagnosis({bytes.data(), static_cast<std::size_t>(got)}, user_);
        has_found_ |= owner.whose != Whose::not_here && owner.whose != Whose::unknown &&
                      owner.whose != Whose::failed;
        return owner;
    }
}

SocketOwner read_diagnosis(std::string_view message, uid_t user) {
    nlmsghdr head{};
    if (message.size() < sizeof head) return {Whose::failed, 0};
    std::memcpy(&head, message.data(), sizeof head);
    message.remove_prefix(NLMSG_HDRLEN);
    if (head.nlmsg_type == NLMSG_ERROR && message.size() >= sizeof(nlmsgerr::error)) {
        int error = 0;
        std::memcpy(&error, message.data(), sizeof error);
        return error == -ENOENT ? SocketOwner{Whose::not_here, 0} : without_answer(-error);
    }
    inet_diag_msg found{};
    if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || message.size() < sizeof found)
        return {Whose::failed, 0};
    std::memcpy(&found, message.data(), sizeof found);
    return owner_of({found.idiag_uid, found.idiag_inode, found.idiag_state}, user);
}

}  // namespace ddprun::store
