// Puts the parts of a job together, runs the loop until the job ends, and reports a failure.
#include "launcher/job/job.h"

#include <fcntl.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <functional>

#include "agent/node/runner.h"
#include "base/exit_code.h"
#include "base/loop/child_program.h"
#include "base/loop/run_loop_until.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "base/system/signal_state.h"
#include "launcher/job/event_program.h"
#include "launcher/job/failure_outlets.h"
#include "launcher/job/job_config.h"
#include "launcher/job/job_in_slurm.h"
#include "launcher/job/job_ledger.h"
#include "launcher/job/job_voice.h"
#include "launcher/job/leave_together.h"
#include "launcher/job/meeting_point.h"
#include "launcher/job/pointer_file.h"
#include "launcher/plan/check_plan.h"
#include "launcher/report/failure_json.h"
#include "launcher/report/tell_failure.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Ending;

// At the end: how long to wait for a reader of our output, or a file system, that takes nothing.
constexpr auto kFlushLimit = std::chrono::seconds{5};
// How long nobody may answer at an endpoint that is perhaps nobody's, until the user is told.
constexpr auto kEndpointDoubted = std::chrono::seconds{4};
// For operators who read the workers' text to its end; who does not read is not waited for.
constexpr std::chrono::milliseconds kVisitorsLimit{500};

// An ending for a job that never came to run on this node. `at` stays 0: no leader has said this.
Ending failed(const Error& error) {
    const bool ours = error.code() == ErrorCode::internal;
    return rendezvous::ended(
        ours ? rendezvous::Verdict::internal : rendezvous::Verdict::unavailable,
        ours ? kInternalCode : kUnavailableCode, error.sentence());
}

// The signals of this process. A signal_set that is cleared or destroyed makes its signals deadly
// again; one that comes at the end of the job must not end the process, so this one stays.
boost::asio::signal_set& lasting_signals(boost::asio::io_context& loop) {
    static auto* const signals = new boost::asio::signal_set(loop);
    return *signals;
}

// One job on this node. The members at the end stand in the order in which they are made; the
// destructor runs in reverse, so that each may use those above it.
class Job {
  public:
    Job(JobInput input, agent::Keeper keeper, const Products& products)
        : input_(std::move(input)),
          products_(products),
          plan_(input_.plan),
          // A random incarnation: a restarted ddprun is another node.
          node_{plan_.node_name, Incarnation{random_number()}},
          keeper_(std::move(keeper)) {
        if (plan_.stop.in_slurm) slurm_.emplace(loop_, input_, voice_);
        on_hung_program(loop_,
                        [this](const std::string& sentence) { say(Note::Level::warn, sentence); });
    }

    // The order matters: the port is bound before anything else is opened, so that a second ddprun
    // on this host fails or becomes a client at once; the identity must be known before the service
    // takes connections.
    Ending run() {
        auto point = open_meeting_point(loop_, plan_, input_.host);
        if (!point) return finish(failed(point.error()));
        voice_.open(log_style(plan_), least_level(plan_, point->leads));
        say_what_was_planned(point->leads);
        agent::Runner::Config config = runner_config(input_, node_, point->leads);
        config.products = products_.agent;
        if (slurm_) config.find_job_end = std::bind_front(&JobInSlurm::find_job_end, &*slurm_);
        if (point->listener) {
            // The node's own name may mean nothing on other hosts (meeting_point.h). Then it offers
            // an address.
            if (point->address && !plan_.local_addr) config.machine.offer.address = *point->address;
            config.machine.offer.service_port = point->listener->local_endpoint().port();
            // The keeper gets a copy of the listening socket. It keeps the port taken until the
            // last worker is gone, even if this process is killed. 3 or more: 0 to 2 are the
            // standard streams.
            config.gone_listener.reset(
                ::fcntl(point->listener->native_handle(), F_DUPFD_CLOEXEC, 3));
        }
        if (auto known = start_identity(*point); !known) return finish(failed(known.error()));
        if (!meets_nobody(plan_)) config.store.secrets = secrets();
        if (auto opened = start_service(*point); !opened) return finish(failed(opened.error()));
        return finish(run_agent(std::move(config), point->candidates));
    }

