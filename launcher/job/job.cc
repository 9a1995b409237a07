#include "launcher/job/job.h"

#include <fcntl.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <filesystem>
#include <functional>

#include "agent/node/runner.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "launcher/job/job_config.h"
#include "launcher/job/job_in_slurm.h"
#include "launcher/job/job_voice.h"
#include "launcher/job/leave_together.h"
#include "launcher/job/meeting_point.h"
#include "launcher/plan/check_plan.h"
#include "launcher/report/tell_failure.h"
#include "rendezvous/ledger/ledger_followed.h"
#include "rendezvous/ledger/ledger_members.h"
#include "rendezvous/ledger/ledger_open.h"
#include "rendezvous/secret/secret.h"
#include "rendezvous/service/service.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Ending;

// How long to wait, at the end, for a reader or a file system that takes nothing.
constexpr auto kFlushLimit = std::chrono::seconds{5};
constexpr auto kLookLimit = std::chrono::seconds{10};  // for the leader's ledger, before joining

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
    if (plan.check) return Note::Level::error;  // the report is all there is to say
    if (plan.output.verbosity < -1) return Note::Level::error;
    return leads && plan.output.verbosity == 0
               ? Note::Level::info
               : Note::Level::warn;  // one node tells the story of the job
}

bool is_ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

class Job {
  public:
    Job(JobInput input, agent::Keeper keeper)
        : input_(std::move(input)),
          plan_(input_.plan),
          keeper_(std::move(keeper)),
          node_{plan_.node_name, Incarnation{random_number()}} {
        if (plan_.stop.in_slurm) slurm_.emplace(loop_, input_, voice_);
    }

