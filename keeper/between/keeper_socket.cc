// Sends requests to the keeper as far as there is room, and takes its replies.
#include "keeper/between/keeper_socket.h"

#include <fcntl.h>
#include <poll.h>

#include "base/system/boot_clock.h"
#include "base/system/memory_file.h"

namespace ddprun::agent::keeper {

using boost::asio::posix::stream_descriptor;

namespace {

// 3 or higher, so that a duplicate never takes the place of a closed standard stream.
UniqueFd duplicate(int fd) { return UniqueFd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

}  // namespace

void Socket::listen(boost::asio::io_context& io, OnReply on_reply, OnEnd on_end) {
    on_reply_ = std::move(on_reply);
    on_end_ = std::move(on_end);
    stream_ = std::make_unique<stream_descriptor>(io, before_.release());
    flush();
    read();
}

// If there is no memory file, the request goes out without its payload, and the keeper answers with
// an error.
void Socket::send(Request request, const std::string& payload, const std::vector<int>& fds) {
    UniqueFd file;
    if (!payload.empty()) {
        if (Result<UniqueFd> made = memory_file(payload)) file = std::move(*made);
        request.payload_bytes = static_cast<std::uint32_t>(payload.size());
    }
    std::vector<int> all = fds;
    if (file) all.insert(all.begin(), file.get());
    // The usual case: nothing waits, so the packet is sent at once and its descriptors need not be
    // duplicated. Packets that must wait need duplicates, because the caller may close its own.
    if (waiting_.empty() && is_open() &&
        send_packet(fd(), &request, sizeof request, all) != Transfer::would_block)
        // Also when the keeper is gone: take_replies() finds that out and handles it in one place.
        return;
    Packet packet{request, {}};
    for (const int each : all) packet.fds.push_back(duplicate(each));
    waiting_.push_back(std::move(packet));
    flush();
}

// Sends as many waiting packets as fit, and waits for room if some are left.
void Socket::flush() {
    while (!waiting_.empty() && is_open()) {
        std::vector<int> fds;
        for (const UniqueFd& each : waiting_.front().fds) fds.push_back(each.get());
        const Transfer transfer =
            send_packet(fd(), &waiting_.front().request, sizeof(Request), fds);
        if (transfer == Transfer::would_block) break;
        waiting_.pop_front();  // also when the keeper is gone: see send()
    }
    if (waiting_.empty() || waits_for_room_ || !stream_) return;
    waits_for_room_ = true;
    stream_->async_wait(stream_descriptor::wait_write,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                            self->waits_for_room_ = false;
                            if (!error) self->flush();
                        });
}

void Socket::read() {
    stream_->async_wait(stream_descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                            if (!error && self->stream_) self->take_replies();
                        });
}

// Takes all packets that are there, then waits for more.
void Socket::take_replies() {
    for (;;) {
        Reply reply;
        std::vector<UniqueFd> fds;
        const Transfer transfer = receive_packet(fd(), &reply, sizeof reply, fds);
        if (transfer == Transfer::would_block) return read();
        if (transfer == Transfer::ended) {
            close();
            return on_end_();
        }
        on_reply_(reply, fds);
        // The callback may have closed the socket.
        if (!stream_) return;
    }
}

// The keeper closes the socket only by exiting. So the end of the socket means that it has ended.
Socket::End Socket::await_end(Duration limit) {
    End so_far = End::silent;
    const Time give_up = boot_now() + limit;
    for (;;) {
        Reply reply;
        std::vector<UniqueFd> fds;
        flush();
        const Transfer transfer = receive_packet(fd(), &reply, sizeof reply, fds);
        if (transfer == Transfer::ended) return End::closed;
        if (transfer == Transfer::done) {
            so_far = End::not_yet;
            continue;
        }
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return so_far;
        pollfd wait{fd(), static_cast<short>(waiting_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
        ::poll(&wait, 1, static_cast<int>(left / std::chrono::milliseconds{1}) + 1);
    }
}

void Socket::close() {
    stream_.reset();
    waiting_.clear();
    before_.reset();
}

}  // namespace ddprun::agent::keeper
