// The main loop of the keeper process: requests, deaths of children, the deadline, and killing.
#include "keeper/process/keeper_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/boot_clock.h"
#include "base/system/locked_program.h"
#include "keeper/killing/descendants.h"
#include "keeper/killing/killing.h"
#include "keeper/process/deadline_timer.h"
#include "keeper/process/keeper_deadline.h"
#include "keeper/process/keeper_replies.h"
#include "keeper/process/keeper_setup.h"
#include "keeper/process/keeper_will.h"
#include "keeper/process/signals_for_agent.h"
#include "keeper/process/worker_child.h"

namespace ddprun::agent::keeper {
namespace {

// Milliseconds between two rounds of killing when no child has ended.
constexpr int kLookAgain = 2;
// The same while a process stays that may not be killed.
constexpr int kLookAtBlocked = 200;
// The same while it waits for what workers that have succeeded have left running.
constexpr int kLookAtLeft = 50;
// After this many starts the keeper looks at the workers that it has started. Each worker costs
// descriptors until its program runs, and each new child copies them all and closes them at exec.
// Without the limit, the cost of many starts would grow with their square.
constexpr int kStartsInARow = 16;
// Milliseconds without an event after the last start, then the program is locked in memory. Beats
// move the deadline less often than that.
constexpr int kQuiet = 20;

// All state of the keeper. One thread, no callbacks: run() calls everything in order.
class Process {
  public:
    Process(pid_t agent, std::vector<std::string> folders)
        : signals_(agent), will_(std::move(folders)) {}

    int run();

  private:
    // A worker from its fork until it is reaped.
    struct Worker {
        pid_t pid;
        std::uint32_t id;
        UniqueFd pidfd;                      // for ddprun; sent with `forked`
        UniqueFd exec_pipe;                  // open until it is known whether the program runs
        std::shared_ptr<const void> memory;  // what the child reads until exec
        bool foreground;
        bool spared;
        bool started = false;
    };

    bool wait(int milliseconds);
    void say_frozen() const;
    void lock();
    void read_requests();
    void handle(const Request& request, std::vector<UniqueFd>& fds);
    void start_one(const Request& request, const std::vector<UniqueFd>& fds);
    void adopt(const Request& request, const std::vector<UniqueFd>& fds);
    void settle(Worker& worker);
    void settle_ready();
    void tell_stopped();
    void reaped(pid_t pid, int wait_status);
    void begin_killing(bool with_spared);
    void kill_workers(bool with_spared) const;
    void go_on_killing();
    void on_timer(Time now);

    SignalsForAgent signals_;
    DeadlineTimer timer_;
    std::vector<pollfd> polled_;
    std::vector<Worker> workers_;
    Replies replies_{kSocket};
    Deadline deadline_;

    // Rounds of killing are in progress. New forks fail in this time.
    bool killing_ = false;
    Killing rounds_{[this](const Survivor& found) { replies_.survivor(found); },
                    [this](const LeftRunning& left) { replies_.waits(left); }};
    std::vector<std::uint32_t> sweeps_;  // to be answered when all is killed
    bool tell_expired_ = false;          // likewise: send `expired`
    bool shutdown_ = false;
    bool gone_ = false;          // ddprun is gone
    bool agent_frozen_ = false;  // ddprun stood still, and was killed
    bool lock_due_ = false;      // workers have started since the program was locked
    bool signalled_ = false;     // the last polls have seen a signal

