#include "rendezvous/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

extern char** environ;

namespace ddprun::rendezvous {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kMaxOutput = 65536;
constexpr std::size_t kMaxInput = 4096;  // PIPE_BUF: a new pipe takes it whole

class Pipe {
  public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        for (const int end : ends_)
            if (end >= 0) ::close(end);
    }
    bool is_open() const { return ends_[0] >= 0; }
    int read_end() const { return ends_[0]; }
    int write_end() const { return ends_[1]; }
    int release_read_end() { return std::exchange(ends_[0], -1); }

  private:
    std::array<int, 2> ends_{-1, -1};
};

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
    int end() const { return static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)); }
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    pid_t pid_;
};

Result<pid_t> spawn(std::vector<std::string>& words, const Pipe& input, const Pipe& output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input.read_end(), 0);
    ::posix_spawn_file_actions_adddup2(&actions, output.write_end(), 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    // Our ignored and blocked signals are not the child's.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = -1;
    const int failed =
        ::posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    if (failed == 0) return pid;
    return Error(ErrorCode::unavailable, "cannot start " + words[0] + ": " + ::strerror(failed));
}

Result<int> start(std::vector<std::string>& words, const std::string& text, Pipe& output) {
    const Pipe input;
    if (!input.is_open() || !output.is_open())
        return Error(ErrorCode::unavailable, "no pipe for " + words[0] + ": " + ::strerror(errno));
    // Before there is a reader: the pipe holds it all, and nobody can break it under our hands.
    if (::write(input.write_end(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return Error(ErrorCode::unavailable, "no input for " + words[0] + ": " + ::strerror(errno));
    auto pid = spawn(words, input, output);
    if (!pid) return pid.error();
    return static_cast<int>(*pid);
}

using Descriptor = asio::posix::stream_descriptor;

// All that comes until the end of the output, and then the end of the process.
asio::awaitable<Result<std::string>> read_all(std::shared_ptr<Descriptor> output,
                                              std::shared_ptr<Descriptor> end, Duration limit) {
    const auto late = std::make_shared<bool>(false);
    asio::steady_timer timer(output->get_executor(), limit);
    timer.async_wait([output, end, late](error_code error) {
        if (error) return;
        *late = true;
        output->close(error);
        end->close(error);
    });
    std::string text;
    std::array<char, 4096> piece;
    error_code error;
    while (!error && text.size() < kMaxOutput) {
        const std::size_t size = co_await output->async_read_some(
            asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
        text.append(piece.data(), size);
    }
    output->close(error);  // who writes more is ended by it
    if (!*late)
        co_await end->async_wait(Descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, error));
    timer.cancel();
    if (*late) co_return Error(ErrorCode::timed_out, "did not answer within " + to_text(limit));
    co_return text;
}

}  // namespace

asio::awaitable<Result<ProgramResult>> run_program(std::vector<std::string> words,
                                                   std::string input, Duration limit) {
    DDPRUN_CHECK(!words.empty() && input.size() <= kMaxInput, "a program and a short input");
    const auto executor = co_await asio::this_coro::executor;
    int descriptor = -1;
    Result<int> pid = 0;
    {
        Pipe output;
        pid = start(words, input, output);
        if (!pid) co_return pid.error();
        descriptor = output.release_read_end();
    }
    Child child(*pid);
    const auto output = std::make_shared<Descriptor>(executor, descriptor);
    const int pidfd = child.end();
    if (pidfd < 0)
        co_return Error(ErrorCode::unavailable,
                        "cannot wait for " + words[0] + ": " + ::strerror(errno));
    const auto end = std::make_shared<Descriptor>(executor, pidfd);
    auto text = co_await read_all(output, end, limit);
    if (!text) co_return Error(text.error().code(), words[0] + " " + text.error().sentence());
    co_return ProgramResult{std::move(*text), child.wait()};
}

}  // namespace ddprun::rendezvous
