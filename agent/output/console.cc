// The queue in front of a slow output, its writer, and the rules for a full queue.
#include "agent/output/console.h"

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "agent/output/byte_queue.h"
#include "agent/output/collapsed_output.h"
#include "agent/output/console_reports.h"
#include "agent/output/held_line.h"
#include "agent/output/screen.h"
#include "base/system/boot_clock.h"

namespace ddprun::agent {

namespace asio = boost::asio;

namespace {

// Whether a later write may succeed. A full disk may get room again, but a reader that has gone
// does not come back.
bool may_recover(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

// A file must be complete, so its lines are never dropped.
Console::Options fitting(Console::Options options, const OutputTarget& target) {
    if (target.is_file()) options.overflow = Overflow::block;
    return options;
}

}  // namespace

// Bytes on their way to a file. The file thread does the work; the loop may read the error when the
// work is done.
struct FileWork {
    std::vector<std::string> pieces;
    std::shared_ptr<OutputTarget> target;
    FileThread::Progress progress;
    int error = 0;

    void run() {
        error = target->write_all(pieces, progress);
        pieces.clear();
        // Closing a file may block, so the last reference must go on this thread.
        target.reset();
    }
};

// Handlers and jobs on the file thread hold this object by shared_ptr.
struct Console::Impl : std::enable_shared_from_this<Console::Impl> {
    Impl(asio::io_context& io, FileThread& files, OutputTarget to, std::string name, Tell tell,
         const Options& wanted)
        : io(io),
          files(files),
          target(std::make_shared<OutputTarget>(std::move(to))),
          tell(std::move(tell)),
          options(fitting(wanted, *target)),
          reports(std::move(name), options.limit, options.overflow),
          impatience(io),
          pause(io),
          line(options.limit / 2, options.pause),
          window_end(io) {
        if (options.terminal && target->is_terminal()) screen.emplace();
        if (!target->is_file() && target->number() >= 0) ready.emplace(io, target->number());
    }

    asio::io_context& io;
    FileThread& files;
    // Shared with the work on the file thread, if it is a file.
    std::shared_ptr<OutputTarget> target;
    Tell tell;
    Options options;
    ConsoleReports reports;
    std::optional<asio::posix::stream_descriptor> ready;  // for poll; none for a file
    asio::steady_timer impatience;  // until the operator hears that this output is slow
    asio::steady_timer pause;       // until the next look whether the held line has grown
    HeldLine line;
    std::optional<Screen> screen;
    std::optional<CollapsedOutput> collapsed;  // only with a screen
    asio::steady_timer window_end;             // until lines that it holds are shown
    Time window_end_at = kNever;
    ByteQueue queue;
    std::size_t at_the_file = 0;     // bytes that the file thread is writing
    std::shared_ptr<FileWork> work;  // with them
    bool armed = false;              // the loop waits for room in the output
    bool dead = false;               // writing is not possible any more
    bool stalled = false;            // it was full, and half of the limit is not free again
    std::vector<std::function<void()>> on_room;

    std::size_t waiting() const { return queue.size() + at_the_file + line.bytes_behind(); }
    bool full() const { return options.overflow == Overflow::block && waiting() >= options.limit; }
    void put(std::string bytes);
    void show(const CollapsedOutput::Pieces& pieces);
    void show_held();
    void arm_window();
    void write_on();
    bool write_ready();
    void hand_over();
    void handed_over(int error);
    void fail(int error);
    void arm();
    void heed_overflow();
    void put_behind(std::string bytes);
    void watch_holder();
    void let_go(const std::string& line_end);
    void heed_room();
    void say(const std::optional<Error>& error);
    std::size_t flush_file(Duration patience);
    std::shared_ptr<FileWork> rest(std::shared_ptr<OutputTarget> to);
    void close_file(std::shared_ptr<OutputTarget> file);
    std::size_t flush_ready(Duration patience);
};

// Posted to the loop, because write() is called in the middle of the caller's own work.
void Console::Impl::say(const std::optional<Error>& error) {
    if (tell && error) asio::post(io, [tell = tell, error = *error] { tell(error); });
}

void Console::Impl::put(std::string bytes) {
    if (bytes.empty()) return;
    queue.append(std::move(bytes));
    write_on();
    heed_overflow();
}

void Console::Impl::write_on() {
    if (target->is_file()) return hand_over();
    // There was no room a moment ago, and the loop reports when there is. Trying again would only
    // cost a system call for each line.
    if (armed) return;
    write_ready();
    arm();
}

void Console::Impl::show(const CollapsedOutput::Pieces& pieces) {
    for (const CollapsedOutput::Piece& piece : pieces)
        put(piece.who == nullptr ? screen->insert(piece.bytes)
                                 : screen->print(piece.who, piece.prefix, piece.bytes));
    arm_window();
}

void Console::Impl::show_held() {
    if (collapsed && !dead) show(collapsed->all(boot_now()));
}

void Console::Impl::arm_window() {
    const Time next = collapsed->next();
    // A timer that goes off early asks again.
    if (next == kNever || next >= window_end_at) return;
    window_end_at = next;
    window_end.expires_after(std::max(next - boot_now(), Duration{0}));
    window_end.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self) return;
        self->window_end_at = kNever;
        if (self->collapsed && !self->dead) self->show(self->collapsed->ready(boot_now()));
    });
}