    Ending run() {
        auto point = open_meeting_point(loop_, plan_, input_.host);
        if (!point) return finish(failed(point.error()));
        voice_.open(plan_.max_nodes > 1 ? "ddprun " + plan_.node_name : "ddprun",
                    least_level(plan_, point->leads));
        say_what_was_planned(point->leads);
        agent::Runner::Config config = runner_config(input_, node_, point->leads);
        if (slurm_) config.find_job_end = std::bind_front(&JobInSlurm::find_job_end, &*slurm_);
        if (point->listener) {
            if (point->address && !plan_.local_addr) config.machine.offer.address = *point->address;
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
        secrets_.emplace(loop_, files_,
                         rendezvous::IdentityConfig{plan_.identity.mode, input_.secret,
                                                    folder_of(plan_.ledger.place)});
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

    // Every node has the service; who leads opens the ledger, the others follow it.
    Result<> start_service(MeetingPoint& point) {
        if (point.leads)
            if (auto opened = open_own_ledger(); !opened) return opened;
        service_.emplace(
            loop_, std::move(point.listener), machine_config(input_, node_), ledger_, voice_.log(),
            [this](const Ending&) {
                service_closed_ = true;
                stop_when_done();
            },
            secrets());
        if (slurm_) slurm_->serve(*service_);
        service_->listen();
        return {};
    }

    // `mark`: of the leader's ledger; 0: to begin one, or to go on with it.
    void open_ledger(std::uint64_t mark, Duration limit, rendezvous::LedgerOpened opened) {
        rendezvous::open_ledger({loop_, files_, voice_.log()}, plan_.ledger.place,
                                {command_digest(plan_), plan_.slurm_restart_count, mark},
                                {.call = plan_.times.lease, .opening = limit}, std::move(opened));
    }

    Result<> open_own_ledger() {
        std::optional<Result<std::unique_ptr<rendezvous::Ledger>>> opened;
        open_ledger(0, plan_.times.join_timeout,
                    [&](Result<std::unique_ptr<rendezvous::Ledger>> result) {
                        opened = std::move(result);
                    });
        while (!opened) run_one();
        if (!*opened) {
            files_.abandon();
            return opened->error();
        }
        ledger_.adopt(std::move(**opened));
        if (secrets_) secrets_->ledger_lies_in(ledger_.folder());
        return {};
    }

    // Who is in the job, if it runs and its endpoint's host is gone.
    void find_members(std::function<void(std::vector<rendezvous::Peer>)> done) {
        rendezvous::find_members({loop_, files_, [](const Note&) {}}, plan_.ledger.place,
                                 {command_digest(plan_), plan_.slurm_restart_count, 0},
                                 {.call = plan_.times.lease, .opening = plan_.times.lease},
                                 std::move(done));
    }

    // Whether this node reads the ledger that its leader has named, and so may lead with it later.
    void find_ledger(const rendezvous::Welcome& leader, std::function<void(bool)> done) {
        ledger_.find(leader.ledger_mark,
                     [this, name = leader.ledger, done = std::move(done)](const Result<>& found) {
                         if (found && secrets_) secrets_->ledger_lies_in(ledger_.folder());
                         if (!found)
                             say(Note::Level::info, "cannot read the leader's ledger, " + name +
                                                        ": " + found.error().sentence());
                         done(found.has_value());
                     });
    }

    void run_one() {
        if (loop_.stopped()) loop_.restart();
        loop_.run_one();
    }

    rendezvous::Secrets* secrets() { return secrets_ ? &*secrets_ : nullptr; }

    Ending run_agent(agent::Runner::Config config, std::vector<rendezvous::CallTarget> candidates) {
        const auto make_link = [&](agent::Link::OnEvent on_event) {
            return agent::make_link(loop_,
                                    {.candidates = std::move(candidates),
                                     .secrets = secrets(),
                                     .look = std::bind_front(&Job::find_ledger, this),
                                     .members = std::bind_front(&Job::find_members, this)},
                                    *service_, voice_.log(), std::move(on_event));
        };
        agent::Runner runner(loop_, std::move(config), keeper_, *service_,
                             agent::Consoles{voice_.files(), voice_.out(), voice_.err()},
                             voice_.log(), make_link,
                             [this](const Ending& ending, UniqueFd leader) {
                                 ending_ = ending;
                                 leader_ = std::move(leader);
                                 stop_when_done();
                             });
        // What the caller has us ignore stays ignored: nohup.
        for (const auto* numbers : {&plan_.signals, &plan_.passed_on})
            for (const int number : *numbers)
                if (!is_ignored(number)) signals_.add(number);
        await_signal(runner);
        if (slurm_) slurm_->watch_for_loss(*service_);
        runner.start();
        if (loop_.stopped()) loop_.restart();
        loop_.run();
        signals_.clear();
        // A requeue signals who has heard of the end and is about to leave.
        for (const auto* numbers : {&plan_.signals, &plan_.passed_on})
            for (const int number : *numbers) std::signal(number, SIG_IGN);
        log_folder_ = runner.log_folder();
        return ending_.value_or(
            failed(Error(ErrorCode::internal, "the loop ended before the job")));
    }

    void await_signal(agent::Runner& runner) {
        signals_.async_wait([this, &runner](const boost::system::error_code& error, int number) {
            if (error) return;
            runner.signal(number);
            await_signal(runner);
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
        if (!voice_.is_open()) voice_.open("ddprun", Note::Level::info);
        if (const auto ended = keeper_.shutdown(); !ended)
            say(Note::Level::error, ended.error().sentence());
        const JobVoice::Unread unread = voice_.flush(kFlushLimit);
        tell(ending, unread);
        // Who leads knows that no worker lives anywhere.
        if (slurm_ && service_ && service_->leads()) slurm_->end_if_headless();
        remove_ledger_of_check();
        if (unread.err == 0) voice_.err().flush(kFlushLimit);
        if (leader_) leave_with(leader_);
        return ending;
    }

    // In a step of Slurm the output of all nodes comes together, so that one says all. Who ends
    // without a word of a leader has nobody else to call the user's program.
    void tell(const Ending& ending, const JobVoice::Unread& unread) {
        const auto report = make_failure_report(ending, {.run_id = plan_.run_id,
                                                         .program = plan_.command.display,
                                                         .slurm_job_id = input_.slurm_job_id,
                                                         .node = plan_.node_name,
                                                         .now = day_now(),
                                                         .unread_stdout = unread.out,
                                                         .unread_stderr = unread.err});
        if (!report) return;
        if (plan_.check && report->first && ending.code == kCheckWrong) return;  // rank 0 said it
        const bool leads = plan_.max_nodes == 1 || (service_ && service_->leads());
        const bool alone = ending.at == Duration{};
        const bool failure = ending.verdict != rendezvous::Verdict::user_signal &&
                             ending.verdict != rendezvous::Verdict::work_left;
        FailureOutlets outlets;
        outlets.in_a_line = first_on_host(plan_) || alone;
        outlets.in_full = (leads || plan_.expected_nodes.empty()) &&
                          (report->first.has_value() || report->lost.has_value());
        outlets.json_file = log_folder_.empty() ? "" : log_folder_ + "/failure.json";
        if (const auto found = input_.environment.find("TORCHELASTIC_ERROR_FILE");
            failure && found != input_.environment.end())
            outlets.scheduler_file = found->second;
        if (failure && (leads || alone)) outlets.program = plan_.on_failure;
        const auto print = [&](const std::string& line) {
            outlets.in_full ? voice_.err().write(line + "\n") : voice_.raw(line);
        };
        TellFailure(loop_, files_, print, [this](const std::string& sentence) {
            say(Note::Level::warn, sentence);
        }).tell(*report, outlets);
    }

    // Nobody goes on with it. A file system that does not answer keeps it.
    void remove_ledger_of_check() {
        if (!plan_.check || !service_ || !service_->leads() || ledger_.folder().empty()) return;
        files_.post(
            [folder = std::filesystem::path(ledger_.folder()), made = !plan_.ledger.chosen] {
                std::error_code ignored;
                std::filesystem::remove_all(folder, ignored);
                if (made) std::filesystem::remove(folder.parent_path(), ignored);  // if it is empty
            });
        files_.drain(kFlushLimit);
    }

    void say_what_was_planned(bool leads) {
        if (first_on_host(plan_))
            for (const std::string& sentence : plan_.host_warnings)
                say(Note::Level::warn, sentence);
        if (!leads && plan_.lead == Lead::no) return;  // the leader says it
        for (const std::string& sentence : plan_.warnings) say(Note::Level::warn, sentence);
        for (const std::string& sentence : plan_.notes) say(Note::Level::info, sentence);
    }

    void say(Note::Level level, const std::string& sentence) { voice_.say(level, sentence); }

    JobInput input_;
    const Plan& plan_;
    agent::Keeper keeper_;
    rendezvous::NodeId node_;
    boost::asio::io_context loop_{1};
    FileThread files_{loop_};
    JobVoice voice_{loop_, plan_.output.overflow};
    boost::asio::signal_set signals_{loop_};
    std::optional<JobInSlurm> slurm_;
    std::optional<rendezvous::Secrets> secrets_;  // none in a job of one node
    rendezvous::LedgerFollowed ledger_{loop_,
                                       [this](std::uint64_t mark, rendezvous::LedgerOpened opened) {
                                           open_ledger(mark, kLookLimit, std::move(opened));
                                       }};
    std::optional<rendezvous::Service> service_;
    boost::asio::steady_timer last_{loop_};
    std::optional<Ending> ending_;
    UniqueFd leader_;         // of whom we have the ending; ends when it leaves
    std::string log_folder_;  // of --log-dir, with the workers' files; empty: none
    bool service_closed_ = false;
};

}  // namespace

Ending run_job(JobInput input, agent::Keeper keeper) {
    return Job(std::move(input), std::move(keeper)).run();
}

}  // namespace ddprun::launcher
