// A real etcd on loopback, Debian's: started, killed, frozen and started again by the test. Its
// data lies in a folder of its own that outlives each start. Gone, with its data, when the test is.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/support/loop.h"

namespace ddprun::rendezvous {

class EtcdServer {
  public:
    static bool installed() { return ::access("/usr/bin/etcd", X_OK) == 0; }

    explicit EtcdServer(std::vector<std::string> options = {}) : options_(std::move(options)) {
        start();
    }
    ~EtcdServer() { kill(); }
    EtcdServer(const EtcdServer&) = delete;

    std::uint16_t port() const { return port_; }

    // On the same ports with the same data. Whether it answers on its port.
    void start() {
        const std::string client = "http://127.0.0.1:" + std::to_string(port_);
        const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
        std::vector<std::string> words{
            "etcd", "--data-dir", folder_ / "data", "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
            // It is alone: it need not wait long to lead.
            "--heartbeat-interval", "10", "--election-timeout", "100"};
        words.insert(words.end(), options_.begin(), options_.end());
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const std::string log = folder_ / "log";
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);
            const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            ::dup2(out, 1);
            ::dup2(out, 2);
            ::execv("/usr/bin/etcd", arguments.data());
            ::_exit(127);
        }
        ASSERT_TRUE(listens()) << "etcd does not listen: see " << log;
    }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    void freeze() {
        ::kill(pid_, SIGSTOP);
        ::waitpid(pid_, nullptr, WUNTRACED);  // its threads stop one after the other
    }
    void go_on() { ::kill(pid_, SIGCONT); }

  private:
    // Below those that ddprun takes for its jobs and those that the kernel gives to clients: while
    // etcd is down nobody else gets it.
    static std::uint16_t free_port() {
        asio::io_context loop;
        std::random_device device;
        while (true) {
            const auto port = std::uniform_int_distribution<std::uint16_t>(10'000, 19'999)(device);
            tcp::acceptor probe(loop, tcp::v4());
            boost::system::error_code error;
            probe.bind({asio::ip::address_v4::loopback(), port}, error);
            if (!error) return port;
        }
    }
    bool listens() const {
        asio::io_context loop;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        while (std::chrono::steady_clock::now() < deadline) {
            tcp::socket socket(loop);
            boost::system::error_code error;
            socket.connect({asio::ip::address_v4::loopback(), port_}, error);
            if (!error) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        return false;
    }

    // In memory where that can be: a busy disk may take a second for each of etcd's writes.
    Folder folder_{std::filesystem::is_directory("/dev/shm") ? "/dev/shm/" : testing::TempDir()};
    std::vector<std::string> options_;
    std::uint16_t port_ = free_port(), peer_port_ = free_port();
    pid_t pid_ = -1;
};

}  // namespace ddprun::rendezvous
