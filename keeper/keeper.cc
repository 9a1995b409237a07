// ddprun's side of the keeper: makes requests, passes replies on, and cleans up when the keeper
// dies.
#include "keeper/keeper.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/signal_state.h"
#include "keeper/between/keeper_protocol.h"
#include "keeper/between/keeper_socket.h"
#include "keeper/between/keeper_texts.h"
#include "keeper/keeper_guard.h"
#include "keeper/keeper_start.h"
#include "keeper/kill_rounds.h"
#include "keeper/killing/killing.h"
#include "keeper/terminal.h"

namespace ddprun::agent {

namespace asio = boost::asio;
using keeper::Reply;
using keeper::ReplyKind;
using keeper::Request;
using keeper::RequestKind;

namespace {

// So many keepers in a row that lived no longer than this show that the next one will not live
// either: something on this host kills it, or it cannot run there.
constexpr int kShortLives = 5;
constexpr Duration kShortLife = std::chrono::seconds{10};

constexpr auto kKeyboardLook = std::chrono::milliseconds{50};

LeftRunning left_of(const Reply& reply) {
    return {static_cast<int>(reply.count), {reply.pid, reply.name}, static_cast<int>(reply.killed)};
}

}  // namespace

// Held by shared_ptr: a timer's handler and the socket's callbacks, while they run, may outlive the
// Keeper.
struct Keeper::Impl : std::enable_shared_from_this<Keeper::Impl> {
    KeeperOptions options;
    pid_t pid = -1;
    std::shared_ptr<keeper::Socket> socket;  // never null
    KeeperEvents events;
    std::unique_ptr<KillRounds> rounds;    // over what a dead keeper has left
    std::unique_ptr<keeper::Guard> guard;  // from attach() on
    Time began{};                          // start of this keeper
    int short_lives = 0;                   // of keepers, in a row
    std::string how_died;                  // follows "the keeper"
    asio::io_context* io = nullptr;
    std::uint32_t next_id = 0;
    // A request that the keeper has not answered yet.
    struct Spawn {
        SpawnCallback done;
        std::string program;      // for the error sentence
        bool foreground = false;  // the worker gets the terminal
        bool by_turns = false;    // when it reads
    };
    std::map<std::uint32_t, Spawn> spawns;
    std::map<std::uint32_t, SweptCallback> sweeps;
    std::vector<std::int64_t> foreground;  // pids of workers that hold the terminal
    // Of several workers at the terminal, and whether each is misled: a line editor (readline) that
    // has found the terminal without echo, since another one used it. It believes that this is
    // usual, shows nothing, and leaves it so.
    std::map<std::int64_t, bool> readers;
    Keyboard keyboard;
    std::int64_t last_holder = 0;
    std::optional<asio::steady_timer> keyboard_look;

    bool alive() const { return pid > 0 && socket->is_open(); }
    // With a dead keeper the answer still comes from the loop and never from inside a call.
    void refuse(SpawnCallback done) {
        asio::post(*io, [done = std::move(done)] {
            done(Error{ErrorCode::closed, "cannot start workers: the keeper is dead"});
        });
    }