    Will will_;
};

// The order inside the loop matters, see below. Returns the exit code of the process.
int Process::run() {
    if (!timer_.open() || !signals_.open()) return 1;
    for (;;) {
        if (killing_)
            wait(rounds_.blocked()      ? kLookAtBlocked
                 : rounds_.waits_long() ? kLookAtLeft
                                        : kLookAgain);
        else if (!wait(lock_due_ ? kQuiet : -1))
            lock();
        // Requests come before the timer: a deadline that ddprun has moved in time must not fire.
        // The clock is read before both: what ddprun says while this process gets no processor
        // between the two would come too late.
        const Time now = boot_now();
        if (!gone_) read_requests();
        settle_ready();
        // A worker's signal comes between the news that it runs and the news of its death. The poll
        // that has seen the signal has also seen the end of the sender's exec pipe.
        if (std::exchange(signalled_, false))
            signals_.read([this](int signal) { replies_.signalled(signal); });
        // While killing, the rounds reap the children.
        if (!killing_) {
            tell_stopped();
            reap_children([this](pid_t pid, int status) {
                rounds_.reaped(pid, status);
                reaped(pid, status);
            });
        }
        on_timer(now);
        if (killing_) go_on_killing();
        replies_.flush();
        // The keeper leaves only when nothing of the job is left, so that Gone is true. ddprun has
        // told of a process that may not be killed, and does not wait for it.
        if (killing_ && !(shutdown_ && rounds_.blocked())) continue;
        if (gone_) {
            will_.execute();
            if (agent_frozen_) say_frozen();
            return 0;
        }
        // ddprun must receive the last replies first.
        if (shutdown_ && replies_.empty()) return 0;
    }
}

// ddprun cannot say itself what was done to it. Nothing else is left to do here, and a reader that
// stands still is not waited for.
void Process::say_frozen() const {
    constexpr std::string_view kLine =
        "ddprun: it stood still beyond the lease of its workers, so its keeper has killed it\n";
    pollfd errors{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&errors, 1, 0) != 1 || (errors.revents & POLLOUT) == 0) return;
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
}

// The first three entries of polled_ are fixed; the exec pipes follow in the order of workers_.
// settle_ready() depends on this.
// Returns false when nothing has come in this time.
bool Process::wait(int milliseconds) {
    polled_.clear();
    polled_.push_back({gone_ ? -1 : kSocket,
                       static_cast<short>(replies_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    polled_.push_back({signals_.fd(), POLLIN, 0});
    polled_.push_back({timer_.fd(), POLLIN, 0});
    for (const Worker& worker : workers_)
        if (worker.exec_pipe) polled_.push_back({worker.exec_pipe.get(), POLLIN, 0});
    const bool came = ::poll(polled_.data(), polled_.size(), milliseconds) != 0;
    signalled_ = signalled_ || polled_[1].revents != 0;
    return came;
}

// Nobody waits for a start now. With a low limit only that is locked which has been used, so it is
// done after all starts.
void Process::lock() {
    lock_due_ = false;
    lock_program();
    let_go_of_seldom_used();
}

// Takes all requests that are there.
void Process::read_requests() {
    for (int starts = 0;;) {
        Request request;
        std::vector<UniqueFd> fds;
        const Transfer transfer = receive_packet(kSocket, &request, sizeof request, fds);
        if (transfer == Transfer::would_block) return;
        if (transfer == Transfer::ended) {
            // The end of the socket means that ddprun is gone.
            gone_ = true;
            signals_.agent_is_gone();
            rounds_.hurry();
            replies_.agent_is_gone();
            begin_killing(true);
            will_.see_sockets();
            return;
        }
        handle(request, fds);
        if (request.kind != RequestKind::fork || ++starts % kStartsInARow != 0) continue;
        // Lets go of the descriptors of workers that run by now.
        wait(0);
        settle_ready();
        replies_.flush();
    }
}

void Process::handle(const Request& request, std::vector<UniqueFd>& fds) {
    switch (request.kind) {
        case RequestKind::fork:
            return start_one(request, fds);
        case RequestKind::adopt:
            return adopt(request, fds);
        case RequestKind::deadline:
            deadline_.set(Time{Duration{request.time_ns}}, Duration{request.lease_ns});
            return timer_.set(deadline_.next());
        case RequestKind::noticed:
            deadline_.noticed(Time{Duration{request.time_ns}});
            return timer_.set(deadline_.next());
        // A shutdown is a sweep after which the keeper ends.
        case RequestKind::shutdown:
            shutdown_ = true;
            if (rounds_.leaves_alone()) return kill_workers(true);
            [[fallthrough]];
        case RequestKind::sweep:
            sweeps_.push_back(request.id);
            if (request.give_time == 0)
                rounds_.hurry();
            else if (!killing_)
                rounds_.give_time({Duration{request.time_ns}, Duration{request.lease_ns},
                                   request.leave_alone != 0});
            return begin_killing(shutdown_);
        case RequestKind::hurry:
            return rounds_.hurry(Duration{request.lease_ns});
        case RequestKind::prepare:
            return will_.prepare(request, fds);
        case RequestKind::folder:
            return will_.set_folder(request, fds);
        case RequestKind::check:
            return replies_.works();
    }
}

// The numbers in the request are checked against what arrived, although both sides are the same
// program: a request without its payload (no memory in ddprun) must not crash the keeper.
void Process::start_one(const Request& request, const std::vector<UniqueFd>& fds) {
    WorkerPayload payload;
    std::uint32_t present = 0;
    for (std::uint32_t bits = request.present; bits != 0; bits &= bits - 1) ++present;
    if (request.extras > kMaxExtra || fds.size() != present + 1 ||
        !parse_payload(request, fds[0].get(), payload))
        return replies_.failed(request.id, Stage::request, EINVAL);
    if (killing_) return replies_.failed(request.id, Stage::request, EBUSY);
    // The first of two checks. The child checks again just before exec.
    const Time until = deadline_.workers_until();
    if (boot_now() >= until) return replies_.failed(request.id, Stage::deadline, ETIME);
    Child child = start_worker(request, std::move(payload), fds, until);
    if (child.pid < 0) return replies_.failed(request.id, child.failure.stage, child.failure.error);
    request.spared != 0 ? rounds_.spare_always(child.pid) : rounds_.started(child.pid);
    workers_.push_back({child.pid, request.id, std::move(child.pidfd), std::move(child.exec_pipe),
                        std::move(child.memory), request.foreground != 0, request.spared != 0});
}

// A number that is our living child cannot belong to another process.
void Process::adopt(const Request& request, const std::vector<UniqueFd>& fds) {
    const auto failed = [&](Stage stage, int error) { replies_.failed(request.id, stage, error); };
    if (fds.size() != 1) return failed(Stage::request, EINVAL);
    if (killing_) return failed(Stage::request, EBUSY);
    if (boot_now() >= deadline_.workers_until()) return failed(Stage::deadline, ETIME);
    if (!is_living_child(request.pid)) return failed(Stage::adoption, ESRCH);
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, request.pid, 0)));
    rounds_.started(request.pid);
    workers_.push_back({request.pid, request.id, {}, {}, {}, false, false, true});
    // The end of the pipe without a byte would tell it to end.
    [[maybe_unused]] const ssize_t told = ::write(fds[0].get(), "\n", 1);
    replies_.forked(request.id, request.pid, std::move(pidfd));
}

// The exec pipe has ended, or has brought a failure. This reports which of them happened. It blocks
// only if it is called too early.
void Process::settle(Worker& worker) {
    Failure failure;
    const bool failed = read_failure(worker.exec_pipe.get(), failure);
    worker.exec_pipe.reset();
    if (failed) return replies_.failed(worker.id, failure.stage, failure.error);
    worker.started = true;
    // The program has its own memory now, so the memory that the child has shared can be freed.
    worker.memory.reset();
    replies_.forked(worker.id, worker.pid, std::move(worker.pidfd));
    lock_due_ = true;
}

// Compares numbers: workers may have been added or removed since the poll.
void Process::settle_ready() {
    std::size_t at = 3;
    for (Worker& worker : workers_) {
        if (!worker.exec_pipe || at >= polled_.size() || polled_[at].fd != worker.exec_pipe.get())
            continue;
        if (polled_[at++].revents != 0) settle(worker);
    }
    // settle() has closed descriptors, and their numbers may be used again. The old poll results
    // must not be applied to them.
    polled_.clear();
}

// Only a worker at a terminal is watched. It was usually stopped by Ctrl-Z, and ddprun must then
// stop, too.
void Process::tell_stopped() {
    for (const Worker& worker : workers_) {
        siginfo_t stopped{};
        if (!worker.foreground || !worker.started ||
            ::waitid(P_PID, static_cast<id_t>(worker.pid), &stopped, WSTOPPED | WNOHANG) != 0 ||
            stopped.si_pid == 0)
            continue;
        replies_.stopped(worker.pid, stopped.si_status);
    }
}

void Process::reaped(pid_t pid, int wait_status) {
    const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                     [pid](const Worker& w) { return w.pid == pid; });
    // A descendant whose parent has died. The keeper inherited it as a subreaper.
    if (worker == workers_.end()) return;
    // Its end of the pipe is closed, so this cannot block. `exited` comes after `forked` or
    // `failed`.
    if (worker->exec_pipe) settle(*worker);
    if (worker->started) replies_.exited(pid, wait_status, boot_now());
    workers_.erase(worker);
}

