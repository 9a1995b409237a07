// Reads the pipes of a worker and passes the bytes on.
#include "agent/output/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/output/flood_watch.h"
#include "agent/output/last_lines.h"
#include "agent/output/prefixed_lines.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

// Bytes in one read.
constexpr std::size_t kRead = std::size_t{64} << 10;
// After so many reads from one pipe the others have their turn.
constexpr int kReadsInARow = 2;
// How long bytes may wait in the pipe when a worker prints all the time.
constexpr auto kPause = std::chrono::microseconds{500};

// What a pseudo terminal may hold.
constexpr std::size_t kTerminalHolds = std::size_t{16} << 10;

// A bar that fills the worker's terminal fits beside its prefix.
WindowSize beside(WindowSize window, std::string_view prefix) {
    constexpr unsigned short kLeast = 20;
    const auto width = static_cast<unsigned short>(std::min<std::size_t>(prefix.size(), 200));
    if (window.columns >= kLeast + width) window.columns -= width;
    return window;
}

// Tries to enlarge a pipe to 1 MiB, so that fewer context switches are needed. The kernel may
// refuse, because it limits the memory for all pipes of a user. Returns the resulting size.
std::size_t enlarged(int pipe) {
    int size = ::fcntl(pipe, F_SETPIPE_SZ, 1 << 20);
    if (size < 0) size = ::fcntl(pipe, F_GETPIPE_SZ);
    return static_cast<std::size_t>(std::max(size, 1 << 16));
}

// Reads one stream of one worker, and holds its unfinished line. Pending reads hold it by
// shared_ptr.
struct Pump : std::enable_shared_from_this<Pump> {
    Pump(asio::io_context& io, UniqueFd pipe, StreamRoute to, LastLines& tail, bool is_err,
         std::shared_ptr<RecentOutput> recent)
        : io(io),
          pipe(std::move(pipe)),
          pipe_size(to.window ? kTerminalHolds : enlarged(this->pipe.get())),
          readable(io),
          pause(io),
          route(std::move(to)),
          splitter(route.prefix, {}, route.lines),
          filter(route.filtered_prefix, route.needles, route.lines),
          tail(&tail),
          is_err(is_err),
          recent(std::move(recent)) {
        if (!route.turns) route.turns = std::make_shared<TurnBudget>(io);
    }

    asio::io_context& io;
    // Empty after the end of the stream, and when the output is not ours any more.
    UniqueFd pipe;
    std::size_t pipe_size;
    // Holds the pipe only while the loop waits for it. Between waits the pipe is not in epoll, so
    // writes of the worker wake nobody.
    stream_descriptor readable;
    asio::steady_timer pause;
    StreamRoute route;
    PrefixedLines splitter, filter;
    LastLines* tail;
    LastLines::Stream line;
    const bool is_err;
    const std::shared_ptr<RecentOutput> recent;
    FloodWatch watch;
    bool typed = false;
    std::size_t opened = 0;  // bytes that the open line had when it was opened

    // Every destination gets the same bytes.
    void pass(std::string_view bytes) {
        if (route.printed) *route.printed += static_cast<std::int64_t>(bytes.size());
        if (route.file) route.file->write(std::string(bytes));
        if (route.filtered != nullptr) to_filtered(bytes);
        if (route.console != nullptr) to_console(bytes);
        tail->take(line, bytes);
        recent->take(is_err, bytes);
    }

    // A line of the filter must be complete before it is compared, so a line that is too long can
    // only be cut.
    void to_filtered(std::string_view bytes) {
        std::string lines = filter.take(bytes);
        if (filter.too_long()) {
            const std::string cut = filter.cut();
            tell_cut(cut.size());
            lines += cut;
        }
        route.filtered->write(std::move(lines));
    }