// Writes as long as there is room. Returns true when nothing waits any more.
bool Console::Impl::write_ready() {
    while (queue.size() > 0) {
        const std::string_view bytes = queue.front();
        const ssize_t n = target->write_some(bytes.data(), bytes.size());
        if (n >= 0) {
            queue.consume(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {
            return false;
        } else if (errno != EINTR) {
            fail(errno);
            return true;
        }
    }
    return true;
}

void Console::Impl::arm() {
    if (queue.size() == 0 || !ready) return;
    armed = true;
    // async_write_some() would set O_NONBLOCK, also for other processes that share the descriptor.
    // async_wait() does not.
    ready->async_wait(asio::posix::stream_descriptor::wait_write,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                          self->armed = false;
                          if (error) return;
                          self->write_on();
                          self->heed_room();
                      });
}

// One job at a time: what arrives while it runs forms the next job. So many small writes become few
// large ones.
void Console::Impl::hand_over() {
    if (at_the_file > 0 || queue.size() == 0) return;
    at_the_file = queue.size();
    work = rest(target);
    files.post([work = work] { work->run(); },
               [self = shared_from_this(), work = work] { self->handed_over(work->error); });
}

void Console::Impl::handed_over(int error) {
    at_the_file = 0;
    work.reset();
    // The Console was destroyed in the meantime.
    if (!target) return;
    if (error != 0) fail(error);
    hand_over();
    heed_room();
}

// What waits is dropped, unless a file may get room again.
void Console::Impl::fail(int error) {
    dead = !may_recover(error);
    if (dead || !target->is_file()) queue.take_all();
    say(reports.broken(error, dead));
}

// Called after every write. With `drop` it enforces the limit. With `block` the caller stops
// reading (full()). In both cases the operator hears of it once, if it lasts for `patience`. It
// lasts until half of the limit is free: writers wait until then, and nobody else would look again.
void Console::Impl::heed_overflow() {
    if (waiting() < options.limit) return;
    if (options.overflow == Overflow::drop) reports.count_dropped(queue.drop_oldest(options.limit));
    if (options.patience == Duration::zero()) return say(reports.slow());
    if (std::exchange(stalled, true)) return;
    impatience.expires_after(options.patience);
    impatience.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error && self->stalled) self->say(self->reports.slow());
    });
}

// Keeps what others write while one holds the output. When half of the limit waits, the long line
// is cut, so that the others can continue before the queue is full.
void Console::Impl::put_behind(std::string bytes) {
    if (line.put_behind(std::move(bytes))) let_go("\n");
    heed_overflow();
}

// Cuts a line that has not grown for `pause`. If someone waits for room, the output is full and the
// holder cannot write either, so its silence proves nothing.
void Console::Impl::watch_holder() {
    pause.expires_after(options.pause);
    pause.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (error || !self || !self->line.is_held()) return;
        if (self->on_room.empty() && self->line.stands_still(boot_now()))
            self->let_go("\n");
        else
            self->watch_holder();
    });
}

// Ends the holder's turn: adds `line_end` if the line is unfinished, then what the others wrote.
void Console::Impl::let_go(const std::string& line_end) {
    if (!line.is_held()) return;
    pause.cancel();
    std::vector<std::string> behind = line.end();
    if (dead) return;
    if (!line_end.empty()) queue.append(line_end);
    for (std::string& bytes : behind) queue.append(std::move(bytes));
    write_on();
}

// Half of the limit must be free again before pipes are read. Otherwise they would be stopped and
// started for every line.
void Console::Impl::heed_room() {
    if (waiting() > options.limit / 2) return;
    if (std::exchange(stalled, false)) impatience.cancel();
    say(reports.dropped());
    for (auto& callback : std::exchange(on_room, {})) asio::post(io, std::move(callback));
}

std::shared_ptr<FileWork> Console::Impl::rest(std::shared_ptr<OutputTarget> to) {
    return std::make_shared<FileWork>(
        FileWork{queue.take_all(), std::move(to), files.progress(), 0});
}

// Blocks the loop's thread on purpose: this is the end of the process. The result is the number of
// bytes that may be lost.
std::size_t Console::Impl::flush_file(Duration patience) {
    const std::size_t size = waiting();
    const auto before = work, last = rest(target);
    files.post([last] { last->run(); });
    if (!files.drain(patience)) return size;
    const int error = before && before->error != 0 ? before->error : last->error;
    if (error == 0) return 0;
    dead = !may_recover(error);
    if (const auto told = reports.broken(error, dead); told && tell) tell(*told);
    return 0;
}

