#include "agent/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "agent/last_lines.h"
#include "agent/line_splitter.h"

namespace ddprun::agent {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

constexpr std::size_t kRead = std::size_t{64} << 10;
// Reads in a row from one pipe, so that a worker that prints all the time does not keep the loop
// from the others.
constexpr int kReadsInARow = 4;

// One stream of one worker: its pipe, where it goes, and its unfinished line. Shared with the reads
// under way.
struct Pump : std::enable_shared_from_this<Pump> {
    Pump(asio::io_context& io, const std::string& prefix, LastLines& tail)
        : pipe(io), splitter(prefix), tail(&tail) {}

    stream_descriptor pipe;
    Console* console = nullptr;
    std::unique_ptr<Console> file;
    LineSplitter splitter;
    LastLines* tail;  // null when the worker's output is no longer ours
    LastLines::Stream line;

    void pass(std::string_view bytes) {
        if (file) file->write(bytes);
        if (console != nullptr) console->write(splitter.take(bytes));
        tail->take(line, bytes);
    }

    enum class Left { nothing, maybe_more, ended };
    Left read_once() {
        char buffer[kRead];
        const ssize_t n = ::read(pipe.native_handle(), buffer, sizeof buffer);
        if (n > 0) {
            pass({buffer, static_cast<std::size_t>(n)});
            return Left::maybe_more;
        }
        if (n < 0 && errno == EINTR) return Left::maybe_more;
        return n < 0 && errno == EAGAIN ? Left::nothing : Left::ended;
    }

    void wait_for_bytes() {
        if (tail == nullptr || !pipe.is_open()) return;
        if (console != nullptr && console->full()) {
            console->when_room([self = shared_from_this()] { self->wait_for_bytes(); });
            return;
        }
        pipe.async_wait(stream_descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                            if (!error) self->read_some();
                        });
    }

    void read_some() {
        if (tail == nullptr || !pipe.is_open()) return;
        for (int i = 0; i < kReadsInARow && !(console != nullptr && console->full()); ++i) {
            const Left left = read_once();
            if (left == Left::ended) return end();
            if (left == Left::nothing) break;
        }
        wait_for_bytes();
    }

    // What the pipe holds now, but no more than it can hold: a process that the worker left may
    // write on for ever.
    void drain() {
        if (!pipe.is_open()) return;
        const long size = ::fcntl(pipe.native_handle(), F_GETPIPE_SZ);
        const long reads = 1 + std::max(size, 65536L) / 4096;  // a read takes a page at least
        for (long i = 0; i < reads && read_once() == Left::maybe_more; ++i) {
        }
        end();
    }

    void end() {
        if (console != nullptr) console->write(splitter.finish());
        tail->finish(line);
        boost::system::error_code ignored;
        pipe.close(ignored);
    }

    void abandon() {
        tail = nullptr;
        console = nullptr;
        boost::system::error_code ignored;
        pipe.close(ignored);
    }
};

}  // namespace

struct WorkerOutput::Impl {
    asio::io_context& io;
    OutputConfig config;
    std::function<void(Error)> warn;
    LastLines tail;
    std::array<std::shared_ptr<Pump>, 2> pumps;

    Result<UniqueFd> open_stream(std::shared_ptr<Pump>& pump, const StreamRoute& route);
    void open_file(Pump& pump, const std::string& path);
};

Result<UniqueFd> WorkerOutput::Impl::open_stream(std::shared_ptr<Pump>& pump,
                                                 const StreamRoute& route) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return Error{ErrorCode::internal,
                     std::string("no pipe for a worker's output: ") + std::strerror(errno)};
    // Our end only: what a worker has as its stdout must block as usual.
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pump = std::make_shared<Pump>(io, config.prefix, tail);
    pump->pipe.assign(ends[0]);
    pump->console = route.console;
    if (!route.file.empty()) open_file(*pump, route.file);
    pump->wait_for_bytes();
    return UniqueFd(ends[1]);
}

void WorkerOutput::Impl::open_file(Pump& pump, const std::string& path) {
    const UniqueFd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
    if (file) {
        pump.file = std::make_unique<Console>(io, file.get(), path, warn);
    } else if (warn) {
        warn(Error{ErrorCode::unavailable, "cannot open " + path + ": " + std::strerror(errno) +
                                               "; the worker's output is not kept there"});
    }
}

std::string console_prefix(const std::string& role, int local_rank) {
    return "[" + role + std::to_string(local_rank) + "]:";
}

WorkerOutput::WorkerOutput(asio::io_context& io, OutputConfig config,
                           std::function<void(Error)> warn)
    : impl_(new Impl{io, std::move(config), std::move(warn), {}, {}}) {}
WorkerOutput::WorkerOutput(WorkerOutput&&) noexcept = default;
WorkerOutput& WorkerOutput::operator=(WorkerOutput&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
}

WorkerOutput::~WorkerOutput() {
    if (!impl_) return;
    for (const auto& pump : impl_->pumps)
        if (pump) pump->abandon();
}

Result<WorkerOutput::ChildEnds> WorkerOutput::open() {
    ChildEnds ends;
    Result<UniqueFd> out = impl_->open_stream(impl_->pumps[0], impl_->config.out);
    if (!out) return out.error();
    Result<UniqueFd> err = impl_->open_stream(impl_->pumps[1], impl_->config.err);
    if (!err) return err.error();
    ends.out = std::move(*out);
    ends.err = std::move(*err);
    return ends;
}

void WorkerOutput::finish() {
    for (const auto& pump : impl_->pumps)
        if (pump) pump->drain();
}

std::vector<std::string> WorkerOutput::tail() const { return impl_->tail.lines(); }

}  // namespace ddprun::agent
