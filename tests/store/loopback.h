// A real worker store on a free port of 127.0.0.1, for the tests with sockets, and a raw connection
// to it that sends any bytes. A test can wait for the store's log lines and for first contacts.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/client/client_socket.h"
#include "store/server/store_thread.h"

namespace ddprun::store::test {

// The time limit of every wait. A passing test never waits this long; a failing one ends.
inline constexpr std::chrono::seconds kLong{20};

// A socket and its port. bind_v4() only binds, so callers are refused until somebody calls
// listen(). listen_v4() listens on 127.0.0.1. listen_any() listens on [::] for IPv4 and IPv6; its
// fd is -1 if the host has no IPv6.
struct Listening {
    int fd = -1;
    std::uint16_t port = 0;
};

// Port 0: the kernel chooses a free one, so tests can run side by side.
inline Listening bind_v4(std::uint16_t port = 0) {
    Listening made;
    made.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(port);
    socklen_t size = sizeof name;
    if (::bind(made.fd, reinterpret_cast<sockaddr*>(&name), size) != 0 ||
        ::getsockname(made.fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
        throw std::runtime_error("no socket on 127.0.0.1");
    }
    made.port = ntohs(name.sin_port);
    return made;
}

inline Listening listen_v4(std::uint16_t port = 0) {
    const Listening made = bind_v4(port);
    if (::listen(made.fd, SOMAXCONN) != 0)
        throw std::runtime_error("no listening socket on 127.0.0.1");
    return made;
}

inline Listening listen_any() {
    Listening made;
    made.fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int off = 0;
    // IPv4 callers then arrive with the mapped address ::ffff:a.b.c.d.
    ::setsockopt(made.fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_addr = in6addr_any;
    socklen_t size = sizeof name;
    if (made.fd < 0 || ::bind(made.fd, reinterpret_cast<sockaddr*>(&name), size) != 0 ||
        ::listen(made.fd, 128) != 0 ||
        ::getsockname(made.fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
        if (made.fd >= 0) ::close(made.fd);
        return {};
    }
    made.port = ntohs(name.sin6_port);
    return made;
}

// A store on its own thread. It replaces `log` and `on_contact` of the options. Both are called on
// the store's thread, so a mutex guards what they write.
class Loopback {
  public:
    explicit Loopback(ServerOptions options = {}, Listening at = listen_v4()) : port(at.port) {
        options.log = [this](const std::string& line) {
            const std::lock_guard lock(mutex_);
            lines_.push_back(line);
            changed_.notify_all();
        };
        options.on_contact = [this](std::uint64_t processes) {
            const std::lock_guard lock(mutex_);
            contacts_ = static_cast<int>(processes);
            changed_.notify_all();
        };
        store = std::move(StoreThread::start(at.fd, std::move(options)).value());
    }

    // Waits for a line with `text` and returns the newest one. Empty: none came within kLong.
    std::string wait_for_line(const std::string& text) {
        std::unique_lock lock(mutex_);
        std::string found;
        changed_.wait_for(lock, kLong, [&] {
            for (const std::string& line : lines_) {
                if (line.find(text) != std::string::npos) found = line;
            }
            return !found.empty();
        });
        return found;
    }
    bool wait_for_contacts(int count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kLong, [&] { return contacts_ >= count; });
    }
    int contacts() {  // of processes
        const std::lock_guard lock(mutex_);
        return contacts_;
    }
    std::vector<std::string> lines() {
        const std::lock_guard lock(mutex_);
        return lines_;
    }

    std::uint16_t port;

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> lines_;
    int contacts_ = 0;

  public:
    // Declared last: its thread uses the members above, so it must end before they go.
    std::unique_ptr<StoreThread> store;
};

// A connection without a client's rules: it sends the bytes that the test gives it, right or wrong.
class Raw {
  public:
    explicit Raw(std::uint16_t port, const std::string& host = "127.0.0.1")
        : socket_(std::move(ClientSocket::connect(host, port, soon()).value())) {}

    // The store may have closed the connection already. Then the next receive() says so.
    void send(const std::string& bytes) { (void)socket_.send(bytes, soon()); }
    // Exactly `count` bytes, or in their place the name of the error ("closed").
    std::string receive(std::size_t count) {
        std::string bytes(count, '\0');
        const Result<> got = socket_.receive(bytes.data(), count, soon());
        return got ? bytes : to_string(got.error().code());
    }
    // A byte if one is there, else nothing.
    std::string receive_now() {
        char byte = 0;
        return socket_.receive_some(&byte, 1, Deadline::clock::now()) ? std::string(1, byte) : "";
    }
    // Whether the store closes the connection without another byte.
    bool ends() { return receive(1) == "closed"; }

  private:
    static Deadline soon() { return Deadline::clock::now() + kLong; }

    ClientSocket socket_;
};

}  // namespace ddprun::store::test
