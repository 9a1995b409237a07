// One pass over the lines; only those that are asked for are read to their end.
#include "store/door/socket_table.h"

#include <netinet/tcp.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "store/door/plain_address.h"

namespace ddprun::store {
namespace {

namespace ip = boost::asio::ip;

// Whom the kernel names for a user that has no number in the namespace of who asks.
constexpr std::uint32_t kUnknownUser = 65534;

// As the kernel prints it: the address as words of this host in hexadecimal, a colon, the port.
std::string as_in_table(const ip::tcp::endpoint& endpoint, bool as_v6) {
    const ip::address address = plain_address(endpoint.address());
    std::uint32_t words[4] = {};
    put_address(address.is_v4() && as_v6
                    ? ip::address(ip::make_address_v6(ip::v4_mapped, address.to_v4()))
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

// "0100007F:A001 0100007F:0050" of "   0: 0100007F:A001 0100007F:0050 01 …"; empty for the head.
std::string_view ends_in(std::string_view line) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return {};
    line.remove_prefix(colon + 2);
    return line.substr(0, line.find(' ', line.find(' ') + 1));
}

std::optional<FoundSocket> socket_in(const std::string& line) {
    std::istringstream words(line);
    std::string word, state, ignored;
    FoundSocket found;
    if (!(words >> word >> word >> word >> state >> word >> word >> word >> found.uid >> ignored >>
          found.inode))
        return std::nullopt;
    std::from_chars(state.data(), state.data() + state.size(), found.state, 16);
    return found;
}

}  // namespace

SocketOwner owner_of(const FoundSocket& socket, std::uint32_t user) {
    if (socket.state == TCP_LISTEN || socket.state == TCP_SYN_SENT || socket.state == TCP_SYN_RECV)
        return {Whose::not_here, 0};
    const bool closed = socket.inode == 0;
    const bool has_user = socket.uid != 0 && socket.uid != kUnknownUser;
    if (socket.state == TCP_CLOSE || (closed && !has_user)) return {Whose::gone, 0};
    if (socket.uid == user || socket.uid == 0) return {Whose::ours, 0};
    return {Whose::other, socket.uid};
}

void put_address(const ip::address& address, std::uint32_t (&into)[4]) {
    if (address.is_v4())
        std::memcpy(into, address.to_v4().to_bytes().data(), 4);
    else
        std::memcpy(into, address.to_v6().to_bytes().data(), 16);
}

TableRead read_socket_table(std::istream& table, const std::vector<Ends>& all, std::uint32_t user,
                            std::size_t most) {
    // A socket for both families has IPv4 addresses mapped into IPv6.
    std::multimap<std::string, std::size_t, std::less<>> asked;
    for (std::size_t i = 0; i < all.size(); ++i)
        for (const bool as_v6 : {false, true})
            asked.emplace(
                as_in_table(all[i].first, as_v6) + ' ' + as_in_table(all[i].second, as_v6), i);
    TableRead read{std::vector<std::optional<SocketOwner>>(all.size()), false};
    std::string line;
    for (std::size_t lines = 0; lines < most; ++lines) {
        if (!std::getline(table, line)) {
            read.whole = table.eof();
            break;
        }
        const auto [first, last] = asked.equal_range(ends_in(line));
        const auto found = first == last ? std::nullopt : socket_in(line);
        if (!found) continue;
        const SocketOwner owner = owner_of(*found, user);
        for (auto one = first; one != last; ++one)
            if (owner.whose != Whose::not_here) read.owners[one->second] = owner;
    }
    return read;
}

}  // namespace ddprun::store