    // A line that is too long is passed on in parts while the console is held. Where it cannot be
    // held, the line is cut.
    void to_console(std::string_view bytes) {
        if (route.window) {
            if (std::exchange(typed, false)) route.console->typed(this);
            return route.console->print(this, route.index, route.prefix, bytes);
        }
        heed_cut();
        const bool was_open = splitter.is_open();
        std::string lines = splitter.take(bytes);
        const bool too_long = splitter.too_long();
        if (too_long && route.console->hold(this)) {
            const std::string begun = splitter.open();
            opened = begun.size();
            lines += begun;
        } else if (too_long) {
            const std::string cut = splitter.cut();
            tell_cut(cut.size());
            lines += cut;
        }
        route.console->write(std::move(lines), this);
        if (was_open && !splitter.is_open()) route.console->release(this);
    }

    // The console has ended our long line because the others could not wait any longer. The next
    // bytes start a new line.
    void heed_cut() {
        if (!splitter.is_open() || route.console->holds(this)) return;
        splitter.begin_anew();
        tell_cut(opened);
    }

    // std::exchange: reported only once for each stream.
    void tell_cut(std::size_t bytes) {
        if (route.cut) std::exchange(route.cut, nullptr)(bytes);
    }

    enum class Left { nothing, maybe_more, ended };
    // EINTR counts as "maybe more": the caller simply tries again.
    Left read_once(std::size_t& total) {
        char buffer[kRead];
        const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
        if (n > 0) {
            pass({buffer, static_cast<std::size_t>(n)});
            total += static_cast<std::size_t>(n);
            return Left::maybe_more;
        }
        if (n < 0 && errno == EINTR) return Left::maybe_more;
        return n < 0 && errno == EAGAIN ? Left::nothing : Left::ended;
    }

    // The first destination that is full, or null.
    Console* full_one() const {
        for (Console* to : {route.console, route.file.get(), route.filtered})
            if (to != nullptr && to->full()) return to;
        return nullptr;
    }

    // While a destination is full, the pipe is not read. It then fills up, and the worker waits in
    // its write(), as with any slow reader.
    void read_some() {
        if (!pipe) return;
        if (Console* full = full_one()) {
            // Its reader is slow. That is no flood.
            watch.pause();
            return full->when_room([self = shared_from_this()] { self->read_some(); });
        }
        route.turns->spend([self = shared_from_this()] { return self->read_in_turn(); });
    }

    // Returns the number of bytes that it has read.
    std::size_t read_in_turn() {
        std::size_t total = 0;
        if (!pipe) return total;
        Left left = Left::maybe_more;
        for (int i = 0; i < kReadsInARow && left == Left::maybe_more && full_one() == nullptr; ++i)
            left = read_once(total);
        if (left == Left::ended) {
            end();
        } else if (left == Left::nothing) {
            watch.pause();
            total == 0 ? wait_for_bytes() : wait_a_moment(total);
        } else {
            if (const auto bytes = watch.more(total, boot_now()); bytes && route.flood)
                route.flood(*bytes);
            read_some();
        }
        return total;
    }

    void wait_for_bytes() {
        readable.assign(pipe.get());
        readable.async_wait(stream_descriptor::wait_read,
                            [self = shared_from_this()](const boost::system::error_code& error) {
                                if (self->readable.is_open()) self->readable.release();
                                if (!error) self->read_some();
                            });
    }

    // After a read the pipe is left alone for kPause. Nobody waits for it in this time, so the
    // worker's writes need not wake anybody. This is done only where the pipe cannot fill up before
    // the next read.
    void wait_a_moment(std::size_t last) {
        if (last > pipe_size / 4) return wait_for_bytes();
        pause.expires_after(kPause);
        pause.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
            if (!error) self->read_some();
        });
    }

    // Reads what the pipe holds now, and passes on unfinished lines. The number of reads is
    // limited: a process that the worker left behind may write forever.
    void settle() {
        if (!pipe) return;
        read_now();
        finish_lines();
    }

    void read_now() {
        if (!pipe) return;
        // A read returns at least one page of the pipe.
        const std::size_t reads = 1 + pipe_size / 4096;
        std::size_t total = 0;
        for (std::size_t i = 0; i < reads && read_once(total) == Left::maybe_more; ++i) {
        }
    }

    void end() {
        finish_lines();
        abandon();
    }

    void finish_lines() {
        if (route.filtered != nullptr) route.filtered->write(filter.finish());
        if (route.console != nullptr && route.window) {
            route.console->finish(this);
        } else if (route.console != nullptr) {
            heed_cut();
            route.console->write(splitter.finish(), this);
            route.console->release(this);
        }
        tail->finish(line);
    }

    // Stops reading and gives up all destinations. A long line that is open on the console is ended
    // first.
    void abandon() {
        if (route.console != nullptr && route.console->holds(this)) {
            route.console->write("\n", this);
            route.console->release(this);
        }
        if (readable.is_open()) readable.release();
        pause.cancel();
        pipe.reset();
        route = StreamRoute();
    }
};

}  // namespace

