// Chooses between warm and cold starts, and keeps the fork server.
#include "agent/warm/warm_starts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

#include "agent/warm/bootstrap.h"
#include "agent/warm/rank_variables.h"
#include "base/system/boot_clock.h"
#include "base/system/careful_open.h"
#include "base/system/own_proc.h"
#include "base/system/small_file.h"

namespace ddprun::agent::warm {
namespace {

// Each attempt leaves out more; a program with more layers than this stays cold.
constexpr int kMostAttempts = 10;
// In a row, of servers that have never been ready.
constexpr int kMostFailures = 3;
// Longer than the records of any program.
constexpr std::size_t kMostRecord = std::size_t{16} << 20;
// A script that imports less starts sooner than a server.
constexpr std::size_t kManyModules = 300;

}  // namespace

WarmStarts::WarmStarts(boost::asio::io_context& io, Keeper& keeper, FileThread& files,
                       const Job& job, Say say)
    : io_(io),
      keeper_(keeper),
      files_(files),
      policy_(job.mode),
      say_(std::move(say)),
      timer_(io),
      crowded_(job.workers > job.cpus) {
    if (job.mode == Mode::off) return;
    const Result<PythonCommand> command = python_command(job.argv);
    if (!command)
        say_.debug("all starts are cold, because " + command.error().sentence());
    else if (!proc_is_ours())
        say_.debug("all starts are cold, because there is no /proc of this PID namespace");
    else
        command_ = *command;
    if (!command_) return;
    memory_ = std::make_unique<ImportMemory>(io, *command_, job.environment);
    reading_ = true;
    memory_->read([this, alive = std::weak_ptr(alive_)](std::optional<KnownImports> known) {
        if (alive.lock()) on_known(std::move(known));
    });
}

// Before the first generation, or soon after its start.
void WarmStarts::on_known(std::optional<KnownImports> known) {
    reading_ = false;
    if (known) {
        imports_.add(known->imports);
        left_out_ = std::move(known->left_out);
        policy_.wait_is_quicker(crowded_ && known->imports.size() >= kManyModules);
    }
    flush();
}

std::function<void(const std::string&)> WarmStarts::furnish() const {
    if (!command_) return {};
    // If it cannot be written, the interpreter does not find it, and nothing is warm.
    return [](const std::string& temporary) { (void)write_bootstrap(temporary); };
}

std::string WarmStarts::record_of(int index) const {
    return bootstrap_folder(temporary_) + "/imports_" + std::to_string(index);
}

void WarmStarts::begin(const std::string& temporary) {
    temporary_ = temporary;
    if (std::exchange(failed_early_, false))
        say_.info("the workers have failed early after a warm start, so this one is cold");
    requested_ = 0;
    environments_.clear();
    first_.reset();
    const bool can = command_ && !temporary.empty() && policy_.warm_allowed();
    // A server that imports more does so slowly: a cold start is quicker.
    const bool may_wait = policy_.waits_for_server() || (reading_ && crowded_);
    warm_ = can && (server_ ? server_->ready() : may_wait);
    policy_.begin(warm_, boot_now());
    arm();
}

// All are requested in one turn of the loop, and forked together.
void WarmStarts::spawn(const WorkerStart& start, Keeper::SpawnCallback done) {
    if (!command_ || temporary_.empty() || policy_.off() || start.foreground)
        return keeper_.spawn(start, std::move(done));
    const int index = requested_++;
    environments_.push_back(start.environment);
    if (!first_) {
        first_ = start;
        first_->stdout_fd = first_->stderr_fd = -1;
        first_->extra.clear();
    }
    // The command line of a server is that of all workers.
    if (first_->argv != start.argv) command_.reset();
    if (!warm_) {
        return keeper_.spawn(recorded(start, record_of(index)), std::move(done));
    }
    Waiting waiting{start, {}, record_of(index), {}};
    if (!hold(start, waiting)) return keeper_.spawn(start, std::move(done));
    waiting.done = std::move(done);
    waiting_.push_back(std::move(waiting));
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

// The caller closes its descriptors soon. Returns false if there are none left.
bool WarmStarts::hold(const WorkerStart& start, Waiting& waiting) const {
    bool good = true;
    const auto keep = [&](int& fd) {
        if (fd < 0) return;
        fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
        good = good && fd >= 0;
        if (fd >= 0) waiting.held.emplace_back(fd);
    };
    waiting.start = start;
    for (int* fd : {&waiting.start.stdin_fd, &waiting.start.stdout_fd, &waiting.start.stderr_fd})
        keep(*fd);
    for (ExtraFd& extra : waiting.start.extra) keep(extra.fd);
    return good;
}

void WarmStarts::flush() {
    if (waiting_.empty() || reading_) return;
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
    std::vector<std::shared_ptr<Waiting>> kept;
    for (Waiting& each : std::exchange(waiting_, {})) {
        const auto again = kept.emplace_back(std::make_shared<Waiting>(std::move(each)));
        const WorkerStart& start = again->start;
        WarmWorker worker{start.environment, again->record, start.cpus, {}, {}};
        const int standard[] = {start.stdin_fd, start.stdout_fd, start.stderr_fd};
        for (int i = 0; i < 3; ++i)
            if (standard[i] >= 0) worker.fds.push_back({i, standard[i]});
        for (const ExtraFd& extra : start.extra) worker.fds.push_back({extra.number, extra.fd});
        worker.done = [this, again, alive = std::weak_ptr(alive_)](Result<Spawned> spawned) {
            const bool cold = !spawned && spawned.error().code() == ErrorCode::unavailable;
            if (cold && alive.lock()) {
                policy_.went_cold();
                return keeper_.spawn(recorded(again->start, again->record), std::move(again->done));
            }
            again->done(std::move(spawned));
        };
        workers.push_back(std::move(worker));
    }
    server_->fork(std::move(workers));
}

void WarmStarts::start_waiting_cold() {
    if (!waiting_.empty()) policy_.went_cold();
    for (Waiting& each : std::exchange(waiting_, {}))
        keeper_.spawn(recorded(each.start, each.record), std::move(each.done));
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
        say_.info("all later starts are cold: twice a cold start has fared better than a warm one");
        command_.reset();
        drop_server();
    }
    if (command_ && !temporary_.empty()) read_records({});
    arm();
}

bool WarmStarts::exited(std::int64_t pid) { return server_ && server_->exited(pid); }

void WarmStarts::arm() {
    timer_.cancel();
    if (!command_ || policy_.prepare_at() == kNever) return;
    timer_.expires_after(std::max(policy_.prepare_at() - boot_now(), Duration{0}));
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](const auto& error) {
        if (!error && alive.lock()) prepare();
    });
}