// The loop may end before the file thread has written the rest, so what goes wrong is told there.
void Console::Impl::close_file(std::shared_ptr<OutputTarget> file) {
    files.post([before = work, last = rest(std::move(file)), reports = reports,
                late = options.late]() mutable {
        last->run();
        const int error = before && before->error != 0 ? before->error : last->error;
        if (error == 0 || !late) return;
        if (const auto fault = reports.broken(error, !may_recover(error))) late->add(*fault);
    });
}

// Each byte that is taken starts the patience anew: a slow reader gets everything, only a stuck one
// is given up.
std::size_t Console::Impl::flush_ready(Duration patience) {
    Time give_up = boot_now() + patience;
    while (true) {
        const std::size_t before = queue.size();
        if (write_ready()) return 0;
        if (queue.size() < before) give_up = boot_now() + patience;
        const Duration left = give_up - boot_now();
        if (left <= Duration::zero()) return queue.size();
        target->wait_for_room(left + std::chrono::milliseconds{1});
    }
}

Console::Console(asio::io_context& io, FileThread& files, int fd, std::string name, Tell tell,
                 Options options)
    : impl_(std::make_shared<Impl>(io, files, OutputTarget(fd), std::move(name), std::move(tell),
                                   options)) {}

Console::Console(asio::io_context& io, FileThread& files, UniqueFd file, std::string name,
                 Tell tell, Options options)
    : impl_(std::make_shared<Impl>(io, files, OutputTarget(std::move(file)), std::move(name),
                                   std::move(tell), options)) {}

Console::~Console() {
    impl_->tell = nullptr;
    impl_->let_go("\n");
    impl_->impatience.cancel();
    impl_->window_end.cancel();
    // The descriptor belongs to `target`, so Asio must not close it.
    if (impl_->ready) impl_->ready->release();
    impl_->ready.reset();
    const auto target = std::exchange(impl_->target, nullptr);
    // The file thread writes the rest and closes the file, because close() may wait for the file
    // system, too.
    if (target->is_file()) impl_->close_file(target);
}

void Console::collapse(std::vector<int> ranks, CollapsedLines::Label label) {
    if (!impl_->screen) return;
    impl_->show_held();
    impl_->collapsed.reset();
    if (!ranks.empty()) impl_->collapsed.emplace(std::move(ranks), std::move(label));
}

void Console::write(std::string bytes, const void* who) {
    if (bytes.empty() || impl_->dead) return;
    if (impl_->line.is_held()) {
        // Someone else is in the middle of a long line.
        if (!impl_->line.is_held_by(who)) return impl_->put_behind(std::move(bytes));
        impl_->line.grew(boot_now());
    }
    // What ddprun says comes after what made it say so.
    impl_->show_held();
    impl_->put(impl_->screen ? impl_->screen->insert(bytes) : std::move(bytes));
}

// The size may have changed since the last call.
std::optional<WindowSize> Console::window() {
    if (!impl_->screen) return std::nullopt;
    const auto window = window_of(impl_->target->number());
    if (window) impl_->screen->set_columns(window->columns);
    return window;
}

void Console::print(const void* who, std::size_t index, std::string_view prefix,
                    std::string_view bytes) {
    if (!impl_->screen || impl_->dead) return;
    if (!impl_->collapsed) return impl_->put(impl_->screen->print(who, prefix, bytes));
    impl_->show(impl_->collapsed->print(who, index, prefix, bytes, boot_now()));
}

void Console::typed(const void* who) {
    if (impl_->screen) impl_->screen->typed(who);
}

void Console::finish(const void* who) {
    if (!impl_->screen || impl_->dead) return;
    if (impl_->collapsed) impl_->show(impl_->collapsed->finish(who, boot_now()));
    impl_->put(impl_->screen->finish(who));
}

// With `drop` nobody waits, so nobody can hold the output: the long line is cut instead.
bool Console::hold(const void* who) {
    if (impl_->options.overflow == Overflow::drop) return false;
    if (!impl_->line.begin(who, boot_now())) return false;
    impl_->watch_holder();
    return true;
}

bool Console::holds(const void* who) const { return impl_->line.is_held_by(who); }

void Console::release(const void* who) {
    if (holds(who)) impl_->let_go("");
}

std::size_t Console::waiting() const { return impl_->waiting(); }
bool Console::full() const { return impl_->full(); }

// heed_room() calls back (through the loop) even if there is room already.
void Console::when_room(std::function<void()> callback) {
    impl_->on_room.push_back(std::move(callback));
    impl_->heed_room();
}

std::size_t Console::flush(Duration patience) {
    impl_->let_go("\n");
    impl_->show_held();
    if (impl_->dead) return 0;
    if (const auto told = impl_->reports.dropped(); told && impl_->tell) impl_->tell(*told);
    return impl_->target->is_file() ? impl_->flush_file(patience) : impl_->flush_ready(patience);
}

}  // namespace ddprun::agent
