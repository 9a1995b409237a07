// Streams, events and the host of the played GPU, and the thread that works the streams off.
#include "tests/trainer/gpu_host/device.h"

#include <algorithm>

namespace ddprun::trainer::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::uint32_t kLongestDelay = 300;  // microseconds
constexpr auto kPause = microseconds(100);

CUstream_st legacy_stream{0, true, "the legacy stream", false, {}};
CUstream_st thread_marker;

}  // namespace

// Never destroyed: its thread may run until the process ends.
Device& Device::get() {
    static Device* const only = new Device;
    return *only;
}

Device::Device() {
    (void)new_lane(true);
    thread_ = std::thread([this] { work_off(); });
    thread_.detach();
}

std::size_t Device::new_lane(bool blocking) {
    lanes_.emplace_back();
    lanes_.back().blocking = blocking;
    return lanes_.size() - 1;
}

GpuStream Device::make_stream(bool blocking) {
    std::lock_guard lock(mutex_);
    auto made = std::make_unique<CUstream_st>();
    made->id = new_lane(blocking);
    made->blocking = blocking;
    made->name = (blocking ? "stream " : "non-blocking stream ") + std::to_string(made->id);
    streams_.push_back(std::move(made));
    return streams_.back().get();
}

// Its work goes on, as CUDA says.
void Device::destroy_stream(GpuStream stream) {
    std::lock_guard lock(mutex_);
    std::erase_if(streams_, [&](const auto& one) { return one.get() == stream; });
}

GpuStream Device::legacy() { return &legacy_stream; }
GpuStream Device::of_thread() { return &thread_marker; }

CUstream_st& Device::resolve(GpuStream stream) {
    if (!stream) return legacy_stream;
    if (stream != &thread_marker) return *stream;
    auto& own = of_threads_[std::this_thread::get_id()];
    if (!own) {
        own = std::make_unique<CUstream_st>();
        own->id = new_lane(true);
        own->name = "the default stream " + std::to_string(own->id) + " of a thread";
    }
    return *own;
}

// The legacy stream waits for all blocking ones, and they wait for it.
void Device::default_stream_rules(std::size_t lane, VectorClock& before) {
    if (lane == 0) {
        for (const Lane& other : lanes_)
            if (other.blocking) before.join(other.last);
    } else if (lanes_[lane].blocking) {
        before.join(after_legacy_);
    }
}

VectorClock Device::put(std::size_t lane, const std::string& name, const Task& task) {
    VectorClock before = lanes_[lane].last;
    before.join(host_);
    default_stream_rules(lane, before);
    Lane& own = lanes_[lane];
    log_.work({name, lane, own.given + 1, before}, task.ranges);
    const auto delay = microseconds(random_() % kLongestDelay);
    own.queue.push_back({task.make ? task.make() : Run(), before, Clock::now() + delay});
    own.last = before;
    own.last.set(lane, ++own.given);
    if (lane == 0) after_legacy_ = own.last;
    changed_.notify_all();
    return own.last;
}

void Device::give(GpuStream stream, Task task) {
    std::lock_guard lock(mutex_);
    CUstream_st& to = resolve(stream);
    if (to.captured) return capture(to, std::move(task));
    if (capture_ && to.id == 0)
        broken(task.name + " on the legacy stream while a stream is captured");
    (void)put(to.id, task.name + " on " + to.name, task);
}

// An event of the legacy stream is behind what that stream waits for, though it carries nothing
// out.
void Device::record(GpuStream stream, CUevent_st& event) {
    std::lock_guard lock(mutex_);
    CUstream_st& from = resolve(stream);
    event.captured = from.captured;
    event.nodes = from.nodes;
    if (from.captured) return;
    if (capture_ && from.id == 0)
        broken("an event of the legacy stream while a stream is captured");
    event.clock = lanes_[from.id].last;
    default_stream_rules(from.id, event.clock);
}

