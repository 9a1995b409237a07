// One epoll and its turns.
#include "base/loop/ready_sockets.h"

#include <fcntl.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

namespace ddprun {
namespace asio = boost::asio;

ReadySockets::ReadySockets() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throw std::system_error(errno, std::system_category(), "epoll_create1");
}

std::error_code ReadySockets::want(ReadySocket& socket, int fd, std::uint32_t events) {
    if (events == socket.wanted_) return {};
    // Not watched at all in place of "for nothing": a broken connection would be told all the same.
    // Closing is not enough where a child of this process still has the descriptor.
    const int what = events == 0           ? EPOLL_CTL_DEL
                     : socket.wanted_ == 0 ? EPOLL_CTL_ADD
                                           : EPOLL_CTL_MOD;
    epoll_event event{};
    event.events = events;
    event.data.ptr = &socket;
    if (::epoll_ctl(epoll_.get(), what, fd, &event) != 0) return {errno, std::system_category()};
    socket.wanted_ = events;
    if (events == 0) {
        for (int i = next_; i < count_; ++i)
            if (events_[static_cast<std::size_t>(i)].data.ptr == &socket)
                events_[static_cast<std::size_t>(i)].data.ptr = nullptr;
    }
    return {};
}

void ReadySockets::turn(int milliseconds) {
    const auto later = std::exchange(later_, {});
    count_ = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                          later.empty() ? milliseconds : 0);
    for (next_ = 0; next_ < count_;) {
        const epoll_event& event = events_[static_cast<std::size_t>(next_++)];
        if (event.data.ptr == nullptr) continue;
        const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
        static_cast<ReadySocket*>(event.data.ptr)
            ->on_ready(broken || (event.events & EPOLLIN), broken || (event.events & EPOLLOUT));
    }
    for (const auto& what : later) what();
}

void ReadySockets::follow(const asio::any_io_executor& loop) {
    // Asio closes the descriptor that it waits for.
    const int copy = ::fcntl(epoll_.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) throw std::system_error(errno, std::system_category(), "dup of an epoll");
    followed_.emplace(loop, copy);
    follow_on();
}

// Between two turns the others of the loop have theirs.
void ReadySockets::follow_on() {
    const auto go_on = [this, alive = std::weak_ptr(alive_)](boost::system::error_code = {}) {
        if (!alive.lock()) return;
        turn(0);
        follow_on();
    };
    if (later_.empty())
        followed_->async_wait(asio::posix::stream_descriptor::wait_read, go_on);
    else
        asio::post(followed_->get_executor(), go_on);
}

}  // namespace ddprun
