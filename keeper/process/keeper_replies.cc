// Builds the keeper's replies, and sends them as far as there is room.
#include "keeper/process/keeper_replies.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ddprun::agent::keeper {

void Replies::forked(std::uint32_t id, pid_t pid, UniqueFd pidfd) {
    Reply reply{};
    reply.kind = ReplyKind::forked;
    reply.id = id;
    reply.pid = pid;
    add(reply, std::move(pidfd));
}

void Replies::failed(std::uint32_t id, Stage stage, int error) {
    Reply reply{};
    reply.kind = ReplyKind::failed;
    reply.id = id;
    reply.stage = stage;
    reply.error = error;
    add(reply);
}

void Replies::exited(pid_t pid, int wait_status, Time at) {
    Reply reply{};
    reply.kind = ReplyKind::exited;
    reply.pid = pid;
    reply.wait_status = wait_status;
    reply.time_ns = at.time_since_epoch().count();
    add(reply);
}

void Replies::stopped(pid_t pid, int signal) {
    Reply reply{};
    reply.kind = ReplyKind::stopped;
    reply.pid = pid;
    reply.wait_status = signal;
    add(reply);
}

void Replies::signalled(int signal) {
    Reply reply{};
    reply.kind = ReplyKind::signalled;
    reply.wait_status = signal;
    const bool waits = std::ranges::any_of(waiting_, [&](const Waiting& other) {
        return other.reply.kind == reply.kind && other.reply.wait_status == signal;
    });
    if (!waits) add(reply);
}

namespace {

void describe(const LeftRunning& left, Reply& reply) {
    reply.count = static_cast<std::uint32_t>(left.count);
    reply.killed = static_cast<std::uint32_t>(left.killed);
    reply.pid = left.first.pid;
    left.first.name.copy(reply.name, sizeof reply.name - 1);
}

}  // namespace

void Replies::swept(std::uint32_t id, const LeftRunning& left) {
    Reply reply{};
    reply.kind = ReplyKind::swept;
    reply.id = id;
    describe(left, reply);
    add(reply);
}

void Replies::waits(const LeftRunning& left) {
    Reply reply{};
    reply.kind = ReplyKind::waits;
    describe(left, reply);
    add(reply);
}

void Replies::passed() {
    Reply reply{};
    reply.kind = ReplyKind::passed;
    add(reply);
}

void Replies::expired() {
    Reply reply{};
    reply.kind = ReplyKind::expired;
    add(reply);
}

void Replies::works() {
    Reply reply{};
    reply.kind = ReplyKind::works;
    add(reply);
}

void Replies::survivor(const Survivor& found) {
    Reply reply{};
    reply.kind = ReplyKind::survivor;
    reply.pid = found.pid;
    reply.user = found.user;
    reply.blocks = found.blocks ? 1 : 0;
    found.name.copy(reply.name, sizeof reply.name - 1);
    add(reply);
}

// Stops when the socket is full; poll then waits for room. If the socket has ended, the reader of
// the requests finds out.
void Replies::flush() {
    while (!waiting_.empty()) {
        const Waiting& next = waiting_.front();
        std::vector<int> fds;
        if (next.pidfd) fds.push_back(next.pidfd.get());
        if (send_packet(socket_, &next.reply, sizeof next.reply, fds) != Transfer::done) return;
        waiting_.pop_front();
    }
}

void Replies::agent_is_gone() {
    gone_ = true;
    waiting_.clear();
}

void Replies::add(const Reply& reply, UniqueFd pidfd) {
    if (!gone_) waiting_.push_back({reply, std::move(pidfd)});
}

}  // namespace ddprun::agent::keeper