struct WorkerOutput::Impl {
    asio::io_context& io;
    std::array<StreamRoute, 2> routes;
    LastLines tail;
    std::shared_ptr<RecentOutput> recent = std::make_shared<RecentOutput>();
    std::array<std::shared_ptr<Pump>, 2> pumps = {};

    Result<UniqueFd> open_stream(std::size_t stream);
};

Result<UniqueFd> WorkerOutput::Impl::open_stream(std::size_t stream) {
    UniqueFd ours, workers;
    if (const auto window = routes[stream].window) {
        auto made = open_pseudo_terminal(beside(*window, routes[stream].prefix));
        // Without pseudo terminals (a container without /dev/ptmx) a pipe is better than no worker.
        if (made)
            ours = std::move(made->ours), workers = std::move(made->workers);
        else
            routes[stream].window.reset();
    }
    if (!ours) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0)
            return Error{
                ErrorCode::internal,
                std::string("cannot create a pipe for a worker's output: ") + std::strerror(errno)};
        ours.reset(ends[0]);
        workers.reset(ends[1]);
        // Only our end is non-blocking. The worker's stdout must block as usual: many programs do
        // not expect EAGAIN.
        ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    }
    pumps[stream] = std::make_shared<Pump>(io, std::move(ours), std::move(routes[stream]), tail,
                                           stream == 1, recent);
    pumps[stream]->wait_for_bytes();
    return workers;
}

WorkerOutput::WorkerOutput(asio::io_context& io, StreamRoute out, StreamRoute err)
    : impl_(new Impl{io, {std::move(out), std::move(err)}, {}}) {}
WorkerOutput::WorkerOutput(WorkerOutput&&) noexcept = default;
WorkerOutput& WorkerOutput::operator=(WorkerOutput&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
}

WorkerOutput::~WorkerOutput() {
    if (!impl_) return;
    for (const auto& pump : impl_->pumps)
        if (pump) pump->abandon();
    impl_->recent->end();
}

Result<WorkerOutput::ChildEnds> WorkerOutput::open() {
    ChildEnds ends;
    Result<UniqueFd> out = impl_->open_stream(0);
    if (!out) return out.error();
    Result<UniqueFd> err = impl_->open_stream(1);
    if (!err) return err.error();
    ends.out = std::move(*out);
    ends.err = std::move(*err);
    return ends;
}

void WorkerOutput::settle() {
    for (const auto& pump : impl_->pumps)
        if (pump) pump->settle();
}

void WorkerOutput::finish() {
    settle();
    for (const auto& pump : impl_->pumps)
        if (pump) pump->abandon();
    impl_->recent->end();
}

void WorkerOutput::is_typed_for() {
    for (const auto& pump : impl_->pumps)
        if (pump) pump->typed = true;
}

void WorkerOutput::read_now() {
    for (const auto& pump : impl_->pumps)
        if (pump) pump->read_now();
}

bool WorkerOutput::resize() {
    bool any = false;
    for (const auto& pump : impl_->pumps) {
        if (!pump || !pump->pipe || !pump->route.window) continue;
        any = true;
        if (const auto window = pump->route.console->window())
            agent::resize(pump->pipe.get(), beside(*window, pump->route.prefix));
    }
    return any;
}

void WorkerOutput::keep_lines(std::size_t count) { impl_->tail.keep(count); }

std::shared_ptr<RecentOutput> WorkerOutput::recent() const { return impl_->recent; }

std::vector<std::string> WorkerOutput::tail() const { return impl_->tail.lines(); }

}  // namespace ddprun::agent
