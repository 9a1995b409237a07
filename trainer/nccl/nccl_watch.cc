// One loop: see what has ended, look for a reason to end the group, sleep.
#include "trainer/nccl/nccl_watch.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace ddprun::trainer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A loss must be noticed within half a second, also by ranks that only read of it.
constexpr auto kAskTheStore = milliseconds(100);
constexpr auto kBusy = milliseconds(10), kIdle = milliseconds(100);

}  // namespace

Result<std::unique_ptr<NcclWatch>> NcclWatch::start(Group group, std::unique_ptr<Store> store,
                                                    Neighbours neighbours, CallTeller& teller) {
    auto wake = WakePipe::make("the group's watch");
    if (!wake) return wake.error();
    std::unique_ptr<NcclWatch> watch(new NcclWatch(
        std::move(group), std::move(store), std::move(neighbours), teller, std::move(*wake)));
    auto thread = start_thread("the group's watch", [self = watch.get()] { self->serve(); });
    if (!thread) {
        watch->ending_ = true;  // this rank fails, so the neighbours get no goodbye
        return thread.error();
    }
    watch->thread_ = std::move(*thread);
    return watch;
}

NcclWatch::NcclWatch(Group group, std::unique_ptr<Store> store, Neighbours neighbours,
                     CallTeller& teller, WakePipe wake)
    : group_(std::move(group)),
      store_(std::move(store)),
      neighbours_(std::move(neighbours)),
      teller_(teller),
      story_(*store_, group_.rank, group_.size, group_.job_ranks),
      wake_(std::move(wake)),
      calls_(group_.timeout),
      others_([this] { return long_call(); }) {}

NcclWatch::~NcclWatch() {
    stopping_ = true;
    wake_.wake();
    if (thread_.joinable()) thread_.join();
    if (!ending_) neighbours_.leave();
}

std::shared_ptr<Flight> NcclWatch::begin(const Operation& operation) {
    auto flight = std::make_shared<Flight>(group_.gpu);
    std::lock_guard lock(mutex_);
    if (over_) {
        flight->end(*over_);
    } else {
        flights_.push_back({calls_.begin(operation, Clock::now()), flight});
    }
    return flight;
}

void NcclWatch::fail(const std::shared_ptr<Flight>& flight, const Error& error) {
    {
        std::lock_guard lock(mutex_);
        for (const Entry& entry : flights_)
            if (entry.flight == flight && !reported_) reported_ = Failure{error, -1, entry.ticket};
    }
    wake_.wake();
}

void NcclWatch::abort() {
    abort_asked_ = true;
    wake_.wake();
}

void NcclWatch::serve() {
    gpu_watches_only();
    const GpuTurn turn(group_.gpu);
    while (true) {
        auto failure = look();
        if (failure) return end(*failure);
        if (stopping_ && may_stop()) return;
        sleep();
    }
}

bool NcclWatch::may_stop() {
    std::lock_guard lock(mutex_);
    return flights_.empty();
}

void NcclWatch::sleep() {
    std::vector<pollfd> wanted{{wake_.fd(), POLLIN, 0}};
    for (int fd : neighbours_.descriptors()) wanted.push_back({fd, POLLIN | POLLRDHUP, 0});
    auto pause = stopping_ ? milliseconds(1) : kIdle;
    {
        std::lock_guard lock(mutex_);
        if (!flights_.empty()) pause = std::min(pause, kBusy);
    }
    (void)poll(wanted.data(), wanted.size(), static_cast<int>(pause.count()));
    wake_.drain();
}

// Takes the calls out that are over. The error is one of the GPU.
Result<void> NcclWatch::reap() {
    std::lock_guard lock(mutex_);
    while (!flights_.empty()) {
        const Entry& first = flights_.front();
        const auto over = first.flight->look();
        if (!over) return over.error();
        if (!*over) break;
        calls_.ended(first.ticket, Clock::now());
        flights_.pop_front();
    }
    tell_oldest();
    return {};
}

// ddprun reads there in which call a rank hangs. Calls that are over before this thread sees them
// need not be told.
void NcclWatch::tell_oldest() {
    const auto* oldest = calls_.oldest();
    if ((oldest ? oldest->ticket : 0) == told_ticket_) return;
    told_.reset();
    told_ticket_ = oldest ? oldest->ticket : 0;
    if (oldest) told_.emplace(teller_, oldest->operation);
}

// What this rank's own program has done.
std::optional<NcclWatch::Failure> NcclWatch::asked() {
    if (abort_asked_) return Failure{Error(ErrorCode::closed, "the group was aborted")};
    std::lock_guard lock(mutex_);
    return reported_;
}

// Whether there is a reason to end the group, the most telling one first.
std::optional<NcclWatch::Failure> NcclWatch::look() {
    const auto reaped = reap();
    if (auto wish = asked()) return wish;
    if (const int lost = neighbours_.look(); lost >= 0) {
        return Failure{
            Error(ErrorCode::closed, "the connection to " + name_rank(lost, group_.job_ranks) +
                                         " was closed: that rank has died or given up"),
            lost};
    }
    if (!reaped) return Failure{reaped.error()};
    if (auto error = group_.nccl_error()) return Failure{*error};
    const auto now = Clock::now();
    {
        std::lock_guard lock(mutex_);
        if (auto error = calls_.overdue(now)) return Failure{*error};
    }
    if (group_.size == 1) return std::nullopt;
    if (auto error = ask_the_store(now)) return Failure{*error};
    return std::nullopt;
}

std::optional<Error> NcclWatch::ask_the_store(Work::Time now) {
    if (now < ask_again_) return std::nullopt;
    ask_again_ = now + kAskTheStore;
    if (story_.elsewhere()) return Error(ErrorCode::closed, "another rank has failed");
    others_.tell(story_);
    std::optional<Operation> slow;
    {
        std::lock_guard lock(mutex_);
        if (calls_.look_at_others(now)) slow = calls_.oldest()->operation;
    }
    return slow ? story_.other_call(*slow) : std::nullopt;
}

// For the other groups of this process.
std::optional<std::string> NcclWatch::long_call() {
    std::lock_guard lock(mutex_);
    if (ending_) return std::nullopt;
    if (!calls_.slow(Clock::now())) return std::string();
    return describe(calls_.oldest()->operation) + " in " + group_.name();
}

// First the calls that are not over lose their events; then one more look tells which of them were
// over all the same. Only then is anything ended by force. So no call that has succeeded is named,
// and none that an abort has let pass succeeds.
FailureStory::Failure NcclWatch::doom(const Failure& failure) {
    std::lock_guard lock(mutex_);
    ending_ = true;
    for (const Entry& entry : flights_) (void)entry.flight->doom();
    while (!flights_.empty() && flights_.front().flight->was_over()) {
        calls_.ended(flights_.front().ticket, Clock::now());
        flights_.pop_front();
    }
    const auto* call = calls_.failed(failure.ticket);
    if (!call) return {std::nullopt, "the group, between calls,", failure.reason, failure.lost};
    return {call->operation, describe(call->operation), failure.reason, failure.lost};
}

void NcclWatch::end(const Failure& failure) {
    const auto named = doom(failure);
    told_.reset();
    const Error error = story_.tell(named, group_.cut);
    std::deque<Entry> rest;
    {
        std::lock_guard lock(mutex_);
        over_ = error;
        rest.swap(flights_);
    }
    group_.over(error);
    for (const Entry& entry : rest) entry.flight->end(error);
}

}  // namespace ddprun::trainer