// A worker may put anything in their place. They are removed: each generation adds to them.
void WarmStarts::read_records(std::function<void()> then) {
    auto texts = std::make_shared<std::vector<std::string>>();
    std::vector<std::string> records;
    for (int index = 0; index < requested_; ++index) records.push_back(record_of(index));
    files_.post(
        [texts, records] {
            for (const std::string& record : records) {
                const Result<UniqueFd> file = open_to_read(record);
                if (!file) continue;
                texts->push_back(read_bounded(file->get(), kMostRecord));
                ::unlink(record.c_str());
            }
        },
        [this, texts, then = std::move(then), alive = std::weak_ptr(alive_)] {
            if (!alive.lock()) return;
            for (const std::string& text : *texts) {
                imports_.add(text);
                own_.add(text);
            }
            if (then) then();
        });
}

void WarmStarts::prepare() {
    read_records([this] {
        if (!command_ || policy_.off() || !first_) return;
        if (server_ && !fits()) drop_server();
        if (!server_) return make_server();
        if (server_->ready()) import_more();
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
    for (const std::string& name : left_out_) plan.insert(plan.end(), {"leave", name});
    for (const std::string& each : server_environment_) plan.insert(plan.end(), {"sent", each});
    // A job that has not run yet: what the script says.
    if (imports_.imports().empty()) plan.insert(plan.end(), {"read", command_->script});
    // Workers that train need the CPU more.
    if (waiting_.empty()) plan.insert(plan.end(), {"slowly", "1"});
    for (std::size_t i = first_import; i < imports_.imports().size(); ++i)
        plan.insert(plan.end(),
                    {"import", imports_.imports()[i].name + "\t" + imports_.imports()[i].file});
    return plan;
}

void WarmStarts::make_server() {
    // The generation that it was for may have gone.
    if (!command_ || !first_) return start_waiting_cold();
    rank_variables_ = rank_variables(environments_);
    server_argv_ = first_->argv;
    server_environment_ = without(first_->environment, rank_variables_);
    // Its children are known by this variable, if everything is killed at once (orphans.h).
    for (const std::string& each : first_->environment)
        if (each.starts_with("DDPRUN_STOP_FILE=")) server_environment_.push_back(each);
    WorkerStart start = *first_;
    start.environment = server_environment_;
    imported_ = imports_.imports().size();
    const Time began = boot_now();
    server_ = std::make_unique<ForkServer>(
        io_, keeper_,
        ForkServer::Wanted{*command_, std::move(start), bootstrap_folder(temporary_), plan(0)},
        ForkServer::Events{
            .ready =
                [this, began](const std::string& modules) {
                    attempts_ = failures_ = 0;
                    remember();
                    say_.debug("a fork server for warm starts is ready after " +
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
                        left_out_.push_back(name);
                        say_.debug("the fork server does not import " + name + ": it " + why);
                    }
                    drop_server();
                    if (++attempts_ < kMostAttempts) return make_server();
                    on_server_ended("too many modules depend on the rank");
                },
            .ended = [this](const std::string& reason) { on_server_ended(reason); }});
}

void WarmStarts::import_more() {
    const std::size_t known = std::exchange(imported_, imports_.imports().size());
    if (known < imported_) server_->import(plan(known));
}

// Its callbacks may be on the stack.
void WarmStarts::drop_server() {
    if (server_) boost::asio::post(io_, [gone = std::shared_ptr(std::move(server_))] {});
}

// One node writes for all.
void WarmStarts::remember() {
    proven_ = true;
    if (!environments_.empty() && std::ranges::count(environments_.front(), "RANK=0") != 0)
        memory_->write({imports_.imports(), left_out_});
}

void WarmStarts::on_server_ended(const std::string& reason) {
    // What the last job has left may be old: then this one learns it anew.
    if (!std::exchange(proven_, true) && imports_.imports().size() > own_.imports().size()) {
        say_.debug("the imports that are known from an earlier job are forgotten, because " +
                   reason);
        memory_->forget();
        policy_.wait_is_quicker(false);
        imports_ = own_;
        left_out_.clear();
        attempts_ = 0;
        drop_server();
        return start_waiting_cold();
    }
    const bool last = ++failures_ >= kMostFailures;
    say_.info(std::string(last ? "all later starts are cold" : "the workers are started cold") +
              ", because " + reason);
    if (last) command_.reset();
    drop_server();
    start_waiting_cold();
}

void WarmStarts::close() {
    timer_.cancel();
    if (memory_) memory_->close();
}

}  // namespace ddprun::agent::warm
