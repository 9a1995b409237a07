// Starts a fork server, and has it fork workers.
#include "warm/fork_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <cstring>
#include <utility>

#include "warm/bootstrap.h"

namespace ddprun::agent::warm {
namespace {

// The interpreter's own start, on a slow file system.
constexpr Duration kToStart = std::chrono::seconds{20};
// Thousands of files from a slow file system.
constexpr Duration kToImport = std::chrono::minutes{2};
// Usually 50 ms for 8 workers. A cold start is better than a long wait.
constexpr Duration kToFork = std::chrono::seconds{5};
// Beyond the standard streams and the workers' progress pipe.
constexpr int kChannelFd = 10;

std::optional<std::int64_t> number(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value <= 0) return std::nullopt;
    return value;
}

}  // namespace

WarmWorker warm_worker(const WorkerStart& start, const std::string& record,
                       Keeper::SpawnCallback done) {
    WarmWorker worker{start.environment, record, start.cpus, {}, std::move(done)};
    const int standard[] = {start.stdin_fd, start.stdout_fd, start.stderr_fd};
    for (int i = 0; i < 3; ++i)
        if (standard[i] >= 0) worker.fds.push_back({i, standard[i]});
    for (const ExtraFd& extra : start.extra) worker.fds.push_back({extra.number, extra.fd});
    return worker;
}

ForkServer::ForkServer(boost::asio::io_context& io, Keeper& keeper, Wanted wanted, Events events)
    : io_(io), keeper_(keeper), wanted_(std::move(wanted)), events_(std::move(events)), limit_(io) {
    std::vector<std::string> probe = wanted_.command.interpreter;
    probe.insert(probe.end(), {"-c", ""});
    start("probe", std::move(probe));
    go_to(State::probing, kToStart);
}

ForkServer::~ForkServer() { kill(); }

// The standard streams have the kinds that the workers' have: Python keeps what it has found out
// about them at its start. Nobody reads what the server itself would print.
void ForkServer::start(const char* mode, std::vector<std::string> argv) {
    int ends[2], out[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail_later("there are no descriptors left (ulimit -n)");
    const UniqueFd theirs(ends[1]);
    UniqueFd ours(ends[0]);
    if (::pipe2(out, O_CLOEXEC) != 0)
        return fail_later("there are no descriptors left (ulimit -n)");
    const UniqueFd reading(out[0]), writing(out[1]);
    WorkerStart start = wanted_.start;
    start.argv = std::move(argv);
    start.stdout_fd = start.stderr_fd = writing.get();
    start.extra = {{kChannelFd, theirs.get()}};
    start.spared = true;
    std::string variables;
    for (const std::string& name : wanted_.rank_variables) variables += name + ",";
    add_bootstrap(
        start.environment, wanted_.folder,
        {std::string("DDPRUN_WARM=") + mode, "DDPRUN_WARM_FD=" + std::to_string(kChannelFd),
         "DDPRUN_WARM_VARIABLES=" + variables});
    if (pid_ != 0) past_.push_back(pid_);
    pid_ = 0;
    channel_ = std::make_unique<Channel>(
        io_, std::move(ours),
        Channel::Events{.words = [this](const Words& words) { on_words(words); },
                        .end = [this] { on_end(); }});
    keeper_.spawn(start, [this, alive = std::weak_ptr(alive_)](Result<Spawned> spawned) {
        if (!alive.lock()) return;
        if (!spawned) return fail(spawned.error().sentence());
        pid_ = spawned->pid;
        pidfd_ = std::move(spawned->pidfd);
        if (state_ == State::over) kill();
    });
}

void ForkServer::go_to(State state, Duration limit) {
    if (state_ == State::over) return;
    state_ = state;
    limit_.cancel();
    if (state == State::ready) return;
    limit_.expires_after(limit);
    limit_.async_wait([this, limit, alive = std::weak_ptr(alive_)](const auto& error) {
        if (!error && alive.lock()) fail("the fork server has not answered for " + to_text(limit));
    });
}

void ForkServer::on_words(const Words& words) {
    const std::string& kind = words.front();
    if (state_ == State::probing) return probed();
    if (kind == "hello" && state_ == State::starting) {
        go_to(State::importing, kToImport);
        return channel_->send({"import"}, wanted_.plan, {});
    }
    if (kind == "ready" && words.size() > 2 && state_ == State::importing) {
        go_to(State::ready, {});
        return events_.ready(words[1], words[2]);
    }
    if (kind == "again" && words.size() > 2 && state_ == State::importing) {
        state_ = State::over;
        kill();
        return events_.again(words[1], words[2]);
    }
    if (kind == "cold" && words.size() > 1) return fail(words[1]);
    if (state_ == State::forking && words.size() > 2 && words[1] == std::to_string(forks_)) {
        if (kind == "forked") return forked(words);
        if (kind == "stale") return fail(words[2] + " has changed");
        if (kind == "failed")
            return fail(std::string("it cannot fork: ") +
                        std::strerror(static_cast<int>(number(words[2]).value_or(0))));
    }
    fail("the fork server has said what nobody expects");
}

// An interpreter that does not read the bootstrap ends here, without a word: it would run the
// script.
void ForkServer::probed() {
    go_to(State::starting, kToStart);
    start("serve", wanted_.start.argv);
}

void ForkServer::on_end() {
    if (state_ == State::probing)
        return fail("the interpreter does not read a sitecustomize from PYTHONPATH");
    fail("the fork server has ended");
}

void ForkServer::import(Words plan) {
    DDPRUN_CHECK(ready(), "a server imports more when it is ready");
    go_to(State::importing, kToImport);
    channel_->send({"import"}, plan, {});
}

void ForkServer::fork(std::vector<WarmWorker> workers) {
    DDPRUN_CHECK(ready(), "a server forks when it is ready");
    ++forks_;
    go_to(State::forking, kToFork);
    for (WarmWorker& worker : workers) {
        int ends[2] = {-1, -1};
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            for (WarmWorker& each : workers) forking_.push_back({std::move(each), {}});
            return fail_later("there are no descriptors left (ulimit -n)");
        }
        const UniqueFd reading(ends[0]);
        std::string numbers, cpus;
        std::vector<int> fds{reading.get()};
        for (const WarmWorker::Fd& each : worker.fds) {
            numbers += std::to_string(each.number) + " ";
            fds.push_back(each.fd);
        }
        for (const int cpu : worker.cpus) cpus += std::to_string(cpu) + " ";
        Words payload{worker.record, numbers, cpus};
        payload.insert(payload.end(), worker.environment.begin(), worker.environment.end());
        channel_->send({"worker"}, payload, fds);
        forking_.push_back({std::move(worker), UniqueFd(ends[1])});
    }
    channel_->send({"fork", std::to_string(forks_)});
}

