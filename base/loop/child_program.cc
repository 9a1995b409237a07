// Starts a small program with posix_spawn and waits for its output and its end on the loop.
#include "base/loop/child_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
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

namespace ddprun {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Bounds the memory that the output of a misbehaving program can take.
constexpr std::size_t kMaxOutput = 65536;
// Both ends of a pipe, closed when this object goes. Not open when the process has no descriptors
// left.
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
    // SIGCHLD.
    int end() const { return static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)); }
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
    ::posix_spawn_file_actions_adddup2(&actions, output.write_end(), 1);
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

// Returns an in-memory file with the text, positioned at its start, or -1 when there is none. A
// file and not a pipe: the child may read as much or as little as it wants, and nobody has to write
// to it from the loop.
int input_file(const std::string& text) {
    const int file = ::memfd_create("input", MFD_CLOEXEC);
    if (file < 0) return -1;
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(file, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return ::close(file), -1;
        done += static_cast<std::size_t>(n);
    }
    ::lseek(file, 0, SEEK_SET);
    return file;
}

// Starts the program with `text` as its standard input. Our copy of the input is closed afterwards:
// the child has its own.
Result<int> start(std::vector<std::string>& words, const std::string& text, Pipe& output,
                  StandardError errors) {
    const int input = input_file(text);
    if (input < 0 || !output.is_open()) {
        const std::string why = ::strerror(errno);
        if (input >= 0) ::close(input);
        return Error(ErrorCode::unavailable, "cannot create a pipe for " + words[0] + ": " + why);
    }
    auto pid = spawn(words, input, output, errors);
    ::close(input);
    if (!pid) return pid.error();
    return static_cast<int>(*pid);
}

using Descriptor = asio::posix::stream_descriptor;

// Reads until the output ends, then waits for the end of the process, because a program may close
// its output before it ends. The timer closes both descriptors, which ends whichever wait is
// pending.
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
    // If the output was longer than kMaxOutput, the program may still be writing. Closing the pipe
    // ends it with SIGPIPE.
    output->close(error);
    if (!*late)
        co_await end->async_wait(Descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, error));
    timer.cancel();
    if (*late) co_return Error(ErrorCode::timed_out, "did not answer within " + to_text(limit));
    co_return text;
}

}  // namespace

// On every way out, the destructor of `child` kills and reaps a process that still runs.
asio::awaitable<Result<ProgramResult>> run_program(std::vector<std::string> words,
                                                   std::string input, Duration limit,
                                                   StandardError errors) {
    DDPRUN_CHECK(!words.empty(), "a program");
    const auto executor = co_await asio::this_coro::executor;
    int descriptor = -1;
    Result<int> pid = 0;
    {
        // This scope closes our copy of the write end. Otherwise the output would never end.
        Pipe output;
        pid = start(words, input, output, errors);
        ::explicit_bzero(input.data(), input.size());
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

}  // namespace ddprun
