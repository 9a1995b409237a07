// Begins a job with its first node, opens its ledger, and forgets it at its end.
#include "daemon/jobs.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "daemon/daemon_options.h"
#include "operator/control/operators.h"
#include "rendezvous/ledger/ledger_open.h"
#include "rendezvous/link/link.h"
#include "rendezvous/wire/frame.h"
#include "rendezvous/wire/wire.h"

namespace ddprun::rendezvous {

namespace asio = boost::asio;

// One run id that is being served.
struct Jobs::Job {
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    // A link lives until it is over, whoever holds it; these nodes would wait for nothing.
    ~Job() {
        for (const auto& [link, first] : waiting) link->drop();
    }

    std::uint64_t number = 0;  // tells it from an earlier job with the same run id
    Hello first;
    std::unique_ptr<Ledger> ledger;
    std::unique_ptr<Service> service;  // null while the ledger is being opened
    // Nodes that came meanwhile. They say nothing more until they are welcomed.
    std::vector<std::pair<std::shared_ptr<Link>, ToLeader>> waiting;

    // It has no generation, and nobody is connected who could begin one.
    bool is_deserted() const {
        if (!service || service->connections() != 0) return false;
        const Snapshot now = service->snapshot();
        // A job with a generation is never deserted: its members may be running without a
        // connection for a moment.
        return now.newest == kNoGeneration &&
               (now.phase == Phase::reading || now.phase == Phase::gathering);
    }
};

namespace {

// Callers at the gate: all nodes of a large job come at once, of several jobs too.
constexpr std::size_t kRoom = 16384;
// In a sentence.
constexpr std::size_t kRunsNamed = 8;
// The command is not known here, so all commands of a run are one.
constexpr const char* kDigest = "rendezvous";

// The leader's name in log lines of the nodes.
std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "rendezvous";
}

std::string range(const Limits& limits) {
    const std::string most = std::to_string(limits.max_nodes);
    return limits.min_nodes == limits.max_nodes ? most
                                                : std::to_string(limits.min_nodes) + ":" + most;
}

}  // namespace

Jobs::Jobs(asio::io_context& loop, FileThread& files, Secrets& secrets, LedgerPlace ledger,
           LedgerAccessPointer access, std::string version, Log log)
    : loop_(loop),
      files_(files),
      secrets_(secrets),
      ledger_(std::move(ledger)),
      access_(std::move(access)),
      version_(std::move(version)),
      log_(std::move(log)),
      gate_(&secrets_, {{host_name(), Incarnation{random_number()}}, kRoom}, log_,
            [this](std::shared_ptr<Link> link, ToLeader first) {
                came(std::move(link), std::move(first));
            }) {}

Jobs::~Jobs() = default;

// The gate has admitted a node.
void Jobs::came(std::shared_ptr<Link> link, ToLeader first) {
    const Hello* caller = caller_of(first);
    if (!caller) return link->drop();  // without a Hello nothing says which job is meant
    if (std::holds_alternative<Operate>(first))
        return operator_came(std::move(link), std::move(first));
    const Hello hello = *caller;
    auto found = jobs_.find(hello.run_id);
    // A new node begins the job anew, with its own limits.
    if (found != jobs_.end() && found->second->is_deserted()) {
        jobs_.erase(found);
        found = jobs_.end();
    }
    Job* job = found != jobs_.end() ? found->second.get() : begin(hello);
    if (!job) return link->drop();
    // It calls again until the old allocation has ended, and then begins the job anew.
    if (hello.requeue > job->first.requeue && job->service) {
        job->service->newer_allocation(hello.requeue);
        return link->drop();
    }
    // The nodes of one job should have one command line. It is a warning only, because the first
    // node's limits count.
    if (hello.limits != job->first.limits)
        log_of(hello.run_id)({Note::Level::warn, "the command line of node " + hello.node.name +
                                                     " (--nnodes=" + range(hello.limits) +
                                                     ") is not that of " + job->first.node.name +
                                                     " (--nnodes=" + range(job->first.limits) +
                                                     "), whose times and limits are used"});
    if (job->service) return job->service->admit(std::move(link), std::move(first));
    // A frame that comes too early is dropped with the node's connection: admit() sees that it is
    // over.
    link->promote(kNodeFrameLimit, {[weak = std::weak_ptr(link)](std::string_view) {
                                        if (const auto one = weak.lock()) one->drop();
                                    },
                                    [](const Error&) {}});
    job->waiting.emplace_back(std::move(link), std::move(first));
}

void Jobs::operator_came(std::shared_ptr<Link> link, ToLeader first) {
    const std::string& id = caller_of(first)->run_id;
    const auto named = id.empty() && jobs_.size() == 1 ? jobs_.begin() : jobs_.find(id);
    if (named != jobs_.end() && named->second->service)
        return named->second->service->admit(std::move(link), std::move(first));
    link->promote(kNodeFrameLimit, {[](std::string_view) {}, [](const Error&) {}});
    link->send(encode(ToNode(Refused{why_no_run(id)})));
    link->finish();
}

