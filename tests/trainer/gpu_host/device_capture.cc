// Captures of the played GPU: work becomes nodes of a graph, and events become the arrows between
// them.
#include <algorithm>

#include "tests/trainer/gpu_host/device.h"

namespace ddprun::trainer::test {
namespace {

// This thread only watches (cudaThreadExchangeStreamCaptureMode).
thread_local bool relaxed = false;

}  // namespace

void Device::watches_only() { relaxed = true; }

bool Device::is_unsafe() const { return capture_ && !relaxed; }

void Device::broken(const std::string& why) { broken_.push_back("a capture is broken: " + why); }

void Device::unsafe(const std::string& name) {
    std::lock_guard lock(mutex_);
    if (is_unsafe()) broken(name + " while a stream is captured");
}

bool Device::is_captured(GpuStream stream) {
    std::lock_guard lock(mutex_);
    return resolve(stream).captured;
}

void Device::begin_capture(GpuStream stream) {
    std::lock_guard lock(mutex_);
    capture_.emplace();
    resolve(stream).captured = true;
}

void Device::capture(CUstream_st& stream, Task task) {
    if (!capture_) return broken(task.name + " on " + stream.name + ", whose capture is over");
    task.name += " on " + stream.name;
    capture_->push_back({std::move(task), stream.nodes});
    stream.nodes = {capture_->size() - 1};
}

// All other streams of the capture must have been joined: each node comes before the last ones of
// the stream that began it.
Device::Graph Device::end_capture(GpuStream stream) {
    std::lock_guard lock(mutex_);
    std::vector<bool> joined(capture_->size());
    std::vector<std::size_t> open = resolve(stream).nodes;
    while (!open.empty()) {
        const std::size_t node = open.back();
        open.pop_back();
        if (joined[node]) continue;
        joined[node] = true;
        const auto& after = (*capture_)[node].after;
        open.insert(open.end(), after.begin(), after.end());
    }
    const auto alone = std::find(joined.begin(), joined.end(), false);
    if (alone != joined.end())
        broken("it ended before it was joined by " +
               (*capture_)[static_cast<std::size_t>(alone - joined.begin())].task.name);
    for (const auto& one : streams_) {
        one->captured = false;
        one->nodes.clear();
    }
    for (const auto& [thread, one] : of_threads_) {
        one->captured = false;
        one->nodes.clear();
    }
    Graph graph = std::move(*capture_);
    capture_.reset();
    return graph;
}

// Each node gets a lane of its own, so that only the graph's arrows order them.
void Device::launch(const Graph& graph, GpuStream stream) {
    std::lock_guard lock(mutex_);
    const std::size_t lane = resolve(stream).id;
    const VectorClock begun = put(lane, "a graph's begin", {});
    std::vector<VectorClock> ends;
    for (const Node& node : graph) {
        const std::size_t own = new_lane(false);
        lanes_[own].last = begun;
        for (std::size_t before : node.after) lanes_[own].last.join(ends[before]);
        ends.push_back(put(own, node.task.name + ", in a graph", node.task));
    }
    for (const VectorClock& end : ends) lanes_[lane].last.join(end);
    (void)put(lane, "a graph's end", {});
}

}  // namespace ddprun::trainer::test
