// Chooses between warm and cold starts, and keeps the fork server.
#include "warm/warm_starts.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/own_proc.h"
#include "warm/bootstrap.h"
#include "warm/import_record.h"
#include "warm/rank_variables.h"

namespace ddprun::agent::warm {
namespace {

// In a row, of servers that have never been ready.
constexpr int kMostFailures = 3;
// How the error file of a worker begins whose cold start would differ
// (bootstrap/_ddprun_process.py).
constexpr std::string_view kDiffers = "ddprun warm start: ";

const std::string kStopFile = "DDPRUN_STOP_FILE=";
bool is_stop_file(const std::string& variable) { return variable.starts_with(kStopFile); }

}  // namespace

WarmStarts::WarmStarts(boost::asio::io_context& io, Keeper& keeper, FileThread& files, Job job,
                       Calls calls)
    : WorkerStarts(keeper),
      io_(io),
      policy_(job.mode, job.workers >= job.cpus),
      calls_(std::move(calls)),
      timer_(io),
      job_(std::move(job)),
      records_(files) {
    if (job_.mode == Mode::off || (job_.worker.foreground && !job_.worker.by_turns)) return;
    const Result<PythonCommand> command = python_command(job_.worker.argv);
    if (!command || !proc_is_ours()) {
        const std::string why =
            command ? "there is no /proc of this PID namespace" : command.error().sentence();
        if (job_.mode == Mode::always) calls_.debug("all starts are cold, because " + why);
        return;
    }
    command_ = *command;
    speaks_ = true;
}

std::function<void(const std::string&)> WarmStarts::furnish() const {
    if (!command_ && !job_.needs_bootstrap) return {};
    return [](const std::string& temporary) { (void)write_bootstrap(temporary); };
}

std::string WarmStarts::record_of(int index) const {
    return bootstrap_folder(temporary_) + "/imports_" + std::to_string(begun_) + "_" +
           std::to_string(index);
}

void WarmStarts::begin(const std::string& temporary, bool cold) {
    const bool there =
        (command_ || job_.needs_bootstrap) && !temporary.empty() && has_bootstrap(temporary);
    temporary_ = there ? temporary : "";
    ++begun_;
    requested_ = 0;
    tried_ = false;
    environments_.clear();
    first_.reset();
    const bool early = std::exchange(failed_early_, false);
    if (policy_.off() && command_) stay_cold("twice a cold start has fared better than a warm one");
    warm_ = there && command_ && !cold && policy_.warm_allowed() &&
            ((server_ && server_->ready()) || policy_.waits_for_server());
    starting_ = warm_;
    if (!command_)
        reason_ = why_cold_;
    else if (!there)
        reason_ = "there is no room for the fork server's files in " +
                  (temporary.empty() ? "any temporary folder" : temporary);
    else if (cold)
        reason_ = "the failure may be a crash loop, and a warm start must not be its cause";
    else if (early)
        reason_ = "the workers have failed early after a warm start";
    else if (server_)
        reason_ = "the fork server is still importing";
    else if (!why_cold_.empty())
        reason_ = why_cold_;
    else if (records_.texts().empty())
        reason_ =
            "the script has imported nothing that may be imported early, such as torch or numpy";
    else
        reason_ = "the last generation has ended before a fork server was prepared";
    std::vector<std::string> records;
    for (int index = 0; there && command_ && index < job_.workers; ++index)
        records.push_back(record_of(index));
    records_.begin(std::move(records));
    policy_.begin(warm_, boot_now());
    arm();
}

// One node speaks for all. The first start of a job is cold, and nobody expects anything else.
void WarmStarts::say_cold(const std::string& reason) {
    if (!speaks_ || (begun_ == 1 && job_.mode != Mode::always)) return;
    const bool speaks = std::ranges::count(environments_.front(), "RANK=0") != 0;
    (speaks ? calls_.info : calls_.debug)("the workers start cold, because " + reason);
}

// A forked worker is in the server's session, which has no terminal.
static void leave_terminal(WorkerStart& start) {
    if (!start.foreground) return;
    start.stdin_fd = -1;
    start.foreground = start.by_turns = false;
}

// All are requested in one turn of the loop, and forked together.
void WarmStarts::spawn(const WorkerStart& start, Keeper::SpawnCallback done) {
    const int index = requested_++;
    environments_.push_back(start.environment);
    if (index == 0 && !warm_) say_cold(reason_);
    if (!command_ || temporary_.empty() || (start.foreground && !start.by_turns))
        return keeper_.spawn(cold(start), std::move(done));
    if (!first_) {
        first_ = start;
        first_->stdout_fd = first_->stderr_fd = -1;
        leave_terminal(*first_);
        first_->extra.clear();
    }
    // A server has one command line, and libraries count the CPUs once.
    if (first_->argv != start.argv) stay_cold("the command lines of the workers differ");
    if (first_->cpus.size() != start.cpus.size())
        stay_cold("the workers have different numbers of CPUs");
    if (!warm_ || !command_)
        return keeper_.spawn(recorded(start, record_of(index)), std::move(done));
    std::optional<HeldStart> held = hold(start);
    if (held) leave_terminal(held->start);
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
    if (!job_.needs_bootstrap || temporary_.empty()) return start;
    WorkerStart cold = start;
    add_bootstrap(cold.environment, bootstrap_folder(temporary_), {"DDPRUN_WARM=record"});
    return cold;
}

void WarmStarts::flush() {
    if (waiting_.empty()) return;
    if (!command_) return start_waiting_cold();
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
            if (spawned && alive.lock()) starting_ = false;
            if (cold && alive.lock()) {
                warm_ = false;
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
    if (waiting_.empty()) return;
    warm_ = starting_ = false;
    policy_.went_cold();
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
    ended(true, false);
}

void WarmStarts::progressed() {
    policy_.progressed(boot_now());
    arm();
}

std::optional<std::string> WarmStarts::difference(const std::string& error) {
    if (!warm_ || !error.starts_with(kDiffers)) return std::nullopt;
    std::string why = error.substr(kDiffers.size());
    stay_cold("a cold start would differ from a warm one: " + why);
    return why;
}

void WarmStarts::ended(bool failed, bool met) {
    failed_early_ |= policy_.ended(failed, met, boot_now());
    if (command_ && !temporary_.empty()) records_.read([](bool) {});
    arm();
}

bool WarmStarts::exited(std::int64_t pid) { return server_ && server_->exited(pid); }

void WarmStarts::arm() {
    timer_.cancel();
    const Time at = policy_.next_look();
    if (!command_ || temporary_.empty() || at == kNever) return;
    timer_.expires_after(std::max(at - boot_now(), Duration{0}));
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
        if (!error && alive.lock()) look();
    });
}

