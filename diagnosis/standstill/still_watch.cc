// Once a second: samples, then what follows from them.
#include "diagnosis/standstill/still_watch.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/loop/in_time.h"
#include "base/system/boot_clock.h"
#include "diagnosis/nccl/ras_client.h"
#include "diagnosis/nccl/ras_reader.h"

namespace ddprun::agent {
namespace {

constexpr auto kPeriod = std::chrono::seconds{1};
// Places are read so often at first, then each time the standstill has become a quarter longer.
constexpr auto kPlacesPeriod = std::chrono::seconds{5};
constexpr int kPlacesShare = 4;
// After so many looks in a row a worker that cannot be seen is no longer one that is just ending.
constexpr int kHiddenLooks = 10;
// A look that has lasted for so long hangs.
constexpr auto kHangs = std::chrono::seconds{10};
constexpr auto kLookedAgain = std::chrono::seconds{1};
// RAS waits for half of it for processes that do not answer.
constexpr auto kNcclPatience = std::chrono::seconds{6};

}  // namespace

struct StillWatch::Readers {
    std::map<std::int64_t, SampleReader> by_pid;
};

StillWatch::StillWatch(boost::asio::io_context& loop, Workers workers, Tell tell, Say say,
                       std::string proc)
    : loop_(loop),
      workers_(std::move(workers)),
      tell_(std::move(tell)),
      say_(std::move(say)),
      proc_(std::move(proc)),
      timer_(loop),
      sampling_(std::make_unique<LookThread>(loop)),
      placing_(std::make_unique<LookThread>(loop)),
      asking_(std::make_unique<LookThread>(loop)),
      readers_(std::make_shared<Readers>()) {
    arm();
}

// A thread that hangs in /proc is left to itself.
void StillWatch::close() {
    closed_ = true;
    timer_.cancel();
    sampling_.reset();
    placing_.reset();
    asking_.reset();
}

// About once a second. Steps of the job that take just as long must not always be seen at the same
// moment, so the period goes evenly over what lies around.
void StillWatch::arm() {
    constexpr double kGoldenRatio = 0.618034;
    const double place = std::fmod(kGoldenRatio * ++looks_, 1.0);
    timer_.expires_after(share(kPeriod, 0.8 + 0.4 * place));
    // A wait that is over is not cancelled any more when this object goes.
    timer_.async_wait(
        [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
            if (error || !alive.lock() || closed_) return;
            look();
            arm();
        });
}

// The samples before these may not be there yet: /proc is slow, or hangs.
void StillWatch::look() {
    WatchedWorkers workers = workers_();
    if (std::exchange(generation_, workers.generation) != workers.generation) {
        still_.assign(workers.pids.size(), StillWorker());
        pace_ = PaceMeter();
        nccl_ = NcclWatch();
        told_ = false;
        // The old ones may still be in use on the thread.
        readers_ = std::make_shared<Readers>();
        sampling_->give_up();
        placing_->give_up();
        asking_->give_up();
    }
    const Time now = boot_now();
    say_hanging(now);
    if (sampling_->is_busy() || !workers.have_started) return;
    const auto samples = std::make_shared<std::vector<WorkerSample>>();
    sampling_->look(
        now,
        [readers = readers_, workers, samples, proc = proc_] {
            for (std::size_t i = 0; i < workers.pids.size(); ++i) {
                const std::int64_t pid = workers.pids[i];
                samples->push_back(pid > 0 ? readers->by_pid.try_emplace(pid, pid, proc)
                                                 .first->second.read(workers.calls_of(i))
                                           : WorkerSample{.is_known = true, .has_ended = true});
            }
        },
        [this, workers, samples] { sampled(workers, *samples); });
}

void StillWatch::sampled(const WatchedWorkers& workers, const std::vector<WorkerSample>& samples) {
    if (workers.generation != generation_) return;
    const Time now = boot_now();
    for (std::size_t i = 0; i < samples.size(); ++i) still_[i].sampled(now, samples[i]);
    say_hidden(workers, samples);
    ask_nccl(workers, now);
    if (tell_collectives_ && all_in_collectives(now, still_)) tell_collectives_(generation_);
    std::vector<rendezvous::Still> kinds = still_kinds(now, still_);
    if (!kinds.empty()) {
        const auto lasted = std::ranges::min(kinds, {}, &rendezvous::Still::lasted).lasted;
        find_places(workers, now, lasted);
    }
    // One that has no place yet comes to this a second later.
    const bool tells = !kinds.empty();
    const bool told = std::exchange(told_, tells);
    const bool has_pace = pace_.sampled(samples);
    if (tells || told || has_pace)
        tell_(generation_, std::move(kinds), tells ? rendezvous::Pace() : pace_.pace());
}

std::string StillWatch::call_of(std::size_t worker) const {
    return worker < still_.size() ? still_[worker].call() : std::string();
}

// Once in a job, though the processes of the next generation may be seen again.
void StillWatch::say_hanging(Time now) {
    const Duration lasted = std::max(sampling_->lasted(now), placing_->lasted(now));
    if (lasted < kHangs || std::exchange(said_hanging_, true)) return;
    say_("the kernel has not let ddprun look at the workers for " + to_text(lasted) +
         ", so until then nobody can tell who waits for whom");
}

void StillWatch::say_hidden(const WatchedWorkers& workers,
                            const std::vector<WorkerSample>& samples) {
    const auto hidden = std::ranges::find(samples, false, &WorkerSample::is_known);
    hidden_ = hidden == samples.end() ? 0 : hidden_ + 1;
    if (hidden_ != kHiddenLooks) return;
    say_("/proc does not show what process " +
         std::to_string(workers.pids[static_cast<std::size_t>(hidden - samples.begin())]) +
         " waits in, so nobody can tell who waits for whom (another user's process, hidepid, or a "
         "container without ptrace)");
}

// Only while no worker moves, as far as it can be seen from outside.
void StillWatch::ask_nccl(const WatchedWorkers& workers, Time now) {
    if (!nccl_place_ || asking_->is_busy() || !nccl_.is_due(now)) return;
    // Once asked, it knows better whether a worker moves.
    if (!nccl_.is_known() && !all_stand_still(now, still_)) return;
    struct Asked {
        std::optional<RasAnswer> answer;
        std::vector<std::string> hosts;
    };
    const auto asked = std::make_shared<Asked>();
    asking_->look(
        now,
        [asked, place = *nccl_place_] {
            const Result<std::string> text = ask_ras(place.address, kNcclPatience);
            if (!text) return;
            asked->answer = read_ras_answer(text.value());
            asked->hosts = place.hosts();
        },
        [this, asked, generation = workers.generation] {
            if (generation != generation_) return;
            const std::optional<RasAnswer>& answer = asked->answer;
            // Text does not name all processes, so nobody knows whose job it is.
            const bool ours = answer && (nccl_place_->is_ours || answer->names_all);
            ours ? nccl_.answered(boot_now(), *answer) : nccl_.unanswered(boot_now());
            const auto states = nccl_.states(workers_().pids, asked->hosts);
            for (std::size_t i = 0; i < std::min(states.size(), still_.size()); ++i)
                still_[i].told_by_nccl(states[i]);
        });
}

void StillWatch::find_places(const WatchedWorkers& workers, Time now, Duration lasted) {
    const Duration period = std::max<Duration>(kPlacesPeriod, lasted / kPlacesShare);
    if (placing_->is_busy() || now < placed_at_ + period) return;
    placed_at_ = now;
    // Outside of collectives nobody asks which connections are lost.
    const bool connections = std::ranges::any_of(still_, &StillWorker::in_collective);
    const auto places = std::make_shared<std::vector<ProgramPlace>>();
    placing_->look(
        now, [workers, connections, places] { *places = read_places(workers, connections); },
        [this, generation = workers.generation, places] { found(generation, *places); });
}

void StillWatch::found(Generation generation, const std::vector<ProgramPlace>& places) {
    if (generation != generation_) return;
    const Time now = boot_now();
    for (std::size_t i = 0; i < places.size(); ++i) still_[i].found_at(now, places[i]);
}

void StillWatch::look_again(std::function<void()> done) {
    const WatchedWorkers workers = workers_();
    const bool connections = std::ranges::any_of(still_, &StillWorker::in_collective);
    const auto look = [workers, connections] { return read_places(workers, connections); };
    boost::asio::co_spawn(
        loop_, in_time(kLookedAgain, look),
        [this, workers, alive = std::weak_ptr(alive_), done = std::move(done)](
            const std::exception_ptr&, const std::optional<std::vector<ProgramPlace>>& places) {
            if (!alive.lock()) return;
            if (places && workers.generation == generation_ && !closed_) {
                found(workers.generation, *places);
                if (told_) tell_(generation_, still_kinds(boot_now(), still_), {});
            }
            done();
        });
}

}  // namespace ddprun::agent
