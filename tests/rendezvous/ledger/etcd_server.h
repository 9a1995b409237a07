// A real etcd (Debian's package) on loopback. The test starts, kills, freezes and continues it. Its
// data is in a folder of its own and survives each start. Both go with this object.
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

// `options` are added to the command line of each start.
class EtcdServer {
  public:
    static bool installed() { return ::access("/usr/bin/etcd", X_OK) == 0; }

    // `scheme`: https with certificates among the options.
    explicit EtcdServer(std::vector<std::string> options = {}, std::string scheme = "http")
        : options_(std::move(options)), scheme_(std::move(scheme)) {
        start();
    }
    ~EtcdServer() { kill(); }
    EtcdServer(const EtcdServer&) = delete;

    std::uint16_t port() const { return port_; }

    // Starts on the same ports with the same data, and waits until the port answers.
    void start() {
        const std::string client = scheme_ + "://127.0.0.1:" + std::to_string(port_);
        const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
        std::vector<std::string> words{
            "etcd", "--data-dir", folder_ / "data", "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
            // A single etcd elects itself. Short times let it lead at once instead of after a
            // second.
            "--heartbeat-interval", "10", "--election-timeout", "100"};
        words.insert(words.end(), options_.begin(), options_.end());
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const std::string log = folder_ / "log";
        const pid_t parent = ::getpid();
        pid_ = ::fork();
        if (pid_ == 0) {
            // A test that is killed must not leave an etcd behind. The second line is for a parent
            // that died before the first one.
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
    // SIGKILL: etcd gets no chance to flush or to say that it goes.
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    // Its connections stay open and nothing answers: the fault that looks most like a slow network.
    void freeze() {
        ::kill(pid_, SIGSTOP);
        // Its threads stop one after the other; this waits for the last one.
        ::waitpid(pid_, nullptr, WUNTRACED);
    }
    void go_on() { ::kill(pid_, SIGCONT); }

  private:
    // A port outside of the ranges from which ddprun takes ports for its jobs and the kernel takes
    // ports for clients. So nobody else gets it while etcd is down.
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
    // etcd needs a moment to start; 20 s are for a busy machine.
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

    // In memory where that is possible: on a busy disk each write of etcd may take a second.
    Folder folder_{std::filesystem::is_directory("/dev/shm") ? "/dev/shm/" : testing::TempDir()};
    std::vector<std::string> options_;
    std::string scheme_;
    std::uint16_t port_ = free_port(), peer_port_ = free_port();
    pid_t pid_ = -1;
};

}  // namespace ddprun::rendezvous
