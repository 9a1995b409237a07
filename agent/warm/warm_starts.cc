// Chooses between warm and cold starts, and keeps the fork server.
#include "agent/warm/warm_starts.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "agent/warm/bootstrap.h"
#include "agent/warm/rank_variables.h"
#include "base/system/boot_clock.h"
#include "base/system/own_proc.h"

namespace ddprun::agent::warm {
namespace {

// Each attempt leaves out more; a program with more layers than this stays cold.
constexpr int kMostAttempts = 10;
// In a row, of servers that have never been ready.
constexpr int kMostFailures = 3;
// A script that imports less starts sooner than a server.
constexpr std::size_t kManyModules = 300;
// A node that waits for its first generation longer than this has time for a server. While it does
// not know what to import, it looks again after each kLook: another node may have found it out.
constexpr Duration kPatient = std::chrono::seconds{10}, kLook = std::chrono::seconds{30};

const std::string kStopFile = "DDPRUN_STOP_FILE=";
bool is_stop_file(const std::string& variable) { return variable.starts_with(kStopFile); }

}  // namespace

WarmStarts::WarmStarts(boost::asio::io_context& io, Keeper& keeper, FileThread& files, Job job,
                       Calls calls)
    : io_(io),
      keeper_(keeper),
      policy_(job.mode),
      calls_(std::move(calls)),
      timer_(io),
      job_(std::move(job)),
      crowded_(job_.workers > job_.cpus) {
    if (job_.mode == Mode::off || job_.worker.foreground) return;
    const Result<PythonCommand> command = python_command(job_.worker.argv);
    if (!command || !proc_is_ours()) {
        const std::string why =
            command ? "there is no /proc of this PID namespace" : command.error().sentence();
        if (job_.mode == Mode::always) calls_.debug("all starts are cold, because " + why);
        return;
    }
    command_ = *command;
    learnt_ = std::make_unique<LearntImports>(io, files, *command_, job_.own_environment);
    recall();
    wait_until_ = boot_now() + kPatient;
    arm();
}

// The answer comes before the first generation, or soon after its start.
void WarmStarts::recall() {
    learnt_->recall([this] {
        policy_.wait_is_quicker(crowded_ && learnt_->size() >= kManyModules);
        flush();
    });
}

std::function<void(const std::string&)> WarmStarts::furnish() const {
    if (!command_ && !job_.opens_recorder) return {};
    return [](const std::string& temporary) { (void)write_bootstrap(temporary); };
}

std::string WarmStarts::record_of(int index) const {
    return bootstrap_folder(temporary_) + "/imports_" + std::to_string(index);
}

void WarmStarts::begin(const std::string& temporary) {
    const bool there =
        (command_ || job_.opens_recorder) && !temporary.empty() && has_bootstrap(temporary);
    temporary_ = there ? temporary : "";
    begun_ = true;
    if (command_ && !there)
        calls_.info(
            "the workers are started cold, because there is no room for the fork server's "
            "files in " +
            (temporary.empty() ? "any temporary folder" : temporary));
    if (std::exchange(failed_early_, false))
        calls_.info("the workers have failed early after a warm start, so this one is cold");
    requested_ = 0;
    environments_.clear();
    first_.reset();
    const bool can = there && command_ && policy_.warm_allowed();
    // A server that imports more does so slowly: a cold start is quicker.
    const bool may_wait =
        policy_.waits_for_server() || (learnt_ && learnt_->recalling() && crowded_);
    warm_ = can && (server_ ? server_->ready() : may_wait);
    policy_.begin(warm_, boot_now());
    arm();
}

// All are requested in one turn of the loop, and forked together.
void WarmStarts::spawn(const WorkerStart& start, Keeper::SpawnCallback done) {
    if (!command_ || temporary_.empty() || policy_.off() || start.foreground)
        return keeper_.spawn(cold(start), std::move(done));
    const int index = requested_++;
    environments_.push_back(start.environment);
    if (!first_) {
        first_ = start;
        first_->stdout_fd = first_->stderr_fd = -1;
        first_->extra.clear();
    }
    // The command line of a server is that of all workers.
    if (first_->argv != start.argv) command_.reset();
    if (!warm_) return keeper_.spawn(recorded(start, record_of(index)), std::move(done));
    std::optional<HeldStart> held = hold(start);
    if (!held) return keeper_.spawn(cold(start), std::move(done));
    waiting_.push_back({std::move(*held), record_of(index), std::move(done)});
    if (waiting_.size() == 1)
        boost::asio::post(io_, [this, alive = std::weak_ptr(alive_)] {
            if (alive.lock()) flush();
        });
}

WorkerStart WarmStarts::recorded(const WorkerStart& start, const std::string& record) const {
    WorkerStart cold = start;
    add_bootstrap(cold.environment, bootstrap_folder(temporary_),
                  {"DDPRUN_WARM=record", "DDPRUN_WARM_IMPORTS=" + record});
    return cold;
}

// One whose imports nobody needs.
WorkerStart WarmStarts::cold(const WorkerStart& start) const {
    if (!job_.opens_recorder || temporary_.empty()) return start;
    WorkerStart cold = start;
    add_bootstrap(cold.environment, bootstrap_folder(temporary_), {"DDPRUN_WARM=record"});
    return cold;
}

void WarmStarts::flush() {
    if (waiting_.empty()) return;
    if (!command_) return start_waiting_cold();
    if (learnt_->recalling()) return;
    if (server_ && !fits()) drop_server();
    if (!server_) {
        if (!policy_.waits_for_server()) return start_waiting_cold();
        return make_server();
    }
    if (server_->ready()) fork_waiting();
}

// If the server fails, none of its workers runs, and the same ones start cold.
void WarmStarts::fork_waiting() {
    std::vector<WarmWorker> workers;
    for (Waiting& each : std::exchange(waiting_, {})) {
        const auto again = std::make_shared<Waiting>(std::move(each));
        const auto done = [this, again, alive = std::weak_ptr(alive_)](Result<Spawned> spawned) {
            const bool cold = !spawned && spawned.error().code() == ErrorCode::unavailable;
            if (cold && alive.lock()) {
                policy_.went_cold();
                return keeper_.spawn(recorded(again->held.start, again->record),
                                     std::move(again->done));
            }
            again->done(std::move(spawned));
        };
        workers.push_back(warm_worker(again->held.start, again->record, done));
    }
    server_->fork(std::move(workers));
}

void WarmStarts::start_waiting_cold() {
    if (!waiting_.empty()) policy_.went_cold();
    for (Waiting& each : std::exchange(waiting_, {}))
        keeper_.spawn(recorded(each.held.start, each.record), std::move(each.done));
}

void WarmStarts::cancel() {
    const Error stopped{ErrorCode::refused, "stopped before it was started"};
    if (server_ && server_->forking()) {
        const std::shared_ptr<ForkServer> server = std::move(server_);
        boost::asio::post(io_, [server] {});
        server->stop(stopped);
    }
    for (Waiting& each : std::exchange(waiting_, {})) each.done(stopped);
}

void WarmStarts::keeper_died() {
    waiting_.clear();
    if (server_) server_->stop(Error{ErrorCode::closed, "the keeper has died"});
    drop_server();
    ended(true);
}

void WarmStarts::progressed() {
    policy_.progressed(boot_now());
    arm();
}

void WarmStarts::ended(bool failed) {
    failed_early_ |= policy_.ended(failed, boot_now());
    if (policy_.off() && command_) {
        calls_.info(
            "all later starts are cold: twice a cold start has fared better than a warm one");
        command_.reset();
        drop_server();
    }
    if (command_ && !temporary_.empty()) read_records([] {});
    arm();
}

bool WarmStarts::exited(std::int64_t pid) { return server_ && server_->exited(pid); }

void WarmStarts::arm() {
    timer_.cancel();
    const Time at = begun_ ? policy_.prepare_at() : wait_until_;
    if (!command_ || at == kNever) return;
    timer_.expires_after(std::max(at - boot_now(), Duration{0}));
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
        if (!error && alive.lock()) begun_ ? prepare() : prepare_to_wait();
    });
}

