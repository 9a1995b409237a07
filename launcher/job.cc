#include "launcher/job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <random>

#include "agent/hardware.h"
#include "agent/runner.h"
#include "launcher/failure_report.h"
#include "launcher/log.h"
#include "launcher/meeting_point.h"
#include "rendezvous/ledger_directory.h"
#include "rendezvous/ledger_memory.h"
#include "rendezvous/secret.h"
#include "rendezvous/service.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Ending;
using rendezvous::Note;

constexpr auto kFlushLimit = std::chrono::seconds{5};

std::uint64_t random_number() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

// FNV-1a: tells one command line from another in a ledger; guards nothing.
std::string digest(const std::string& text) {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return std::to_string(hash);
}

Ending failed(const Error& error) {
    const bool ours = error.code() == ErrorCode::internal;
    return {.verdict = ours ? rendezvous::Verdict::internal : rendezvous::Verdict::unavailable,
            .code = ours ? 70 : 69,
            .sentence = error.sentence(),
            .first_failure = {},
            .first_failure_node = {},
            .consequences = 0};
}

Note::Level least_level(const Plan& plan, bool leads) {
    if (plan.output.verbosity > 0) return Note::Level::debug;
    if (plan.output.verbosity < 0) return Note::Level::error;
    return leads ? Note::Level::info : Note::Level::warn;  // one node tells the story of the job
}

bool is_ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

int bits(const Streams& streams) { return (streams.out ? 1 : 0) | (streams.err ? 2 : 0); }

class Job {
  public:
    Job(JobInput input, agent::Keeper keeper)
        : input_(std::move(input)),
          plan_(input_.plan),
          keeper_(std::move(keeper)),
          node_{plan_.node_name, Incarnation{random_number()}} {}

    Ending run() {
        auto point = open_meeting_point(loop_, plan_, input_.host);
        if (!point) return finish(failed(point.error()));
        open_log(plan_.max_nodes > 1 ? "ddprun " + plan_.node_name : "ddprun",
                 least_level(plan_, point->leads));
        say_what_was_planned(point->leads);
        agent::Runner::Config config = runner_config(*point);
        if (point->listener) {
            config.machine.offer.service_port = point->listener->local_endpoint().port();
            config.gone_listener.reset(
                ::fcntl(point->listener->native_handle(), F_DUPFD_CLOEXEC, 3));
        }
        if (auto known = start_identity(*point); !known) return finish(failed(known.error()));
        if (auto opened = start_service(*point); !opened) return finish(failed(opened.error()));
        return finish(run_agent(std::move(config), point->candidates));
    }

  private:
    // Nobody else can come to a job of one node that leads itself. In others the secret is looked
    // for while the rest starts; only where the job depends on it, it is waited for, and asked for
    // by all.
    Result<> start_identity(const MeetingPoint& point) {
        if (plan_.max_nodes == 1 && point.leads) return {};
        secrets_.emplace(
            loop_, files_,
            rendezvous::IdentityConfig{plan_.identity.mode, input_.secret, plan_.ledger.directory});
        if (plan_.identity.mode == rendezvous::IdentityMode::require) {
            std::optional<Result<>> known;
            secrets_->look([&known](const Result<std::string>& found) {
                known = found ? Result<>() : found.error();
            });
            while (!known) run_one();
            if (!*known) return *known;
        }
        if (point.leads)
            secrets_->look([this](const Result<std::string>& found) { say_identity(found); });
        return {};
    }

    void say_identity(const Result<std::string>& found) {
        if (!found)
            say(Note::Level::warn,
                "anybody who reaches this node's port may join, read or stop the "
                "job: " +
                    found.error().sentence());
        else if (!found->empty())
            say(Note::Level::debug, "nodes prove by " + *found + " that they are of this user");
    }

    // Every node has the service; who leads opens the ledger, the others only know where it is.
    Result<> start_service(MeetingPoint& point) {
        if (point.leads) {
            if (auto opened = open_ledger(); !opened) return opened;
        } else if (plan_.ledger.kind == LedgerChoice::Kind::memory) {
            ledger_ = std::make_unique<rendezvous::LedgerMemory>(loop_);
        } else {
            ledger_ = std::make_unique<rendezvous::LedgerDirectory>(plan_.ledger.directory, files_);
        }
        rendezvous::MachineConfig config;
        config.run_id = plan_.run_id;
        config.self = node_;
        config.succession = shared_ledger();
        config.requeue = plan_.slurm_restart_count;
        config.command_digest = digest(input_.command_line);
        config.version = DDPRUN_VERSION;
        config.seed = random_number();
        config.limits = limits();
        service_.emplace(
            loop_, std::move(point.listener), std::move(config), *ledger_,
            [this](const Note& note) { (*log_)(note); },
            [this](const Ending&) {
                service_closed_ = true;
                stop_when_done();
            },
            secrets());
        service_->listen();
        return {};
    }

