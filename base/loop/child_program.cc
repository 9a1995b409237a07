// Starts a small program with posix_spawn on a thread, and waits for its output and its end.
#include "base/loop/child_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/loop/file_thread.h"
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
// How long SIGKILL may take, on a loaded host too, before the program counts as hung.
constexpr Duration kKillTakes = std::chrono::milliseconds{500};

// Without ends when the process has no descriptors left.
struct Pipe {
    Pipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) == 0) read_end.reset(ends[0]), write_end.reset(ends[1]);
    }
    UniqueFd read_end, write_end;
};

// A program from its start to its end. The thread that starts it also waits for its end: it may
// hang at both, and nobody else waits with it. Shared by that thread and the loop.
class Child {
  public:
    // On the thread. The program's exit code, or -1 when a signal ended it.
    Result<int> run(const std::function<Result<pid_t>()>& spawn) {
        const Result<pid_t> started = spawn();
        if (!started) return started.error();
        {
            const std::lock_guard held(lock_);
            pid_ = *started;
            if (unwanted_) ::kill(-pid_, SIGKILL);
        }
        siginfo_t end{};
        const auto id = static_cast<id_t>(*started);
        while (::waitid(P_PID, id, &end, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
        // Reaped under the lock: until then, its process group cannot belong to anybody else.
        const std::lock_guard held(lock_);
        int status = -1;
        const bool reaped = ::waitpid(*started, &status, 0) == *started;
        pid_ = 0;
        return reaped && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    // Any thread. Never waits.
    void kill() {
        const std::lock_guard held(lock_);
        unwanted_ = true;
        if (pid_ > 0) ::kill(-pid_, SIGKILL);
    }
    // 0: it has not begun, or has ended.
    pid_t pid() {
        const std::lock_guard held(lock_);
        return pid_;
    }

    std::atomic<bool> over = false;  // the thread has nothing more to do with it

  private:
    std::mutex lock_;
    pid_t pid_ = 0;
    bool unwanted_ = false;
};

// The programs of one loop. Thread: the loop's.
class Programs : public asio::execution_context::service {
  public:
    static inline asio::execution_context::id id;
    explicit Programs(asio::execution_context& loop) : service(loop) {}

    std::function<void(const std::string&)> on_hung;
    std::set<std::shared_ptr<Child>> running;
    // By name. Several of a name, if they ran at the same time.
    std::multimap<std::string, std::shared_ptr<Child>> hung;

    // Nothing: the next one may be started.
    std::shared_ptr<Child> hung_one(const std::string& name) {
        std::erase_if(hung, [](const auto& one) { return one.second->over.load(); });
        const auto found = hung.find(name);
        return found == hung.end() ? nullptr : found->second;
    }

  private:
    void shutdown() noexcept override { on_hung = {}; }
};

// Its program may lie on a file system that does not answer: then there is no process yet.
std::string process_text(Child& child) {
    const pid_t pid = child.pid();
    return pid > 0 ? " (process " + std::to_string(pid) + ")" : "";
}

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

// What the loop does until a program has ended. On every way out of run_program() (end, timeout,
// exception, cancelled coroutine) the program is killed with its process group. Nothing here waits
// for it: its thread goes on alone and reaps it.
class Watch {
  public:
    Watch(asio::io_context& loop, Programs& programs)
        : programs_(programs), thread_(loop), timer_(loop) {
        programs_.running.insert(child_);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
        programs_.running.erase(child_);
        if (!result_) child_->kill();
        thread_.let_go();
    }

    void start(std::function<Result<pid_t>()> spawn) {
        const auto result = std::make_shared<Result<int>>(Error());
        const auto here = std::this_thread::get_id();
        thread_.post(
            [child = child_, result, here, spawn = std::move(spawn)]() mutable {
                // No thread is to be had, and a process would not be either.
                *result = std::this_thread::get_id() == here
                              ? Result<int>(Error(ErrorCode::unavailable, "no thread (ulimit -u)"))
                              : child->run(spawn);
                child->over = true;
            },
            [this, result] {
                result_ = *result;
                timer_.cancel();
            });
    }
    // False: the time is over.
    asio::awaitable<bool> ended_by(Time until) {
        error_code error;
        while (!result_ && boot_now() < until) {
            timer_.expires_after(until - boot_now());
            co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
        }
        co_return result_.has_value();
    }
    const Result<int>& result() const { return *result_; }
    const std::shared_ptr<Child>& child() const { return child_; }

  private:
    Programs& programs_;
    std::shared_ptr<Child> child_ = std::make_shared<Child>();
    FileThread thread_;
    asio::steady_timer timer_;
    std::optional<Result<int>> result_;
};

void tell_hung(Programs& programs, const std::string& name, const std::shared_ptr<Child>& child) {
    const bool named = programs.hung_one(name) != nullptr;
    programs.hung.emplace(name, child);
    if (named || !programs.on_hung) return;
    const std::string process = process_text(*child);
    programs.on_hung(name + process + " hangs in the kernel: " +
                     (process.empty() ? "the file system of its program does not answer"
                                      : "it has not ended since it was killed") +
                     "; it is not started again before it ends");
}

}  // namespace

void on_hung_program(asio::io_context& loop, std::function<void(const std::string&)> say) {
    asio::use_service<Programs>(loop).on_hung = std::move(say);
}

std::vector<pid_t> running_programs(asio::io_context& loop) {
    auto& programs = asio::use_service<Programs>(loop);
    std::vector<pid_t> found;
    const auto add = [&found](const std::shared_ptr<Child>& child) {
        if (const pid_t pid = child->pid(); pid > 0) found.push_back(pid);
    };
    for (const auto& child : programs.running) add(child);
    for (const auto& [name, child] : programs.hung) add(child);
    return found;
}

asio::awaitable<Result<ProgramResult>> run_program(std::vector<std::string> words,
                                                   std::string input, Duration limit,
                                                   StandardError errors, std::string name) {
    DDPRUN_CHECK(!words.empty(), "a program");
    if (name.empty()) name = words[0];
    const Time until = boot_now() + limit;
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    auto& loop = static_cast<asio::io_context&>(executor.context());
    auto& programs = asio::use_service<Programs>(loop);
    if (const auto before = programs.hung_one(name))
        co_return Error(ErrorCode::unavailable, name + " is not started: an earlier one" +
                                                    process_text(*before) + " hangs in the kernel");
    // A file and not a pipe: the child may read as much or as little as it wants, and nobody has to
    // write to it from the loop.
    Result<UniqueFd> file = memory_file(input);
    ::explicit_bzero(input.data(), input.size());
    auto ends = std::make_shared<Pipe>();
    if (!file || !ends->read_end)
        co_return Error(
            ErrorCode::unavailable,
            "cannot start " + name + ": " +
                (file ? std::string("no pipe: ") + ::strerror(errno) : file.error().sentence()));
    ::lseek(file->get(), 0, SEEK_SET);
    const int descriptor = ends->read_end.release();
    Watch watch(loop, programs);
    // Our copies of the input and of the output's end are closed after the start: else the output
    // would never end.
    watch.start([words, errors, ends = std::move(ends),
                 from = std::make_shared<UniqueFd>(std::move(*file))]() mutable {
        Result<pid_t> pid = spawn(words, from->get(), *ends, errors);
        from->reset();
        ends->write_end.reset();
        return pid;
    });
    std::optional<std::string> text = co_await read_all(descriptor, until);
    if (text && co_await watch.ended_by(until)) {
        if (!watch.result()) co_return watch.result().error();
        co_return ProgramResult{std::move(*text), *watch.result()};
    }
    watch.child()->kill();
    if (!co_await watch.ended_by(boot_now() + kKillTakes)) tell_hung(programs, name, watch.child());
    co_return Error(ErrorCode::timed_out, name + " did not answer within " + to_text(limit));
}

Result<ProgramResult> run_program_now(std::vector<std::string> words, Duration limit) {
    asio::io_context loop{1};
    std::string hung;
    on_hung_program(loop, [&hung](const std::string& sentence) { hung = sentence; });
    Result<ProgramResult> result = Error(ErrorCode::internal, "nothing has run");
    asio::co_spawn(loop, run_program(std::move(words), {}, limit),
                   [&](const std::exception_ptr& failed, Result<ProgramResult> answer) {
                       if (!failed) result = std::move(answer);
                   });
    loop.run();
    if (!hung.empty()) return Error(ErrorCode::timed_out, hung);
    return result;
}

}  // namespace ddprun