  private:
    // Nobody can join a job of one node. It looks for its secret when the first operator calls, and
    // refuses him if there is none. Otherwise the search for a secret runs while the rest starts.
    // It is waited for, on every node, only if the job depends on it (--identity=require, and
    // several nodes under Slurm) and nobody but munge can give one.
    Result<> start_identity(const MeetingPoint& point) {
        const bool alone = meets_nobody(plan_);
        if (alone && !point.listener) return {};
        secrets_.emplace(loop_, files_,
                         rendezvous::IdentityConfig{
                             alone ? rendezvous::IdentityMode::require : plan_.identity.mode,
                             input_.secret, folder_of(plan_.ledger.place)});
        if (alone) return {};
        if (plan_.identity.mode == rendezvous::IdentityMode::require && !secrets_->has_source()) {
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

    // With --identity=auto a job without a secret still runs. This warning is all that the user
    // gets.
    void say_identity(const Result<std::string>& found) {
        if (!found)
            say(Note::Level::warn,
                "anybody who reaches this node's port may join, read or stop the "
                "job: " +
                    found.error().sentence());
        else if (!found->empty())
            say(Note::Level::debug,
                "nodes prove with " + *found + " that they belong to this user");
    }

    // Every node runs the service, since any of them may lead later. The leader opens the ledger
    // first; the other nodes open it when they know the leader.
    Result<> start_service(MeetingPoint& point) {
        rendezvous::MachineConfig config = machine_config(input_, node_);
        if (point.leads) {
            auto begun = ledger_.begin(config, [this] { tell_secrets_the_folder(); });
            if (!begun) return begun;
        }
        pointer_.write(point, input_.host.local_addresses, voice_.log());
        service_.emplace(
            loop_, std::move(point.listener), std::move(config), ledger_.ledger(),
            [this](const Note& note) { say_as_leader(note); },
            [this](const Ending&) {
                service_closed_ = true;
                stop_when_done();
            },
            secrets(), products_.operators);
        if (slurm_) slurm_->serve(*service_);
        service_->listen();
        if (!plan_.on_event.empty() && products_.events)
            events_.emplace(
                loop_, plan_.on_event,
                [this]() -> std::optional<rendezvous::JobStatus> {
                    if (!service_->leads()) return std::nullopt;
                    return service_->status();
                },
                products_.events(),
                [this](const std::string& sentence) { say(Note::Level::warn, sentence); });
        return {};
    }

    // The ledger may lie in another folder than planned (if the planned one is taken), and the
    // secret lies in it.
    void tell_secrets_the_folder() {
        if (secrets_) secrets_->ledger_lies_in(ledger_.folder());
    }

    // Whom to call when the endpoint does not answer.
    void find_members(std::function<void(std::vector<rendezvous::Peer>)> done) {
        ledger_.find_members([this, done = std::move(done)](std::vector<rendezvous::Peer> members) {
            for (rendezvous::Peer& other : others_of_step(plan_))
                members.push_back(std::move(other));
            done(std::move(members));
        });
    }

    void find_ledger(const rendezvous::Welcome& leader, std::function<void(bool)> done) {
        ledger_.find(leader, [this, done = std::move(done)](bool found) {
            if (found) tell_secrets_the_folder();
            done(found);
        });
    }

    // An io_context that has run out of work stops, and must be restarted before it runs again.
    void run_one() {
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }

    rendezvous::Secrets* secrets() { return secrets_ ? &*secrets_ : nullptr; }

    Ending run_agent(agent::Runner::Config config, std::vector<rendezvous::CallTarget> candidates) {
        // The runner makes its link itself, because the link needs the runner's event handler.
        const auto make_link = [&](agent::Link::OnEvent on_event) {
            return agent::make_link(loop_,
                                    {.candidates = std::move(candidates),
                                     .secrets = secrets(),
                                     .look = std::bind_front(&Job::find_ledger, this),
                                     .members = std::bind_front(&Job::find_members, this)},
                                    *service_, voice_.log(),
                                    [this, on_event = std::move(on_event)](agent::Event event) {
                                        if (std::holds_alternative<agent::MessageCame>(event))
                                            unanswered_.cancel();
                                        on_event(std::move(event));
                                    });
        };
        agent::Runner runner(loop_, std::move(config), keeper_, *service_,
                             agent::Consoles{.files = voice_.files(),
                                             .out = voice_.out(),
                                             .err = voice_.err(),
                                             .late = voice_.late_fault()},
                             voice_.log(), make_link,
                             [this](const Ending& ending, UniqueFd leader) {
                                 ending_ = ending;
                                 leader_ = std::move(leader);
                                 stop_when_done();
                             });
        // A signal that the caller has set to be ignored stays ignored: under nohup a hang-up must
        // not end the job.
        for (const auto* numbers : {&plan_.signals, &plan_.passed_on})
            for (const int number : *numbers)
                if (!is_ignored(number)) signals_.add(number);
        await_signal(runner);
        if (slurm_) slurm_->watch_for_loss(*service_);
        runner.start();
        if (!service_->leads() && !plan_.endpoint_doubt.empty()) {
            unanswered_.expires_after(kEndpointDoubted);
            unanswered_.async_wait([this](const boost::system::error_code& answered) {
                if (!answered) say(Note::Level::warn, plan_.endpoint_doubt);
            });
        }
        if (events_) events_->begin();
        if (loop_.stopped()) loop_.restart();
        loop_.run();
        // The text passes the loop.
        run_loop_until(
            loop_, [this] { return !service_->has_visitors(); }, kVisitorsLimit);
        ignore_signals();
        log_folder_ = runner.log_folder();
        return ending_.value_or(
            failed(Error(ErrorCode::internal, "the loop ended before the job")));
    }

    // A signal_set reports one signal for each wait, so the wait is renewed.
    void await_signal(agent::Runner& runner) {
        signals_.async_wait([this, &runner](const boost::system::error_code& error, int number) {
            // After the end there may be no runner any more, and this was not cancelled in time.
            if (error || ending_) return;
            runner.signal(number);
            await_signal(runner);
        });
    }

    // From here on stop signals are ignored. `scontrol requeue` signals all processes of the step,
    // also those that have heard of the end and only have their report left to write; a terminal
    // may hang up meanwhile.
    void ignore_signals() {
        signals_.cancel();
        for (const auto* numbers : {&plan_.signals, &plan_.passed_on})
            for (const int number : *numbers) std::signal(number, SIG_IGN);
    }

    // Ends the loop when the job has ended. The leader must stay until every node has heard the
    // verdict. The service bounds that itself; the timer is a second bound in case it does not.
    void stop_when_done() {
        if (!ending_) return;
        // A leader that leaves a job which goes on has told nobody an end: another node leads then.
        const bool left = ending_->verdict == rendezvous::Verdict::left;
        if (service_closed_ || !service_->leads() || left) return loop_.stop();
        last_.expires_after(plan_.limits.times.lease + kFlushLimit);
        last_.async_wait([this](const boost::system::error_code& error) {
            if (!error) loop_.stop();
        });
    }

    // The end, in an order that loses nothing: workers dead, their output written, then the report,
    // then the user's program, and only then this process leaves.
    Ending finish(Ending ending) {
        // An error before the start: the node's role in the job is not known yet.
        if (!voice_.is_open()) voice_.open(log_style(plan_), Note::Level::info);
        if (const auto ended = keeper_.shutdown(); !ended)
            say(Note::Level::error, ended.error().sentence());
        const JobVoice::Unread unread = voice_.flush(kFlushLimit);
        tell(ending, unread);
        if (events_) events_->finish(ending);
        // Only the leader knows that no worker lives on any node; before that the allocation must
        // not be ended.
        if (slurm_ && service_ && service_->leads()) slurm_->end_if_headless();
        if (service_ && service_->leads() && ledger_.is_spent(ending)) ledger_.remove(kFlushLimit);
        pointer_.remove(kFlushLimit);
        // A stderr that took nothing before is not waited for a second time.
        if (unread.err == 0) voice_.err().flush(kFlushLimit);
        if (leader_) leave_with(leader_);
        return ending;
    }

    // Reports a failure. In a Slurm step the output of all nodes comes together, so the leader
    // prints the full report and each other node one line. A node that ends without having heard a
    // leader cannot rely on one: it calls the user's program itself.
    void tell(const Ending& ending, const JobVoice::Unread& unread) {
        const auto report = make_failure_report(ending, {.run_id = plan_.run_id,
                                                         .program = plan_.program.display,
                                                         .slurm_job = input_.slurm_job,
                                                         .node = plan_.node_name,
                                                         .now = day_now(),
                                                         .unread_stdout = unread.out,
                                                         .unread_stderr = unread.err});
        if (!report) return;
        // Rank 0 has printed the findings.
        if (plan_.check && report->first && ending.code == kCheckWrong) return;
        const bool leads = plan_.limits.max_nodes == 1 || (service_ && service_->leads());
        FailureOutlets outlets = failure_outlets(input_, ending, *report, leads, log_folder_);
        if (voice_.is_json()) {
            if (outlets.in_full || outlets.in_a_line)
                say(Note::Level::error, report_line(*report),
                    outlets.in_full ? failure_json(*report) : "");
            outlets.in_full = outlets.in_a_line = false;
        }
        const auto print = [&](const std::string& line) {
            // Lines of the full report have no prefix, so that tools which look for torchrun's
            // lines find them.
            outlets.in_full ? voice_.err().write(printable(line) + "\n")
                            : say(Note::Level::error, line);
        };
        TellFailure(loop_, files_, print, [this](const std::string& sentence) {
            say(Note::Level::warn, sentence);
        }).tell(*report, outlets);
    }

    // A node that takes over speaks for the job from then on.
    void say_as_leader(const Note& note) {
        if (service_ && service_->leads()) voice_.lower_to(least_level(plan_, true));
        say(note.level, note.sentence);
    }

    // Warnings about this host are printed by this host; those about the whole job by one node, the
    // leader. Where nobody knows in advance who leads, every node prints them.
    void say_what_was_planned(bool leads) {
        if (first_on_host(plan_))
            for (const std::string& sentence : plan_.host_warnings)
                say(Note::Level::warn, sentence);
        if (!leads && plan_.lead == Lead::no) return;  // the leader prints the rest
        for (const std::string& sentence : plan_.warnings) say(Note::Level::warn, sentence);
        for (const std::string& sentence : plan_.notes) say(Note::Level::info, sentence);
    }

    void say(Note::Level level, const std::string& sentence, const std::string& report = {}) {
        voice_.say(level, sentence, report);
    }

    JobInput input_;
    const Products products_;
    const Plan& plan_;
    rendezvous::NodeId node_;
    boost::asio::io_context loop_{1};
    agent::Keeper keeper_;  // its timers are the loop's
    FileThread files_{loop_};
    JobVoice voice_{loop_, {.overflow = plan_.console_overflow, .terminal = plan_.pty}};
    boost::asio::signal_set& signals_ = lasting_signals(loop_);
    std::optional<JobInSlurm> slurm_;
    std::optional<rendezvous::Secrets> secrets_;  // empty in a job of one node
    JobLedger ledger_{loop_, files_, plan_, input_.ledger_access, voice_.log()};
    PointerFile pointer_{files_, plan_};
    std::optional<rendezvous::Service> service_;
    std::optional<EventProgram> events_;
    boost::asio::steady_timer last_{loop_};
    boost::asio::steady_timer unanswered_{loop_};  // the endpoint; until a leader speaks
    std::optional<Ending> ending_;
    // Connection to the leader that told us the ending; it closes when the leader leaves.
    UniqueFd leader_;
    std::string log_folder_;  // where --log-dir has the workers' files; empty: nowhere
    bool service_closed_ = false;
};

}  // namespace

Ending run_job(JobInput input, agent::Keeper keeper, const Products& products) {
    return Job(std::move(input), std::move(keeper), products).run();
}

}  // namespace ddprun::launcher