    bool shared_ledger() const {
        return plan_.max_nodes > 1 && plan_.ledger.kind != LedgerChoice::Kind::memory;
    }

    Result<> open_ledger() {
        if (plan_.ledger.kind == LedgerChoice::Kind::memory) {
            ledger_ = std::make_unique<rendezvous::LedgerMemory>(loop_);
            return {};
        }
        std::optional<Result<std::unique_ptr<rendezvous::Ledger>>> opened;
        rendezvous::open_ledger_directory(
            plan_.ledger.directory, digest(input_.command_line), files_,
            [this](const Note& note) { (*log_)(note); },
            [&](Result<std::unique_ptr<rendezvous::Ledger>> result) {
                opened = std::move(result);
            });
        while (!opened) run_one();
        if (!*opened) return opened->error();
        ledger_ = std::move(**opened);
        return {};
    }

    void run_one() {
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }

    rendezvous::Secrets* secrets() { return secrets_ ? &*secrets_ : nullptr; }

    rendezvous::Limits limits() const {
        rendezvous::Limits limits;
        limits.min_nodes = plan_.min_nodes;
        limits.max_nodes = plan_.max_nodes;
        limits.max_restarts =
            plan_.max_restarts.automatic ? rendezvous::kAutoRestarts : plan_.max_restarts.count;
        limits.crash_loop = plan_.crash_loop;
        limits.on_join = static_cast<rendezvous::OnJoin>(plan_.on_join);
        limits.join_interval = plan_.join_interval;
        limits.order = plan_.expected_nodes;
        limits.times = {plan_.times.lease, plan_.times.join_timeout, plan_.times.last_call};
        return limits;
    }

    agent::Runner::Config runner_config(const MeetingPoint& point) {
        agent::Runner::Config config;
        config.machine.run_id = plan_.run_id;
        config.machine.node = node_;
        config.machine.requeue = plan_.slurm_restart_count;
        config.machine.version = DDPRUN_VERSION;
        config.machine.limits = limits();
        config.machine.join_timeout = plan_.times.join_timeout;
        config.machine.grace_final = plan_.times.grace_signal;
        config.machine.grace_restart = plan_.times.grace_restart;
        config.machine.offer = offer(point);
        config.machine.leads = point.leads;
        config.machine.may_lead = shared_ledger();
        config.workers = worker_plan();
        config.one_node = plan_.max_nodes == 1 && plan_.store_allow.empty();
        config.serve_timers = variable("TORCHELASTIC_ENABLE_FILE_TIMER") == "1";
        config.timer_file = variable("TORCHELASTIC_TIMER_FILE");
        config.log_dir = plan_.output.log_dir.value_or("");
        config.lease = plan_.times.lease;
        config.store_allow = plan_.store_allow;
        config.store_limits = plan_.store_limits;
        return config;
    }

    // The others reach the leader by the name that they were given for it; who is not the leader
    // offers the address from which it reached it (LinkUp).
    rendezvous::Offer offer(const MeetingPoint& point) const {
        rendezvous::Offer offer;
        offer.slots = plan_.slots;
        offer.node_rank = plan_.node_rank;
        offer.addresses = input_.host.local_addresses;
        offer.role = plan_.role;
        if (plan_.max_nodes == 1)
            offer.address = "127.0.0.1";
        else if (plan_.local_addr)
            offer.address = *plan_.local_addr;
        else if (point.leads)
            offer.address = plan_.endpoint.host;
        return offer;
    }

    std::string variable(const std::string& name) const {
        const auto found = input_.environment.find(name);
        return found == input_.environment.end() ? "" : found->second;
    }