// The keeper lets each worker go on, if the deadline has not passed and nothing is being killed.
void ForkServer::forked(const Words& words) {
    std::vector<std::int64_t> pids;
    for (std::size_t i = 2; i < words.size(); ++i) pids.push_back(number(words[i]).value_or(0));
    if (pids.size() != forking_.size()) return fail("it has forked another number of workers");
    go_to(State::ready, {});
    std::vector<Forking> workers = std::move(forking_);
    forking_.clear();
    for (std::size_t i = 0; i < pids.size(); ++i)
        keeper_.adopt(pids[i], workers[i].release.get(), std::move(workers[i].worker.done));
}

void ForkServer::fail(const std::string& reason) {
    if (state_ == State::over) return;
    const auto alive = std::weak_ptr(alive_);
    stop(Error{ErrorCode::unavailable, reason});
    if (alive.lock()) events_.ended(reason);
}

// Workers that the server may have forked wait for a byte that does not come, and end.
void ForkServer::stop(const Error& error) {
    state_ = State::over;
    kill();
    std::vector<Forking> workers = std::move(forking_);
    forking_.clear();
    for (Forking& each : workers) each.release.reset();
    for (Forking& each : workers) each.worker.done(error);
}

void ForkServer::fail_later(const std::string& reason) {
    boost::asio::post(io_, [this, reason, alive = std::weak_ptr(alive_)] {
        if (alive.lock()) fail(reason);
    });
}

// The end of the socket ends a server that reads it; the signal ends one that does not.
void ForkServer::kill() {
    limit_.cancel();
    channel_.reset();
    if (pidfd_) ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
}

bool ForkServer::exited(std::int64_t pid) {
    if (std::erase(past_, pid) != 0) return true;
    if (pid != pid_ || pid == 0) return false;
    pid_ = 0;
    pidfd_.reset();
    return true;
}

}  // namespace ddprun::agent::warm
