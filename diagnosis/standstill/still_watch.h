// Looks at the workers of this node once a second, and tells when all of them stand still, and at
// which pace they go otherwise.
//
// What is read each second takes some 30 us a worker (sample_reader.h). Only when all stand still,
// their places in the program are read, too: every five seconds at first, later less often. And
// NCCL's RAS is asked, if the workers have one: a worker that uses NCCL looks as if it stood still.
//
// Thread: the loop's. The files are read on two threads of its own, since /proc may let nobody read
// it: one that hangs in the memory of a worker does not stop the samples. A third one asks NCCL.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/parts/watched_workers.h"
#include "diagnosis/nccl/nccl_watch.h"
#include "diagnosis/standstill/look_thread.h"
#include "diagnosis/standstill/pace_meter.h"
#include "diagnosis/standstill/sample_reader.h"
#include "diagnosis/standstill/still_kinds.h"

namespace ddprun::agent {

class StillWatch {
  public:
    using Workers = std::function<WatchedWorkers()>;
    // Called once a second while all stand still, once with nothing when they do no longer, and
    // once a minute with their pace.
    using Tell = std::function<void(Generation, std::vector<rendezvous::Still>, rendezvous::Pace)>;
    // A line, once: workers cannot be watched.
    using Say = std::function<void(const std::string&)>;

    // `proc`: where the kernel shows processes; tests have one of their own.
    StillWatch(boost::asio::io_context& loop, Workers workers, Tell tell, Say say,
               std::string proc = "/proc");
    // Calls this after each look in which all workers that live are in collectives.
    void tell_collectives(std::function<void(Generation)> tell) {
        tell_collectives_ = std::move(tell);
    }
    // Where NCCL's RAS of these workers listens. `hosts`: the addresses of this host. `is_ours`: no
    // other job has it.
    struct NcclPlace {
        std::string address;
        std::function<std::vector<std::string>()> hosts;  // for any thread
        bool is_ours = false;
    };
    void ask_nccl_at(NcclPlace place) { nccl_place_ = std::move(place); }
    // Its place, if it answers that nothing moves; else null. What it says then.
    const NcclPlace* nccl_answers() const { return nccl_.is_still() ? &*nccl_place_ : nullptr; }
    std::string nccl_sentence() const { return nccl_.is_still() ? nccl_.sentence() : ""; }
    // In which call of the trainer library a worker that stands still is; empty: in none, or not
    // known.
    std::string call_of(std::size_t worker) const;
    // Looks where they are now, since the place that is known may be some time old, and tells it if
    // all stand still. `done` follows from the loop in any case, within a second.
    void look_again(std::function<void()> done);
    // Looks no more.
    void close();

  private:
    // What the threads work on. They may outlive this object.
    struct Readers;
    void arm();
    void look();
    void sampled(const WatchedWorkers& workers, const std::vector<WorkerSample>& samples);
    void say_hanging(Time now);
    void say_hidden(const WatchedWorkers& workers, const std::vector<WorkerSample>& samples);
    void ask_nccl(const WatchedWorkers& workers, Time now);
    void find_places(const WatchedWorkers& workers, Time now, Duration lasted);
    void found(Generation generation, const std::vector<ProgramPlace>& places);

    boost::asio::io_context& loop_;
    Workers workers_;
    Tell tell_;
    std::function<void(Generation)> tell_collectives_;
    Say say_;
    std::string proc_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    boost::asio::steady_timer timer_;
    std::unique_ptr<LookThread> sampling_, placing_, asking_;
    std::optional<NcclPlace> nccl_place_;
    NcclWatch nccl_;
    std::shared_ptr<Readers> readers_;
    Generation generation_ = kNoGeneration;
    std::vector<StillWorker> still_;  // by local rank
    PaceMeter pace_;
    int looks_ = 0;
    bool told_ = false;          // that they stand still
    int hidden_ = 0;             // looks in a row that could not see a worker
    bool said_hanging_ = false;  // that a look does not come back
    Time placed_at_{};
    bool closed_ = false;
};

}  // namespace ddprun::agent
