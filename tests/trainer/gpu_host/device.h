// A GPU played in host memory. Streams are queues that one thread works off, after delays from a
// seeded generator; which stream comes next is drawn, too. Work is ordered by CUDA's rules:
//
//   - Work on one stream is done in order.
//   - The legacy stream waits for what all blocking streams have been given, and these wait for it.
//     The default streams of threads are blocking streams; non-blocking streams are not.
//   - An event is the point that its stream had been brought to when it was recorded.
//
// What may run is told by vector clocks, and so is which accesses are ordered (access_log.h).
// Captures follow CUDA's rules as well: what would break one on a real GPU is a report.
//
// One device in a process, made at the first use, in the child of a fork. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/gpu_host/access_log.h"
#include "trainer/gpu/gpu.h"

// CUDA's opaque types, as this GPU has them.
struct CUstream_st {
    std::size_t id = 0;
    bool blocking = true;
    std::string name;
    bool captured = false;
    std::vector<std::size_t> nodes;  // in a capture: what its next work comes after
};
struct CUevent_st {
    ddprun::trainer::test::VectorClock clock;
    bool captured = false;
    std::vector<std::size_t> nodes;
};

namespace ddprun::trainer::test {

class Device {
  public:
    static Device& get();

    // Carries the work out, or a part of it; true: it is done.
    using Run = std::function<bool()>;
    // Makes the run of one execution: called when the work is given to its stream, or each time
    // that a graph is.
    using Make = std::function<Run()>;

    struct Task {
        std::string name;
        std::vector<Range> ranges;
        Make make;
    };
    // Work that a capture has recorded, with what it comes after.
    struct Node {
        Task task;
        std::vector<std::size_t> after;
    };
    using Graph = std::vector<Node>;

    GpuStream make_stream(bool blocking);
    void destroy_stream(GpuStream stream);
    static GpuStream legacy();
    static GpuStream of_thread();  // stands for the default stream of the thread that uses it

    // Gives work to a stream.
    void give(GpuStream stream, Task task);
    void record(GpuStream stream, CUevent_st& event);
    void wait_for(GpuStream stream, const CUevent_st& event);

    // Waits until the point is reached. The host's later acts come behind it.
    void host_waits(const CUevent_st& event);
    bool host_sees(const CUevent_st& event);   // whether it is reached; if so, as host_waits()
    bool is_reached(const CUevent_st& event);  // only a look
    void host_waits_for_all();
    // The host itself touches memory.
    void host_touches(const std::string& name, const Range& range);

    void allocated(const void* data, std::size_t bytes);
    void freed(const void* data);

    void begin_capture(GpuStream stream);
    Graph end_capture(GpuStream stream);
    void launch(const Graph& graph, GpuStream stream);
    bool is_captured(GpuStream stream);
    // What a thread does no more that would break a capture of another one.
    static void watches_only();
    // For calls that are not allowed while a stream is captured.
    void unsafe(const std::string& name);

    void seed(std::uint32_t seed);
    // Nothing is carried out while it is held.
    void hold(bool held);
    std::vector<std::string> reports();

  private:
    struct Queued {
        Run run;
        VectorClock before;
        std::chrono::steady_clock::time_point not_before;
    };
    struct Lane {
        std::deque<Queued> queue;
        std::uint64_t given = 0, done = 0;
        VectorClock last;  // what its next work comes behind
        bool blocking = true;
    };

    Device();
    CUstream_st& resolve(GpuStream stream);
    std::size_t new_lane(bool blocking);
    VectorClock put(std::size_t lane, const std::string& name, const Task& task);
    void default_stream_rules(std::size_t lane, VectorClock& before);
    void capture(CUstream_st& stream, Task task);
    bool covers(const VectorClock& clock) const;
    void work_off();
    std::optional<std::size_t> choose(const std::vector<bool>& tried);
    void broken(const std::string& why);
    bool is_unsafe() const;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Lane> lanes_;  // 0: the legacy stream
    VectorClock host_, after_legacy_;
    AccessLog log_;
    std::map<std::thread::id, std::unique_ptr<CUstream_st>> of_threads_;
    std::vector<std::unique_ptr<CUstream_st>> streams_;
    std::optional<Graph> capture_;
    std::vector<std::string> broken_;
    std::mt19937 random_{1};
    bool held_ = false;
    std::thread thread_;
};

}  // namespace ddprun::trainer::test