void WarmStarts::read_records(std::function<void()> then) {
    std::vector<std::string> records;
    for (int index = 0; index < requested_; ++index) records.push_back(record_of(index));
    learnt_->read_records(std::move(records), std::move(then));
}

void WarmStarts::prepare() {
    read_records([this] {
        if (!command_ || policy_.off() || !first_) return;
        if (server_ && !fits()) drop_server();
        if (!server_) return make_server();
        if (server_->ready()) import_more();
    });
}

// No generation has begun: this node is a spare, or waits for others.
void WarmStarts::prepare_to_wait() {
    wait_until_ = kNever;
    if (learnt_->size() == 0) {
        wait_until_ = boot_now() + kLook;
        recall();
        return arm();
    }
    calls_.make_folder([this, alive = std::weak_ptr(alive_)](const std::string& temporary) {
        if (!alive.lock() || begun_ || temporary.empty() || !has_bootstrap(temporary)) return;
        temporary_ = temporary;
        first_ = job_.worker;
        std::erase_if(first_->environment, is_stop_file);
        first_->environment.push_back(kStopFile + bootstrap_folder(temporary) + "/stop");
        environments_ = {job_.worker.environment};
        make_server();
    });
}

// Whether the server is what a server for this generation would be.
bool WarmStarts::fits() const {
    return first_ && server_argv_ == first_->argv &&
           without(server_environment_, rank_variables_) ==
               without(first_->environment, rank_variables_);
}