    agent::WorkerPlan worker_plan() const {
        agent::WorkerPlan workers;
        workers.node = node_;
        workers.run_id = plan_.run_id;
        workers.role = plan_.role;
        workers.argv = plan_.command.argv;
        workers.first_argument = plan_.command.first_argument;
        workers.collapse_dollars = plan_.command.collapse_dollars;
        workers.cpus = plan_.worker_cpus;
        workers.more = plan_.worker_variables;
        workers.signal_names = plan_.signal_names;
        workers.environment = input_.environment;
        workers.omp_num_threads = plan_.omp_num_threads;
        workers.nofile_soft = input_.nofile_soft;
        workers.label = plan_.output.label;
        workers.foreground = plan_.slots == 1 && ::isatty(STDIN_FILENO);
        workers.slurm_job_id = input_.slurm_job_id;
        const Output output = plan_.output;
        workers.redirected = [output](int rank) { return bits(output.redirects.of(rank)); };
        workers.teed = [output](int rank) { return bits(output.tee.of(rank)); };
        workers.on_console = [filter = output.local_ranks_filter](int rank) {
            return filter.empty() || std::find(filter.begin(), filter.end(), rank) != filter.end();
        };
        return workers;
    }

    Ending run_agent(agent::Runner::Config config, std::vector<rendezvous::CallTarget> candidates) {
        const rendezvous::Log log = [this](const Note& note) { (*log_)(note); };
        const auto make_link = [&](agent::Link::OnEvent on_event) {
            return agent::make_link(loop_, std::move(candidates), *service_, secrets(), log,
                                    std::move(on_event));
        };
        agent::Runner runner(loop_, std::move(config), keeper_, *service_, out_, err_, log,
                             make_link, [this](const Ending& ending) {
                                 ending_ = ending;
                                 stop_when_done();
                             });
        boost::asio::signal_set signals(loop_);
        // What the caller has us ignore stays ignored: nohup.
        for (const int number : plan_.signals)
            if (!is_ignored(number)) signals.add(number);
        await_signal(signals, runner);
        runner.start();
        if (loop_.stopped()) loop_.restart();
        loop_.run();
        out_.flush(kFlushLimit);
        return ending_.value_or(
            failed(Error(ErrorCode::internal, "the loop ended before the job")));
    }

    void await_signal(boost::asio::signal_set& signals, agent::Runner& runner) {
        signals.async_wait(
            [this, &signals, &runner](const boost::system::error_code& error, int number) {
                if (error) return;
                runner.signal(number);
                await_signal(signals, runner);
            });
    }

    // The leader stays until every node has heard the verdict (the service bounds that itself).
    void stop_when_done() {
        if (!ending_) return;
        if (service_closed_ || !service_->leads()) return loop_.stop();
        last_.expires_after(plan_.times.lease + kFlushLimit);
        last_.async_wait([this](const boost::system::error_code& error) {
            if (!error) loop_.stop();
        });
    }

    Ending finish(Ending ending) {
        if (!log_) open_log("ddprun", Note::Level::info);
        if (const auto ended = keeper_.shutdown(); !ended)
            say(Note::Level::error, ended.error().sentence());
        const bool whole = plan_.max_nodes == 1 || (service_ && service_->leads());
        for (const std::string& line : failure_report(ending, whole)) log_->raw(line);
        err_.flush(kFlushLimit);
        return ending;
    }

    // Between the lines of the workers, and as they without waiting for a reader.
    void open_log(const std::string& name, Note::Level least) {
        log_.emplace(name, least, [this](const std::string& line) { err_.write(line); });
    }

    void say_what_was_planned(bool leads) {
        for (const std::string& sentence : plan_.host_warnings) say(Note::Level::warn, sentence);
        if (!leads && plan_.lead == Lead::no) return;  // the leader says it
        for (const std::string& sentence : plan_.warnings) say(Note::Level::warn, sentence);
        for (const std::string& sentence : plan_.notes) say(Note::Level::info, sentence);
    }

    void broken(const Error& stream) {
        if (log_) say(Note::Level::warn, stream.sentence());
    }

    void say(Note::Level level, const std::string& sentence) { (*log_)(Note{level, sentence}); }

    JobInput input_;
    const Plan& plan_;
    agent::Keeper keeper_;
    rendezvous::NodeId node_;
    boost::asio::io_context loop_{1};
    rendezvous::FileThread files_{loop_};
    std::optional<Log> log_;
    agent::Console out_{loop_, STDOUT_FILENO, "stdout", [this](const Error& e) { broken(e); }};
    agent::Console err_{loop_, STDERR_FILENO, "stderr", [this](const Error& e) { broken(e); }};
    std::optional<rendezvous::Secrets> secrets_;  // none in a job of one node
    std::unique_ptr<rendezvous::Ledger> ledger_;
    std::optional<rendezvous::Service> service_;
    boost::asio::steady_timer last_{loop_};
    std::optional<Ending> ending_;
    bool service_closed_ = false;
};

}  // namespace

Ending run_job(JobInput input, agent::Keeper keeper) {
    return Job(std::move(input), std::move(keeper)).run();
}

}  // namespace ddprun::launcher
