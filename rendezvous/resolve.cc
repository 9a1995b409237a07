#include "rendezvous/resolve.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

extern char** environ;

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kMaxHostName = 255;
constexpr std::size_t kMaxOutput = 65536;

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        return std::tolower(x) == std::tolower(y);
    });
}

void add_address(Addresses& addresses, const std::string& text) {
    error_code error;
    const auto address = asio::ip::make_address(text, error);
    if (!error && std::find(addresses.begin(), addresses.end(), address) == addresses.end())
        addresses.push_back(address);
}

// What becomes an argument of a program must not look like an option, and hold nothing a name
// cannot.
bool is_host_name(const std::string& host) {
    return !host.empty() && host.size() <= kMaxHostName && host.front() != '-' &&
           std::all_of(host.begin(), host.end(), [](unsigned char c) {
               return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == ':' || c == '%';
           });
}

Addresses loopback() {
    return {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
}

// A child that is running: killed and reaped by whoever lets go of it, so that none is left behind.
class Child {
  public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        wait();
    }
    // After its output has ended: it has nothing left to do but exit. -1: it did not exit by
    // itself.
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    pid_t pid_;
};

struct Getent {
    pid_t pid = -1;
    int output = -1;
};

Result<Getent> start_getent(const std::string& host) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return Error(ErrorCode::unavailable,
                     std::string("no pipe for getent: ") + ::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    // Our ignored and blocked signals are not the child's.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string program = "getent", database = "ahosts", name = host;
    char* const arguments[] = {program.data(), database.data(), name.data(), nullptr};
    Getent getent;
    const int failed =
        ::posix_spawnp(&getent.pid, "getent", &actions, &attributes, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    getent.output = ends[0];
    if (failed == 0) return getent;
    ::close(ends[0]);
    return Error(ErrorCode::unavailable,
                 "cannot start getent to look up " + host + ": " + ::strerror(failed));
}

// All that comes through the pipe until its end; timed_out when `limit` has passed before.
asio::awaitable<Result<std::string>> read_all(int descriptor, Duration limit) {
    const auto executor = co_await asio::this_coro::executor;
    const auto pipe = std::make_shared<asio::posix::stream_descriptor>(executor, descriptor);
    const auto late = std::make_shared<bool>(false);
    asio::steady_timer timer(executor, limit);
    timer.async_wait([pipe, late](error_code error) {
        if (error) return;
        *late = true;
        pipe->close(error);
    });
    std::string text;
    std::array<char, 4096> piece;
    error_code error;
    while (!error && text.size() < kMaxOutput) {
        const std::size_t size = co_await pipe->async_read_some(
            asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
        text.append(piece.data(), size);
    }
    timer.cancel();
    if (*late) co_return Error(ErrorCode::timed_out, "getent did not answer");
    co_return text;
}

asio::awaitable<Result<Addresses>> ask_getent(std::string host, Duration limit) {
    const auto started = start_getent(host);
    if (!started) co_return started.error();
    Child child(started->pid);
    const auto text = co_await read_all(started->output, limit);
    if (!text)
        co_return Error(text.error().code(),
                        "looking up " + host + ": getent did not answer within " + to_text(limit));
    const int code = child.wait();
    Addresses found = parse_ahosts(*text);
    if (found.empty())
        co_return Error(ErrorCode::not_found, "nobody knows the host " + host + " (getent ahosts " +
                                                  host + " exited with " + std::to_string(code) +
                                                  ")");
    co_return found;
}

// What can be said without asking anyone. /etc/hosts is local and small: read here, on the loop.
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
        for (std::string word; words >> word;)
            if (same_name(word, name)) add_address(found, address);
    }
    return found;
}

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
    // A host that nobody else knows still knows itself.
    if (!asked && is_own_name(host)) co_return loopback();
    co_return asked;
}

void resolve(asio::io_context& loop, std::string host, Duration limit,
             std::function<void(Result<Addresses>)> done) {
    asio::co_spawn(loop, resolve(std::move(host), limit),
                   [&loop, done](std::exception_ptr failed, Result<Addresses> result) {
                       if (failed) std::rethrow_exception(failed);  // no memory: ends the process
                       asio::post(loop, [done, result] { done(result); });
                   });
}

}  // namespace ddprun::rendezvous