Words WarmStarts::plan(std::size_t first_import) const {
    Words plan{"script", command_->script};
    for (const std::string& name : rank_variables_) plan.insert(plan.end(), {"rank", name});
    for (const std::string& each : server_environment_) plan.insert(plan.end(), {"sent", each});
    // A job that has not run yet: what the script says.
    if (learnt_->size() == 0) plan.insert(plan.end(), {"read", command_->script});
    // Workers that train need the CPU more.
    if (waiting_.empty()) plan.insert(plan.end(), {"slowly", "1"});
    std::ranges::move(learnt_->plan(first_import), std::back_inserter(plan));
    return plan;
}

void WarmStarts::make_server() {
    // The generation that it was for may have gone.
    if (!command_ || !first_) return start_waiting_cold();
    rank_variables_ = rank_variables(environments_);
    rank_variables_.insert(job_.placed.begin(), job_.placed.end());
    server_argv_ = first_->argv;
    server_environment_ = without(first_->environment, rank_variables_);
    // Its children are known by this variable, if everything is killed at once (orphans.h).
    for (const std::string& each : first_->environment)
        if (is_stop_file(each)) server_environment_.push_back(each);
    WorkerStart start = *first_;
    start.environment = server_environment_;
    imported_ = learnt_->size();
    const Time began = boot_now();
    server_ = std::make_unique<ForkServer>(
        io_, keeper_,
        ForkServer::Wanted{*command_, std::move(start), bootstrap_folder(temporary_), plan(0)},
        ForkServer::Events{
            .ready =
                [this, began](const std::string& modules) {
                    attempts_ = failures_ = 0;
                    remember();
                    calls_.debug("a fork server for warm starts is ready after " +
                                 to_text(boot_now() - began) + ", with " + modules + " modules");
                    flush();
                },
            .more =
                [this] {
                    remember();
                    flush();
                },
            .again =
                [this](const std::vector<ForkServer::Events::LeftOut>& found) {
                    for (const auto& [name, why] : found) {
                        learnt_->leave_out(name);
                        calls_.debug("the fork server does not import " + name + ": it " + why);
                    }
                    drop_server();
                    if (++attempts_ < kMostAttempts) return make_server();
                    on_server_ended("too many modules depend on the rank");
                },
            .ended = [this](const std::string& reason) { on_server_ended(reason); }});
}

void WarmStarts::import_more() {
    const std::size_t known = std::exchange(imported_, learnt_->size());
    if (known < imported_) server_->import(plan(known));
}

// Its callbacks may be on the stack.
void WarmStarts::drop_server() {
    if (server_) boost::asio::post(io_, [gone = std::shared_ptr(std::move(server_))] {});
}

// One node writes for all.
void WarmStarts::remember() {
    learnt_->proven(std::ranges::count(environments_.front(), "RANK=0") != 0 && begun_);
}

void WarmStarts::on_server_ended(const std::string& reason) {
    if (learnt_->forget()) {
        calls_.debug("the imports that are known from an earlier job are forgotten, because " +
                     reason);
        policy_.wait_is_quicker(false);
        attempts_ = 0;
        drop_server();
        return start_waiting_cold();
    }
    const bool last = ++failures_ >= kMostFailures;
    calls_.info(std::string(last ? "all later starts are cold" : "the workers are started cold") +
                ", because " + reason);
    if (last) command_.reset();
    drop_server();
    start_waiting_cold();
}

void WarmStarts::close() {
    timer_.cancel();
    if (learnt_) learnt_->close();
}

}  // namespace ddprun::agent::warm
