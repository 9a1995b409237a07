// Status, Why, Watch, Stop, Restart and Drain, as commands (asking_commands.h).
#include "operator/ddpctl/asking_commands.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/command_line/plain_values.h"
#include "base/exit_code.h"
#include "base/printable.h"
#include "operator/control/job_events.h"
#include "operator/ddpctl/ask_job.h"
#include "operator/ddpctl/print_parts.h"
#include "operator/ddpctl/queued_job.h"
#include "operator/ddpctl/recorded_status.h"
#include "operator/ddpctl/status_text.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {
namespace {

using Stub = AskedJob::Stub;

// A look is answered soon or not at all. An action waits until another node leads: three leases.
constexpr Duration kLookWithin = std::chrono::seconds{5};
constexpr Duration kActWithin = std::chrono::seconds{30};
// After a leader was lost: until another one has taken over, or the job has ended.
constexpr Duration kNextLeaderWithin = std::chrono::seconds{60};

// Asks for an action and returns what the leader says.
template <class Request>
Result<std::string> act(const CtlCall& call, AskedJob& job, Request request,
                        grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&,
                                                  control::Done*)) {
    control::Done done;
    request.set_by(job.by());
    const auto asked =
        job.ask([&](Stub& stub,
                    grpc::ClientContext& context) { return (stub.*rpc)(&context, request, &done); },
                kActWithin);
    if (!asked) return asked.error();
    if (!call.has("json")) return printable(done.sentence()) + "\n";
    const nlohmann::ordered_json json{{"format", "ddpctl " + std::string(call.command->name)},
                                      {"version", 1},
                                      {"already", done.already()},
                                      {"sentence", printable(done.sentence())}};
    return json_text(json);
}

// The same as AskedJob::look(). Of a job that no process is there to answer for, Slurm knows more.
Result<control::StatusReply> look_or_queue(AskedJob& job) {
    const auto reply = job.look(kLookWithin);
    if (reply || reply.error().code() == ErrorCode::refused) return reply;
    const auto queued = ask_queue(job.job());
    if (!queued) return reply;
    return queued_status(job.job(), *queued, std::chrono::system_clock::now().time_since_epoch());
}

// A script that looks must not take what is recorded for what is.
int code_of(const control::StatusReply& reply) { return is_recorded(reply) ? kUnavailableCode : 0; }

std::string why_text(const CtlCall& call, const control::WhyReply& reply) {
    if (call.has("json")) {
        nlohmann::ordered_json json{{"format", "ddpctl why"}, {"version", 1}};
        json["sentences"] = nlohmann::ordered_json::array();
        for (const std::string& sentence : reply.sentences())
            json["sentences"].push_back(printable(sentence));
        return json_text(json);
    }
    if (reply.sentences().empty()) return "the job runs, and nothing is known that holds it up\n";
    std::string text;
    for (const std::string& sentence : reply.sentences()) text += printable(sentence) + "\n";
    return text;
}

}  // namespace

Result<Looked> ask_status(const CtlCall& call) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    const auto reply = look_or_queue(*job);
    if (!reply) return reply.error();
    return Looked{call.has("json") ? status_json(*reply) : status_text(*reply), code_of(*reply)};
}

Result<Looked> ask_why(const CtlCall& call) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    const auto now = look_or_queue(*job);
    if (!now) return now.error();
    control::WhyReply reply;
    if (is_recorded(*now) || is_queued(*now)) {
        reply.add_sentences(now->waiting_for());
    } else {
        const auto asked =
            job->ask([&](Stub& stub,
                         grpc::ClientContext& context) { return stub.Why(&context, {}, &reply); },
                     kLookWithin);
        if (!asked) return asked.error();
    }
    return Looked{why_text(call, reply), code_of(*now)};
}

namespace {

// Slurm would start it again, so it is cancelled.
Result<std::string> stop_queued(const CtlCall& call, const QueuedJob& queued, const AskUser& user) {
    const std::string waits = queued_sentence(queued);
    if (!call.has("yes") && !user) return usage_error(waits + "; ddpctl stop --yes cancels it");
    if (!call.has("yes") && !user(waits + "; cancel it? [y/N] "))
        return Error(ErrorCode::not_found, "job " + queued.spelled + " is left in the queue");
    if (const auto done = cancel_queued(queued); !done) return done.error();
    const std::string sentence =
        "job " + queued.spelled + " is cancelled: it waited in Slurm's queue";
    if (!call.has("json")) return printable(sentence) + "\n";
    return json_text(nlohmann::ordered_json{{"format", "ddpctl stop"},
                                            {"version", 1},
                                            {"already", false},
                                            {"sentence", printable(sentence)}});
}

}  // namespace