void Device::wait_for(GpuStream stream, const CUevent_st& event) {
    std::lock_guard lock(mutex_);
    CUstream_st& to = resolve(stream);
    if (event.captured) {
        if (!capture_) return broken("a wait for an event of a capture that is over");
        to.captured = true;
        to.nodes.insert(to.nodes.end(), event.nodes.begin(), event.nodes.end());
        return;
    }
    if (to.captured) return broken("a wait of a captured stream for an event from before");
    lanes_[to.id].last.join(event.clock);
    // The legacy stream's wait holds the blocking streams up, too.
    if (to.id == 0) after_legacy_.join(event.clock);
}

bool Device::covers(const VectorClock& clock) const {
    for (std::size_t i = 0; i < clock.size(); ++i)
        if (lanes_[i].done < clock.at(i)) return false;
    return true;
}

void Device::host_waits(const CUevent_st& event) {
    std::unique_lock lock(mutex_);
    if (event.captured) return broken("the host waits for an event of a capture");
    if (is_unsafe()) broken("the host waits for an event while a stream is captured");
    changed_.wait(lock, [&] { return covers(event.clock); });
    host_.join(event.clock);
    log_.forget(host_);
}

bool Device::host_sees(const CUevent_st& event) {
    std::lock_guard lock(mutex_);
    if (is_unsafe()) broken("the host asks for an event while a stream is captured");
    if (!covers(event.clock)) return false;
    host_.join(event.clock);
    log_.forget(host_);
    return true;
}

bool Device::is_reached(const CUevent_st& event) {
    std::lock_guard lock(mutex_);
    if (is_unsafe()) broken("a thread asks for an event while a stream is captured");
    return covers(event.clock);
}

void Device::host_waits_for_all() {
    std::unique_lock lock(mutex_);
    VectorClock all;
    for (std::size_t i = 0; i < lanes_.size(); ++i) all.set(i, lanes_[i].given);
    changed_.wait(lock, [&] { return covers(all); });
    host_.join(all);
    log_.forget(host_);
}

void Device::host_touches(const std::string& name, const Range& range) {
    std::lock_guard lock(mutex_);
    log_.host(name, range, host_);
}

void Device::allocated(const void* data, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    log_.allocated(data, bytes);
}

void Device::freed(const void* data) {
    std::lock_guard lock(mutex_);
    log_.freed(data);
}

void Device::seed(std::uint32_t seed) {
    std::lock_guard lock(mutex_);
    random_.seed(seed);
}

void Device::hold(bool held) {
    std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
}

std::vector<std::string> Device::reports() {
    std::lock_guard lock(mutex_);
    auto all = log_.reports();
    all.insert(all.end(), broken_.begin(), broken_.end());
    return all;
}

// A stream whose first work may run, and that was not tried in this round.
std::optional<std::size_t> Device::choose(const std::vector<bool>& tried) {
    std::vector<std::size_t> ready;
    const auto now = Clock::now();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        const auto& queue = lanes_[i].queue;
        if (queue.empty() || (i < tried.size() && tried[i])) continue;
        if (queue.front().not_before <= now && covers(queue.front().before)) ready.push_back(i);
    }
    if (ready.empty()) return std::nullopt;
    return ready[random_() % ready.size()];
}

void Device::work_off() {
    std::unique_lock lock(mutex_);
    std::vector<bool> tried;
    while (true) {
        const auto lane = held_ ? std::nullopt : choose(tried);
        if (!lane) {
            tried.clear();
            changed_.wait_for(lock, kPause);
            continue;
        }
        // Moved out: the vector of lanes may grow while the lock is free.
        Run run = std::move(lanes_[*lane].queue.front().run);
        lock.unlock();
        const bool done = !run || run();
        lock.lock();
        if (done) {
            lanes_[*lane].queue.pop_front();
            ++lanes_[*lane].done;
            changed_.notify_all();
        } else {
            lanes_[*lane].queue.front().run = std::move(run);
            tried.resize(lanes_.size());
            tried[*lane] = true;
        }
    }
}

}  // namespace ddprun::trainer::test