// Workers get SIGKILL at once. What has to read /proc comes after that: the rounds, which find
// everything else.
void Process::begin_killing(bool with_spared) {
    if (with_spared) rounds_.spare_nobody();
    kill_workers(with_spared);
    killing_ = true;
}

void Process::kill_workers(bool with_spared) const {
    for (const Worker& worker : workers_)
        if (!worker.spared || with_spared) ::kill(worker.pid, SIGKILL);
}

// Answers only when a round has proved that nothing is left.
void Process::go_on_killing() {
    if (!rounds_.round([this](pid_t pid, int status) { reaped(pid, status); })) return;
    killing_ = false;
    for (const std::uint32_t id : std::exchange(sweeps_, {})) replies_.swept(id, rounds_.left());
    if (std::exchange(tell_expired_, false)) replies_.expired();
}

// The clock decides, not the timer: the deadline may have moved since the timer fired.
void Process::on_timer(Time now) {
    if (!timer_.fired()) return;
    Pulse agent = pulse_of(signals_.agent());
    agent.told_to_stop = signals_.told_to_stop();
    const Deadline::Due due = deadline_.look(now, agent);
    if (due.passed) {
        tell_expired_ = true;
        // This goes out at once and not after the killing: a process that hangs in the kernel may
        // delay the end of the killing forever, and ddprun is not frozen because of that.
        replies_.passed();
        rounds_.hurry();
        begin_killing(true);
        will_.see_sockets();
    }
    if (due.agent_frozen) {
        signals_.send(SIGKILL);
        agent_frozen_ = true;
    }
    timer_.set(deadline_.next());
}

}  // namespace

int run(int socket, bool own_session, pid_t agent, std::vector<std::string> folders) {
    if (!become_keeper(socket, own_session)) return 1;
    // If ddprun has died already, its pid may belong to another process. The socket has ended then,
    // and this is enough to know.
    Process process(::getppid() == agent ? agent : 0, std::move(folders));
    return process.run();
}

}  // namespace ddprun::agent::keeper
