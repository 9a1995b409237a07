// Looks up host names: literal address, /etc/hosts, `getent ahosts`, and for our own name loopback.
#include "base/loop/resolve.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/loop/child_program.h"

namespace ddprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// The longest name that DNS allows.
constexpr std::size_t kMaxHostName = 255;

// Host names are compared without regard to case, as in DNS.
bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

// Ignores text that is no address, and addresses that are in the list already.
void add_address(Addresses& addresses, const std::string& text) {
    error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (!error && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
        addresses.push_back(address);
}

// The name becomes an argument of getent. It must not look like an option, and must have no
// character that cannot occur in a name or in an address ('%' is for an IPv6 scope).
bool is_host_name(const std::string& host) {
    return !host.empty() && host.size() <= kMaxHostName && host.front() != '-' &&
           std::all_of(host.begin(), host.end(), [](unsigned char c) {
               return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == ':' || c == '%';
           });
}

Addresses loopback() {
    return {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
}

std::vector<std::string> getent_words(const std::string& host) {
    return {"getent", "ahosts", host};
}

// getent uses the system's C library, so it knows what NSS knows (DNS, LDAP, NIS). A static binary
// cannot load NSS modules.
asio::awaitable<Result<Addresses>> ask_getent(std::string host, Duration limit) {
    const auto answer = co_await run_program(getent_words(host), "", limit);
    if (!answer)
        co_return Error(answer.error().code(),
                        "looking up " + host + ": " + answer.error().sentence());
    Addresses found = parse_ahosts(answer->output);
    if (found.empty())
        co_return Error(ErrorCode::not_found, "unknown host " + host + " (getent ahosts " + host +
                                                  " exited with " + std::to_string(answer->code) +
                                                  ")");
    co_return found;
}

// Answers without another process. /etc/hosts is a small local file, so it is read here on the
// loop.
Addresses known_here(const std::string& host) {
    Addresses found;
    add_address(found, host);
    if (!found.empty()) return found;
    std::ifstream file("/etc/hosts");
    const std::string hosts((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    found = find_in_hosts(hosts, host);
    if (found.empty() && same_name(host, "localhost")) return loopback();
    return found;
}

// gethostname() need not write the final zero byte of a long name. The array has one byte more than
// we pass.
bool is_own_name(const std::string& host) {
    std::array<char, kMaxHostName + 2> own{};
    return ::gethostname(own.data(), own.size() - 1) == 0 && same_name(host, own.data());
}

}  // namespace

Addresses find_in_hosts(std::string_view text, std::string_view name) {
    Addresses found;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string address;
        words >> address;
        // A line is "address name alias…"; text after '#' is a comment.
        for (std::string word; words >> word;)
            if (same_name(word, name)) add_address(found, address);
    }
    return found;
}

// Lines look like "10.0.0.7 STREAM n1". getent lists each address once per socket type;
// add_address() keeps one.
Addresses parse_ahosts(std::string_view text) {
    Addresses found;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);)
        add_address(found, line.substr(0, line.find(' ')));
    return found;
}

asio::awaitable<Result<Addresses>> resolve(std::string host, Duration limit) {
    if (!is_host_name(host))
        co_return Error(ErrorCode::malformed, "\"" + host + "\" is not a host name");
    Addresses known = known_here(host);
    if (!known.empty()) co_return known;
    auto asked = co_await ask_getent(host, limit);
    // A host whose name nobody else knows can still reach itself.
    if (!asked && is_own_name(host)) co_return loopback();
    co_return asked;
}

void resolve(asio::io_context& loop, std::string host, Duration limit,
             std::function<void(Result<Addresses>)> done) {
    asio::co_spawn(loop, resolve(std::move(host), limit),
                   [&loop, done](std::exception_ptr failed, Result<Addresses> result) {
                       // Only lack of memory can throw here. It leaves io_context::run() and ends
                       // the process.
                       if (failed) std::rethrow_exception(failed);
                       asio::post(loop, [done, result] { done(result); });
                   });
}

}  // namespace ddprun