void WarmStarts::look() {
    records_.read([this](bool grew) {
        if (policy_.looked(!records_.texts().empty(), grew, boot_now())) prepare();
        arm();
    });
}

void WarmStarts::prepare() {
    if (!command_ || !first_) return;
    if (server_ && !fits()) drop_server();
    if (!server_ && !std::exchange(tried_, true)) return make_server();
    if (!server_ || !server_->ready() || !has_more(records_.texts(), imported_)) return;
    imported_ = records_.texts();
    server_->import(plan());
}

// Whether the server is what a server for this generation would be.
bool WarmStarts::fits() const {
    return first_ && server_argv_ == first_->argv &&
           without(server_environment_, rank_variables_) ==
               without(first_->environment, rank_variables_);
}

Words WarmStarts::plan() const {
    Words plan{"script", command_->script, "module", command_->module};
    for (const std::string& name : rank_variables_) plan.insert(plan.end(), {"rank", name});
    for (const std::string& each : server_environment_) plan.insert(plan.end(), {"sent", each});
    for (const std::string& each : records_.texts()) plan.insert(plan.end(), {"record", each});
    plan.insert(plan.end(), left_out_.begin(), left_out_.end());
    // A job that has not run yet: what the script says.
    if (records_.texts().empty()) plan.insert(plan.end(), {"read", command_->script});
    // Workers that train need the CPU more.
    if (waiting_.empty()) plan.insert(plan.end(), {"slowly", "1"});
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
    imported_ = records_.texts();
    server_ = std::make_unique<ForkServer>(
        io_, keeper_,
        ForkServer::Wanted{*command_, std::move(start), bootstrap_folder(temporary_),
                           rank_variables_, plan()},
        ForkServer::Events{
            .ready = [this, began = boot_now()](
                         const std::string& modules,
                         const std::string& partly) { on_ready(began, modules, partly); },
            .again =
                [this](const std::string& import, const std::string& why) {
                    left_out_.insert(left_out_.end(), {"leave", import + "\t" + why});
                    drop_server();
                    make_server();
                },
            .ended = [this](const std::string& reason) { on_server_ended(reason); }});
}

void WarmStarts::on_ready(Time began, const std::string& modules, const std::string& partly) {
    failures_ = 0;
    calls_.debug("a fork server for warm starts is ready " + to_text(boot_now() - began) +
                 " after its start, with " + modules + " modules" +
                 (partly.empty() ? "" : "; workers import the rest themselves, because " + partly));
    flush();
}

// Its callbacks may be on the stack.
void WarmStarts::drop_server() {
    if (server_) boost::asio::post(io_, [gone = std::shared_ptr(std::move(server_))] {});
}

void WarmStarts::stay_cold(const std::string& why) {
    why_cold_ = why;
    command_.reset();
    drop_server();
}

void WarmStarts::on_server_ended(const std::string& reason) {
    why_cold_ = reason;
    if (++failures_ >= kMostFailures) stay_cold(reason);
    drop_server();
    if (std::exchange(starting_, false))
        say_cold(reason);
    else
        calls_.debug("no worker can be forked, because " + reason);
    start_waiting_cold();
}

void WarmStarts::close() { timer_.cancel(); }

}  // namespace ddprun::agent::warm
