// Starts a small program with posix_spawn and waits for its output and its end on the loop.
#include "base/loop/child_program.h"

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
#include <optional>

#include "base/system/boot_clock.h"
#include "base/system/memory_file.h"
#include "base/system/unique_fd.h"

extern char** environ;

namespace ddprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Bounds the memory that the output of a misbehaving program can take.
constexpr std::size_t kMaxOutput = 65536;
// Between two looks where the kernel does not tell of the end.
constexpr Duration kLookAgain = std::chrono::milliseconds{2};

// Without ends when the process has no descriptors left.
struct Pipe {
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) == 0) read_end.reset(ends[0]), write_end.reset(ends[1]);
    }
    UniqueFd read_end, write_end;
};

// A running child process. The destructor kills it with its process group and reaps it, so that no
// way out of run_program() (end, timeout, exception, cancelled coroutine) leaves a process behind.
class Child {
  public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ <= 0) return;
        // The child is not reaped yet, so its process group cannot belong to anybody else.
        ::kill(-pid_, SIGKILL);
        wait();
    }
    // A pidfd becomes readable when the process ends. So the loop learns of the end without
    // SIGCHLD. -1: kernels before Linux 5.3 and sandboxes have none.
    int pidfd() const { return static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)); }
    // It stays to be reaped.
    bool has_ended() const {
        siginfo_t end{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
               end.si_pid != 0;
    }
    // Returns the exit code, or -1 when a signal ended the process. It blocks only as long as the
    // process lives.
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    pid_t pid_;
};

// Standard error is either dropped or shared with us. POSIX_SPAWN_SETPGROUP gives the child its own
// process group, so that Child can kill the programs that it started, too.
Result<pid_t> spawn(std::vector<std::string>& words, int input, const Pipe& output,
                    StandardError errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), 1);
    if (errors == StandardError::dropped)
        ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    // Asio opens its sockets without close-on-exec, so they are closed explicitly.
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    // Ignored and blocked signals survive exec. The child gets the default handling instead of
    // ours.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
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

// Starts the program with `text` as its standard input. Our copy of the input is closed afterwards:
// the child has its own.
Result<int> start(std::vector<std::string>& words, const std::string& text, Pipe& output,
                  StandardError errors) {
    // A file and not a pipe: the child may read as much or as little as it wants, and nobody has to
    // write to it from the loop.
    const Result<UniqueFd> input = memory_file(text);
    if (!input)
        return Error(ErrorCode::unavailable,
                     "cannot start " + words[0] + ": " + input.error().sentence());
    if (!output.read_end)
        return Error(ErrorCode::unavailable,
                     "cannot create a pipe for " + words[0] + ": " + ::strerror(errno));
    ::lseek(input->get(), 0, SEEK_SET);
    auto pid = spawn(words, input->get(), output, errors);
    if (!pid) return pid.error();
    return static_cast<int>(*pid);
}

using Descriptor = asio::posix::stream_descriptor;

// Closes the descriptor when the time is over, which ends whatever waits for it. Keep the timer as
// long as that.
void close_at(asio::steady_timer& timer, Time until, std::shared_ptr<Descriptor> descriptor) {
    timer.expires_after(until - boot_now());
    timer.async_wait([descriptor = std::move(descriptor)](error_code error) {
        if (!error) descriptor->close(error);
    });
}

// All until the output ends or is more than kMaxOutput. Then the program may still be writing; the
// closed pipe ends it with SIGPIPE. Nothing: the time is over.
asio::awaitable<std::optional<std::string>> read_all(int descriptor, Time until) {
    const auto executor = co_await asio::this_coro::executor;
    const auto output = std::make_shared<Descriptor>(executor, descriptor);
    asio::steady_timer timer(executor);
    close_at(timer, until, output);
    std::array<char, 4096> piece;
    std::string text;
    // No smaller buffer stays behind in the memory, with a secret in it (munge.cc).
    text.reserve(piece.size());
    error_code error;
    while (!error && text.size() < kMaxOutput) {
        const std::size_t size = co_await output->async_read_some(
            asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
        text.append(piece.data(), size);
    }
    ::explicit_bzero(piece.data(), piece.size());
    if (!output->is_open()) co_return std::nullopt;
    output->close(error);
    co_return text;
}

// A program may close its output before it ends. False: the time is over.
asio::awaitable<bool> await_end(const Child& child, Time until) {
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor);
    error_code error;
    if (const int pidfd = child.pidfd(); pidfd >= 0) {
        const auto end = std::make_shared<Descriptor>(executor, pidfd);
        close_at(timer, until, end);
        co_await end->async_wait(Descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, error));
    }
    while (!child.has_ended()) {
        if (boot_now() >= until) co_return false;
        timer.expires_after(kLookAgain);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
    co_return true;
}

}  // namespace

// On every way out, the destructor of `child` kills and reaps a process that still runs.
asio::awaitable<Result<ProgramResult>> run_program(std::vector<std::string> words,
                                                   std::string input, Duration limit,
                                                   StandardError errors) {
    DDPRUN_CHECK(!words.empty(), "a program");
    const Time until = boot_now() + limit;
    int descriptor = -1;
    Result<int> pid = 0;
    {
        // This scope closes our copy of the write end. Otherwise the output would never end.
        Pipe output;
        pid = start(words, input, output, errors);
        ::explicit_bzero(input.data(), input.size());
        if (!pid) co_return pid.error();
        descriptor = output.read_end.release();
    }
    Child child(*pid);
    std::optional<std::string> text = co_await read_all(descriptor, until);
    if (!text || !co_await await_end(child, until))
        co_return Error(ErrorCode::timed_out,
                        words[0] + " did not answer within " + to_text(limit));
    co_return ProgramResult{std::move(*text), child.wait()};
}

}  // namespace ddprun