std::string Jobs::why_no_run(const std::string& run_id) const {
    if (jobs_.contains(run_id)) return "the ledger of this run is just being opened; ask again";
    if (jobs_.empty()) return "no job meets here now";
    std::string ids;
    std::size_t named = 0;
    for (const auto& [id, job] : jobs_) {
        if (++named > kRunsNamed) break;
        ids += (ids.empty() ? "" : ", ") + id;
    }
    if (jobs_.size() > kRunsNamed)
        ids += " and " + std::to_string(jobs_.size() - kRunsNamed) + " more";
    return (run_id.empty() ? std::to_string(jobs_.size()) + " jobs meet here"
                           : "no run \"" + run_id + "\" meets here") +
           "; name one with --rdzv-id: " + ids;
}

// Begins a job. Null if that is not possible; the node's connection is closed, and it calls again
// until its join timeout.
Jobs::Job* Jobs::begin(const Hello& hello) {
    const std::string& id = hello.run_id;
    make_room();
    if (jobs_.size() >= kMostJobs) {
        log_of(id)({Note::Level::warn, "node " + hello.node.name + " cannot begin it: " +
                                           std::to_string(kMostJobs) + " runs are going on"});
        return nullptr;
    }
    const auto place = of_job(ledger_, id);
    if (!place) {
        log_of(id)({Note::Level::warn, place.error().sentence()});
        return nullptr;
    }
    log_of(id)({Note::Level::info,
                "begins with node " + hello.node.name + ", --nnodes=" + range(hello.limits)});
    Job& job = *jobs_.emplace(id, std::make_unique<Job>()).first->second;
    job.number = ++last_;
    job.first = hello;
    // The job may have ended, and another one of this id may have begun, before the ledger is open.
    // The number tells.
    const auto done = [this, alive = std::weak_ptr(alive_), id,
                       number = job.number](Result<std::unique_ptr<Ledger>> ledger) {
        if (!alive.expired()) opened(id, number, std::move(ledger));
    };
    const Times& times = hello.limits.times;
    // The time limits are those of the job's own command line.
    open_ledger({loop_, files_, log_of(id), access_}, *place, {kDigest, hello.requeue, 0},
                {.call = times.lease, .opening = times.join_timeout}, done);
    return &job;
}

void Jobs::opened(const std::string& run_id, std::uint64_t number,
                  Result<std::unique_ptr<Ledger>> ledger) {
    const auto found = jobs_.find(run_id);
    if (found == jobs_.end() || found->second->number != number) return;
    if (!ledger) {
        log_of(run_id)({Note::Level::error, ledger.error().sentence()});
        // This closes the waiting connections. Their nodes call again, and the ledger is tried
        // anew.
        jobs_.erase(found);
        return;
    }
    Job& job = *found->second;
    job.ledger = std::move(*ledger);
    job.service = std::make_unique<Service>(
        loop_, std::nullopt, machine_config(job.first), *job.ledger, log_of(run_id),
        [this, run_id](const Ending& ending) { ended(run_id, ending); }, &secrets_,
        Operators::make);
    job.service->start();
    for (auto& [link, first] : std::exchange(job.waiting, {}))
        job.service->admit(std::move(link), std::move(first));
}

// The run id is free from now on.
void Jobs::ended(const std::string& run_id, const Ending& ending) {
    log_of(run_id)({Note::Level::info,
                    "has ended with code " + std::to_string(ending.code) + ": " + ending.sentence});
    jobs_.erase(run_id);
}

// A node that came and went leaves its job behind. Such jobs must not keep others out for ever.
void Jobs::make_room() {
    if (jobs_.size() < kMostJobs) return;
    std::erase_if(jobs_, [](const auto& one) { return one.second->is_deserted(); });
}

// The limits come from the first node; everything else is this program's own.
MachineConfig Jobs::machine_config(const Hello& hello) const {
    MachineConfig config;
    config.run_id = hello.run_id;
    config.self = {host_name(), Incarnation{random_number()}};
    config.requeue = hello.requeue;
    config.command_digest = kDigest;
    config.version = version_;
    config.limits = hello.limits;
    config.seed = random_number();
    config.outside = true;
    config.to_day = day_now() - boot_now().time_since_epoch();
    // No ledger mark: no node ever leads this job, so none has to read the ledger.
    return config;
}

Log Jobs::log_of(const std::string& run_id) const {
    return [log = log_, run_id](const Note& note) {
        log({note.level, "run \"" + run_id + "\": " + note.sentence});
    };
}

std::size_t Jobs::connections() const {
    std::size_t sum = gate_.callers();
    for (const auto& [id, job] : jobs_) sum += job->service ? job->service->connections() : 0;
    return sum;
}

std::vector<std::string> Jobs::run_ids() const {
    std::vector<std::string> ids;
    for (const auto& [id, job] : jobs_) ids.push_back(id);
    return ids;
}

}  // namespace ddprun::rendezvous