    void adopt(keeper::Started started);
    void listen();
    void noticed();
    void send_work(const Request& request, const std::string& payload = {},
                   const std::vector<int>& fds = {});
    void check();
    void on_frozen(Duration silence);
    void on_reply(const Reply& reply, std::vector<UniqueFd>& fds);
    void on_forked(const Reply& reply, std::vector<UniqueFd>& fds);
    void on_signalled(int signal) const;
    void on_stopped(pid_t worker, int signal);
    void look_at_keyboard();
    template <class Change>
    void change_keyboard(const Change& change);
    void on_survivor(const Survivor& survivor) {
        if (events.survivor) events.survivor(survivor);
    }
    void on_end();
    void call_back_died();
    void stop_timers();
};

Result<Keeper> Keeper::start(KeeperOptions options) {
    Result<keeper::Started> started = keeper::start_by_fork(options);
    if (!started) return started.error();
    auto impl = std::make_shared<Impl>();
    impl->options = options;
    impl->adopt(std::move(*started));
    return Keeper(std::move(impl));
}

// A fork is not safe here, because ddprun has threads by now. So the new keeper is this program
// again, started by exec.
Result<> Keeper::restart() {
    DDPRUN_CHECK(!alive() && impl_->io != nullptr, "restart() is for a keeper that has died");
    if (impl_->short_lives >= kShortLives)
        return Error{ErrorCode::unavailable, std::to_string(kShortLives) +
                                                 " keepers in a row have died within " +
                                                 to_text(kShortLife) + " of their start"};
    Result<keeper::Started> started = keeper::start_by_exec(impl_->options);
    if (!started) return started.error();
    impl_->adopt(std::move(*started));
    impl_->listen();
    return {};
}

// Works without the loop. Callbacks go first: what they would touch may be gone already.
Result<> Keeper::shutdown(Duration limit) {
    Impl& impl = *impl_;
    impl.spawns.clear();
    impl.sweeps.clear();
    impl.events = {};
    impl.stop_timers();
    if (!impl.alive()) return {};
    // A keeper that sweeps for long still answers the check.
    impl.check();
    impl.socket->send(keeper::of(RequestKind::shutdown));
    const keeper::Socket::End end = impl.socket->await_end(limit);
    const std::string name = "the keeper (process " + std::to_string(impl.pid) + ")";
    if (end == keeper::Socket::End::not_yet)
        return Error{ErrorCode::timed_out,
                     name + " still waits for processes that hang in the kernel"};
    impl.socket->close();
    if (end == keeper::Socket::End::silent) {
        ::kill(impl.pid, SIGKILL);
        if (!kill_all_descendants(limit))
            return Error{ErrorCode::timed_out, name + " is frozen and cannot be killed"};
    } else {
        ::waitpid(impl.pid, nullptr, 0);
    }
    impl.pid = -1;
    return {};
}

void Keeper::Impl::adopt(keeper::Started started) {
    pid = started.pid;
    began = boot_now();
    socket = std::make_shared<keeper::Socket>(std::move(started.socket));
}

// Called by attach(), and again for the socket of a new keeper. Each callback keeps this object
// until it returns, because it may lead to the end of the Keeper.
void Keeper::Impl::listen() {
    socket->listen(
        *io,
        [weak = weak_from_this()](const Reply& reply, std::vector<UniqueFd>& fds) {
            if (const auto self = weak.lock()) self->on_reply(reply, fds);
        },
        [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->on_end();
        });
    guard->begin(pid);
}

// Somebody waits for its answer.
void Keeper::Impl::send_work(const Request& request, const std::string& payload,
                             const std::vector<int>& fds) {
    socket->send(request, payload, fds);
    if (guard) guard->work_asked();
}

void Keeper::Impl::check() { socket->send(keeper::of(RequestKind::check)); }

void Keeper::Impl::on_frozen(Duration silence) {
    const auto self = shared_from_this();
    socket->close();
    how_died = "did not answer for " + to_text(silence) + " and was killed";
    if (events.frozen) events.frozen();
    on_end();
}

void Keeper::Impl::noticed() { socket->send(keeper::of(RequestKind::noticed, boot_now())); }

// Replies come in the order in which the keeper sent them.
void Keeper::Impl::on_reply(const Reply& reply, std::vector<UniqueFd>& fds) {
    switch (reply.kind) {
        case ReplyKind::forked:
        case ReplyKind::failed:
            return on_forked(reply, fds);
        case ReplyKind::exited:
            // The foreground process group has died, so nobody would receive Ctrl-C. ddprun takes
            // the terminal back.
            if (std::erase(foreground, reply.pid) != 0) take_terminal_back(reply.pid);
            if (readers.erase(reply.pid) != 0)
                change_keyboard([&](bool) { keyboard.ended(reply.pid); });
            rounds->reaped(reply.pid, reply.wait_status);
            if (events.exited)
                events.exited(reply.pid, reply.wait_status, Time{Duration{reply.time_ns}});
            return;
        case ReplyKind::swept:
            rounds->forget();
            if (auto sweep = sweeps.extract(reply.id)) sweep.mapped()(left_of(reply));
            return;
        case ReplyKind::waits:
            if (events.waits) events.waits(left_of(reply));
            return;
        case ReplyKind::stopped:
            return on_stopped(reply.pid, reply.wait_status);
        case ReplyKind::signalled:
            return on_signalled(reply.wait_status);
        case ReplyKind::passed:
            // Reading this message proves that ddprun is not frozen, so it can be answered here.
            return noticed();
        case ReplyKind::expired:
            if (events.expired) events.expired();
            return;
        case ReplyKind::survivor:
            return on_survivor({reply.pid, reply.name, reply.user, reply.blocks != 0});
        case ReplyKind::works:
            return guard->answered();
    }
}

// A reply without a matching request belongs to a spawn that was dropped.
void Keeper::Impl::on_forked(const Reply& reply, std::vector<UniqueFd>& fds) {
    const auto found = spawns.extract(reply.id);
    if (!found) return;
    const Spawn& spawn = found.mapped();
    if (reply.kind == ReplyKind::failed)
        return spawn.done(keeper::start_error(reply.stage, reply.error, spawn.program));
    if (spawn.foreground) foreground.push_back(reply.pid);
    if (spawn.by_turns) readers[reply.pid] = false;
    rounds->started(reply.pid);
    Spawned spawned;
    spawned.pid = reply.pid;
    if (!fds.empty()) spawned.pidfd = std::move(fds.front());
    spawn.done(std::move(spawned));
}

void Keeper::Impl::on_signalled(int signal) const {
    if (events.signalled && has_handler(signal)) return events.signalled(signal);
    ::kill(::getpid(), signal);
}

// Of several workers the terminal stops those that read it, and by Ctrl-Z the one that has it. Any
// other stop is not the terminal's.
void Keeper::Impl::on_stopped(pid_t worker, int signal) {
    if (!readers.contains(worker) || (signal == SIGTSTP && keyboard.holder() == worker)) {
        if (events.stopping) events.stopping();
        return stop_with(worker, signal);
    }
    if (signal != SIGTTIN && signal != SIGTTOU) return;
    keep_terminal_modes();
    readers[worker] |= signal == SIGTTOU && !has_usual_modes();
    change_keyboard([&](bool ours) { keyboard.asks(worker, ours); });
    if (!keyboard_look) look_at_keyboard();
}

template <class Change>
void Keeper::Impl::change_keyboard(const Change& change) {
    const auto before = static_cast<pid_t>(keyboard.holder());
    change(holds_terminal() || (before != 0 && is_in_front(before)));
    const auto after = static_cast<pid_t>(keyboard.holder());
    if (after == before) return;
    if (after == 0) take_terminal_back(before);
    if (after != 0 || holds_terminal()) restore_terminal_modes();
    if (after == 0) return;
    last_holder = after;
    give_terminal(after);
}

void Keeper::Impl::look_at_keyboard() {
    keyboard_look.emplace(*io);
    keyboard_look->expires_after(kKeyboardLook);
    keyboard_look->async_wait([this, weak = weak_from_this()](auto error) {
        const auto self = weak.lock();
        if (error || !self) return;
        keyboard_look.reset();
        const auto holder = static_cast<pid_t>(keyboard.holder());
        const auto found = readers.find(holder);
        const bool is_misled = found != readers.end() && found->second;
        const TerminalUse use = holder != 0 ? use_of_terminal(holder, is_misled) : TerminalUse{};
        if (is_misled && is_in_front(holder)) restore_terminal_modes();
        bool is_ours = false;
        change_keyboard([&](bool ours) { keyboard.looked(use.reads, is_ours = ours); });
        if (!keyboard.is_used()) return;
        if (events.keyboard) events.keyboard(keyboard, is_ours, use.reads && use.echoes);
        look_at_keyboard();
    });
}

// A keeper without its socket is useless, even if its process still lives. So it is killed, and its
// processes become ours.
void Keeper::Impl::on_end() {
    ::kill(pid, SIGKILL);
    guard->stop();
    short_lives = boot_now() - began < kShortLife ? short_lives + 1 : 0;
    // Heartbeats continue meanwhile. The keeper itself is reaped among the others.
    rounds->run([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->call_back_died();
    });
}

// The maps are emptied before the callbacks run, because a callback may make new requests.
void Keeper::Impl::call_back_died() {
    pid = -1;
    foreground.clear();
    readers.clear();
    change_keyboard([this](bool) { keyboard = {}; });
    const Error closed{ErrorCode::closed, "the keeper died, so its workers were killed"};
    for (auto& [id, spawn] : std::exchange(spawns, {})) spawn.done(closed);
    for (auto& [id, done] : std::exchange(sweeps, {})) done({});
    if (events.died) events.died(how_died.empty() ? "has died" : std::exchange(how_died, {}));
}

void Keeper::Impl::stop_timers() {
    if (rounds) rounds->stop();
    if (guard) guard->stop();
    if (keyboard_look) keyboard_look->cancel();
}

Keeper::Keeper(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Keeper::Keeper(Keeper&&) noexcept = default;
// Swapping leaves the old state to the destructor of `other`.
Keeper& Keeper::operator=(Keeper&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
}

// Closing the socket is the message: the keeper sees the end of the connection and does what it
// does when ddprun dies.
Keeper::~Keeper() {
    if (!impl_) return;
    impl_->events = {};
    impl_->spawns.clear();
    impl_->sweeps.clear();
    impl_->stop_timers();
    impl_->socket->close();
}

void Keeper::attach(asio::io_context& io, Duration patience, KeeperEvents events) {
    impl_->io = &io;
    // Both are parts of Impl, so these callbacks need not keep it.
    impl_->rounds = std::make_unique<KillRounds>(
        io, [impl = impl_.get()](const Survivor& survivor) { impl->on_survivor(survivor); });
    impl_->guard = std::make_unique<keeper::Guard>(
        io, patience, [impl = impl_.get()] { impl->check(); },
        [impl = impl_.get()](Duration silence) { impl->on_frozen(silence); });
    impl_->events = std::move(events);
    impl_->listen();
}

void Keeper::spawn(const WorkerStart& start, SpawnCallback done) {
    Impl& impl = *impl_;
    if (!impl.alive()) return impl.refuse(std::move(done));
    const keeper::ForkRequest fork = keeper::make_fork_request(start);
    Request request = fork.request;
    // If ddprun was started in the background, its worker must not take the terminal either.
    request.in_front = start.foreground && !start.by_turns && holds_terminal() ? 1 : 0;
    request.id = impl.next_id++;
    impl.spawns.emplace(request.id,
                        Impl::Spawn{std::move(done), start.argv.empty() ? "" : start.argv.front(),
                                    start.foreground, start.by_turns});
    impl.send_work(request, fork.payload, fork.fds);
}

void Keeper::adopt(std::int64_t pid, int release, SpawnCallback done) {
    Impl& impl = *impl_;
    if (!impl.alive()) return impl.refuse(std::move(done));
    Request request = keeper::of(RequestKind::adopt);
    request.pid = static_cast<std::int32_t>(pid);
    request.id = impl.next_id++;
    impl.spawns.emplace(request.id, Impl::Spawn{std::move(done), "a forked worker", false, false});
    impl.send_work(request, {}, {release});
}

bool Keeper::had_keyboard(std::int64_t pid) const { return impl_->last_holder == pid; }

void Keeper::set_deadline(Time deadline, Duration lease) {
    if (alive()) impl_->socket->send(keeper::of(RequestKind::deadline, deadline, lease));
}

void Keeper::noticed() {
    if (alive()) impl_->noticed();
}

void Keeper::hurry(Duration to_leave) {
    if (alive()) impl_->socket->send(keeper::of(RequestKind::hurry, {}, to_leave));
}

void Keeper::sweep(const std::optional<Patience>& patience, SweptCallback done) {
    // After the keeper's death and before the first request to its successor nothing can be left.
    // If its processes are still being killed, call_back_died() answers.
    if (!alive() && impl_->pid < 0)
        return asio::post(*impl_->io, [done = std::move(done)] { done({}); });
    Request request = keeper::of(RequestKind::sweep);
    request.id = impl_->next_id++;
    if (patience) {
        request.give_time = 1;
        request.time_ns = patience->wait.count();
        request.lease_ns = patience->to_leave.count();
        request.leave_alone = patience->leave_alone ? 1 : 0;
    }
    impl_->sweeps.emplace(request.id, std::move(done));
    if (alive()) impl_->send_work(request);
}

void Keeper::prepare_gone(const std::string& frame, int link_fd, int listen_fd) {
    if (!alive()) return;
    Request request = keeper::of(RequestKind::prepare);
    std::vector<int> fds;
    if (link_fd >= 0) fds.push_back(link_fd), request.present |= 1U;
    if (listen_fd >= 0) fds.push_back(listen_fd), request.present |= 2U;
    impl_->socket->send(request, frame, fds);
}

void Keeper::remove_when_gone(const std::string& folder, int lock_fd) {
    const std::vector<int> lock(lock_fd >= 0 ? 1 : 0, lock_fd);
    if (alive()) impl_->socket->send(keeper::of(RequestKind::folder), folder, lock);
}

bool Keeper::alive() const { return impl_ && impl_->alive(); }
std::int64_t Keeper::pid() const { return impl_ ? impl_->pid : -1; }

}  // namespace ddprun::agent