// A job that has ended is what was asked for.
Result<std::string> ask_stop(const CtlCall& call, const AskUser& user) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    control::StopRequest request;
    request.set_after_snapshot(call.has("after-snapshot"));
    auto said = act(call, *job, request, &Stub::Stop);
    if (!said && said.error().code() != ErrorCode::refused)
        if (const auto queued = ask_queue(job->job())) return stop_queued(call, *queued, user);
    if (const std::string end = end_sentence(job->job()); !said && !end.empty())
        return printable(end) + "\n";
    return said;
}

Result<std::string> ask_snapshot(const CtlCall& call) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    return act(call, *job, control::SnapshotRequest(), &Stub::SnapshotNow);
}

// The generation is looked up once, so that asking again cannot end the next one.
Result<std::string> ask_restart(const CtlCall& call) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    const auto now = job->status(kActWithin);
    if (!now) return now.error();
    control::RestartRequest request;
    request.set_generation(now->generation());
    return act(call, *job, request, &Stub::Restart);
}

Result<std::string> ask_drain(const CtlCall& call) {
    if (call.words.empty() || call.words.size() > 2)
        return usage_error("ddpctl drain takes the name of one node, as ddpctl status shows it");
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    control::DrainRequest request;
    request.set_node(call.words.back());
    return act(call, *job, request, &Stub::Drain);
}

// Only whether they are numbers is seen here; the leader knows which ones fit.
Result<std::string> ask_limits(const CtlCall& call) {
    control::LimitsRequest request;
    const struct {
        const char* name;
        void (control::LimitsRequest::*set)(std::int32_t);
        int least, most;
    } options[] = {
        {"min-nodes", &control::LimitsRequest::set_min_nodes, 1, rendezvous::kMostNodes},
        {"max-nodes", &control::LimitsRequest::set_max_nodes, 1, rendezvous::kMostNodes},
        {"max-restarts", &control::LimitsRequest::set_max_restarts, 0, rendezvous::kMostRestarts}};
    bool any = false;
    for (const auto& [name, set, least, most] : options) {
        if (!call.has(name)) continue;
        const auto number = read_int(call.value(name), least, most);
        if (!number)
            return usage_error("--" + std::string(name) + "=" + call.value(name) + ": " +
                               number.error().sentence());
        (request.*set)(*number);
        any = true;
    }
    if (!any)
        return usage_error("ddpctl limits takes --min-nodes=N, --max-nodes=N or --max-restarts=N");
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    return act(call, *job, request, &Stub::SetLimits);
}

Result<> ask_top(const CtlCall& call, const std::function<std::size_t()>& rows,
                 const std::function<bool(const std::string&)>& print) {
    const auto every = read_seconds(call.has("every") ? call.value("every") : "2");
    if (!every || *every < std::chrono::milliseconds{100})
        return usage_error("--every=" + call.value("every") + ": give 0.1 seconds or more");
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    StepRate rate;
    for (bool first = true;; first = false) {
        const auto now = job->look(first ? kLookWithin : kNextLeaderWithin);
        if (!now) {
            const std::string end = end_sentence(job->job());
            if (first || end.empty()) return now.error();
            if (!call.has("json")) print(printable(end) + "\n");
            return {};
        }
        const auto steps = rate.at(*now);
        if (!print(call.has("json") ? status_json(*now, -1) : top_text(*now, steps, rows())))
            return {};
        std::this_thread::sleep_for(*every);
    }
}

Result<> ask_events(const CtlCall& call, const std::function<bool(const std::string&)>& print) {
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    std::optional<control::StatusReply> before;
    bool is_read = true;
    const auto tell = [&](const control::StatusReply& now) {
        for (const rendezvous::JobEvent& event :
             rendezvous::events_between(before ? &*before : nullptr, now))
            is_read = is_read && print(call.has("json") ? rendezvous::event_json(event, now)
                                                        : rendezvous::event_text(event, now));
        before = now;
    };
    if (!call.has("follow")) {
        const auto now = job->status(kLookWithin);
        if (!now) return now.error();
        tell(*now);
        return {};
    }
    while (is_read) {
        const auto stub = job->connect(before ? kNextLeaderWithin : kLookWithin);
        // The end may have come between two leaders, and is in the ledger then.
        const std::string end = end_sentence(job->job());
        if (!stub && before && !end.empty()) {
            control::StatusReply last = *before;
            last.mutable_ended()->set_code(job->job().newest->end()->code);
            last.mutable_ended()->set_sentence(job->job().newest->end()->sentence);
            last.set_now(job->job().written.count());
            tell(last);
            return {};
        }
        if (!stub) return stub.error();
        grpc::ClientContext context;
        const auto stream = (*stub)->Watch(&context, {});
        control::StatusReply now;
        while (is_read && stream->Read(&now)) tell(now);
        if (!is_read) context.TryCancel();
        const grpc::Status status = stream->Finish();
        if (!is_read || (before && before->has_ended())) return {};
        if (!status.ok() && !passes(status)) return to_error(status);
        job->drop();
    }
    return {};
}

}  // namespace ddprun::launcher
