// Finds the leader, and asks until there is an answer (ask_job.h).
#include "operator/ddpctl/ask_job.h"

#include <grpcpp/client_context.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/command_line/plain_values.h"
#include "base/loop/child_program.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "operator/ddpctl/meant_job.h"
#include "operator/ddpctl/recorded_status.h"
#include "operator/ddpctl/say.h"
#include "operator/ddpctl/survey.h"
#include "operator/ddpctl/whose_job.h"

namespace ddprun::launcher {
namespace {

constexpr std::size_t kMembersAsked = 16;
constexpr std::chrono::milliseconds kAskAgain{200};
constexpr Duration kOneCall = std::chrono::seconds{10};
// A job that is found by its ledger may record its end, or a next leader may begin to listen, just
// now. At an address that the user has given, a refusal is the answer.
constexpr Duration kNobodyListens = std::chrono::seconds{2};
constexpr Duration kSlurmAnswers = std::chrono::seconds{5};
constexpr Duration kTellOfWaiting = std::chrono::seconds{2};

// The name service needs shared libraries, which a static program does not have.
std::string own_name() {
    std::string name = "uid " + std::to_string(::getuid());
    for (const char* variable : {"LOGNAME", "USER"})
        if (const char* value = std::getenv(variable); value && *value) name = value;
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) == 0 && host[0]) name += std::string("@") + host;
    return name.substr(0, 200);
}

std::string ended_with(int code, const std::string& sentence) {
    return "the job has ended with code " + std::to_string(code) + ": " + sentence;
}

bool has_one_node(const FoundJob& job) {
    if (!job.newest) return false;
    const auto& members = job.newest->assignment.members;
    return members.size() == 1 && members.front().node == job.newest->at.node;
}

// Who wrote the newest entry, then the members of its generation: each knows the leader, or is it.
std::vector<rendezvous::CallTarget> nodes_of(const FoundJob& job) {
    if (job.only_socket) return {};
    if (!job.has_ledger()) return {{job.host, job.port}};
    const rendezvous::LedgerEntry& entry = *job.newest;
    std::vector<rendezvous::CallTarget> nodes;
    const auto add = [&nodes](const std::string& address, std::uint16_t port) {
        const rendezvous::CallTarget node{address, port};
        if (!address.empty() && port != 0 && std::ranges::find(nodes, node) == nodes.end())
            nodes.push_back(node);
    };
    add(entry.at.address, entry.at.port);
    for (const rendezvous::Member& member : entry.assignment.members)
        if (nodes.size() < kMembersAsked) add(member.offer.address, member.offer.service_port);
    // The workers of one node need no other address than loopback, and operators may be elsewhere.
    if (has_one_node(job))
        for (const std::string& address : entry.assignment.members.front().offer.addresses)
            if (!address.starts_with("fe80:")) add(address, entry.at.port);  // of one link only
    return nodes;
}

}  // namespace

Error to_error(const grpc::Status& status) {
    switch (status.error_code()) {
        case grpc::StatusCode::NOT_FOUND:
        case grpc::StatusCode::FAILED_PRECONDITION:
            return {ErrorCode::not_found, status.error_message()};
        case grpc::StatusCode::INVALID_ARGUMENT:
            return {ErrorCode::usage, status.error_message()};
        default:
            return {ErrorCode::unavailable,
                    (status.error_details().empty() ? "the job's leader does not answer: "
                                                    : "not at this moment: ") +
                        status.error_message()};
    }
}

bool passes(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

std::string end_sentence(const FoundJob& job) {
    const rendezvous::Ending* end = job.newest ? job.newest->end() : nullptr;
    return end ? ended_with(end->code, end->sentence) : "";
}

std::string end_sentence(const control::StatusReply& job) {
    return job.has_ended() ? ended_with(job.ended().code(), job.ended().sentence()) : "";
}

namespace {

// The job whose nodes meet there.
Result<FoundJob> at_endpoint(const CtlCall& call) {
    const std::string text = call.value("rdzv-endpoint");
    const auto endpoint = read_host_port(text);
    const Error wrong = usage_error(
        "--rdzv-endpoint=" + text + ": " +
        (endpoint ? "give HOST:PORT, as the job's nodes have it" : endpoint.error().sentence()));
    if (!endpoint || endpoint->host.empty() || endpoint->port.value_or(0) <= 0) return wrong;
    FoundJob job{call.has("rdzv-id") ? call.value("rdzv-id") : text, text};
    job.host = endpoint->host;
    job.port = static_cast<std::uint16_t>(*endpoint->port);
    job.run_id = call.value("rdzv-id");
    return job;
}

Result<FoundJob> by_name(const CtlCall& call) {
    if (call.has("rdzv-id"))
        return usage_error("--rdzv-id is for --rdzv-endpoint; --ledger names a job by its ledger");
    return find_meant(call, Wanted::may_run);
}

}  // namespace

Result<AskedJob> AskedJob::find(const CtlCall& call) {
    AskedJob asked;
    asked.by_ = own_name();
    if (call.has("secret-file")) {
        auto secret = rendezvous::read_secret_file(call.value("secret-file"));
        if (!secret) return secret.error();
        asked.secret_ = std::move(*secret);
    }
    auto job = call.has("rdzv-endpoint") ? at_endpoint(call) : by_name(call);
    if (!job) return job.error();
    if (!job->owner.empty())
        return Error(ErrorCode::refused, whose_sentence(job->name, job->owner, call));
    asked.job_ = std::move(*job);
    return asked;
}

// Only this job's folder is read. Another job may have begun there, and set this one's ledger
// aside.
Result<> AskedJob::read_ledger() {
    auto found = launcher::look_again(job_);
    if (!found)
        return Error(ErrorCode::not_found,
                     "the job has ended: its ledger is no longer at " + job_.path);
    job_ = std::move(*found);
    return {};
}

Result<> AskedJob::look_again() {
    if (const auto read = read_ledger(); !read) return read.error();
    if (!job_.fault.empty()) return Error(ErrorCode::unavailable, job_.fault);
    if (const std::string end = end_sentence(job_); !end.empty())
        return Error(ErrorCode::not_found, end);
    if (job_.has_ledger() && !job_.newest)
        return Error(ErrorCode::unavailable,
                     "the ledger " + job_.path + " does not say yet where the job's leader is");
    return {};
}

rendezvous::OperatorConnection::Target AskedJob::target(
    std::vector<rendezvous::CallTarget> nodes) const {
    rendezvous::IdentityConfig identity;
    identity.secret = secret_;
    if (job_.is_in_folder()) identity.folder = job_.path;
    const int requeue = job_.newest ? job_.newest->requeue : 0;
    return {std::move(nodes),
            identity,
            {{job_.run_id, {by_, Incarnation{random_number()}}, "ddpctl", requeue, {}}, job_.mark},
            has_one_node(job_)};
}

Result<AskedJob::Connection> AskedJob::connect_to(const rendezvous::CallTarget& node,
                                                  Duration limit) const {
    auto to =
        target(has_one_node(job_) ? nodes_of(job_) : std::vector<rendezvous::CallTarget>{node});
    to.opening.this_node = true;
    return rendezvous::OperatorConnection::open(std::move(to), limit);
}

namespace {

// What to do where nobody answers at all.
Error with_advice(const Error& why, bool suspended) {
    if (suspended)
        return {why.code(),
                "the job is suspended: Slurm has stopped its processes, and none "
                "answers until it is resumed (scontrol resume)"};
    return {why.code(),
            why.sentence() +
                ": its ddprun has ended without recording it, or cannot be reached from "
                "this host; squeue says whether it runs, ddpctl history what is recorded"};
}

}  // namespace

// Then Slurm has stopped all its processes, and none of them can answer.
bool AskedJob::is_suspended() {
    if (suspended_) return *suspended_;
    const auto listed =
        run_program_now({"squeue", "-h", "--me", "-t", "SUSPENDED", "-o", "%A"}, kSlurmAnswers);
    suspended_ = listed && listed->code == 0 && is_among(job_, listed->output);
    return *suspended_;
}

// Neither a secret nor a port is needed, so this comes first.
Result<> AskedJob::connect_here() {
    is_here_ = false;
    if (job_.socket.empty() || leads_elsewhere_)
        return Error(ErrorCode::not_found, "the job does not lead on this host");
    auto connection = rendezvous::OperatorConnection::open_private(job_.socket);
    if (!connection && connection.error().code() == ErrorCode::closed)
        return Error(ErrorCode::not_found, "the job has ended");
    if (!connection) return connection.error();
    connection_ = std::move(*connection);
    is_here_ = true;
    return {};
}

Result<AskedJob::Connection> AskedJob::connect_here_again() const {
    return rendezvous::OperatorConnection::open_private(job_.socket);
}

Result<> AskedJob::connect_once(Duration limit) {
    if (const auto looked = look_again(); !looked) return looked.error();
    if (const auto here = connect_here(); here || job_.only_socket) return here;
    const std::vector<rendezvous::CallTarget> nodes = nodes_of(job_);
    if (nodes.empty())
        return Error(ErrorCode::not_found,
                     "this job answers no operator: it has one node and was started with "
                     "--identity=none, or could not listen; stop it with scancel, or with SIGTERM "
                     "to its ddprun");
    auto connection = rendezvous::OperatorConnection::open(target(nodes), limit);
    if (!connection) {
        const ErrorCode code = connection.error().code();
        const bool nobody = code == ErrorCode::unavailable || code == ErrorCode::closed;
        if (code == ErrorCode::refused)
            return Error(code,
                         "this job answers only to its own user who has its secret: give the job's "
                         "--secret-file, or ask in the folder in which it was started (" +
                             connection.error().sentence() + ")");
        if (!nobody) return connection.error();
        return with_advice(connection.error(), is_suspended());
    }
    connection_ = std::move(*connection);
    return {};
}

// Whether a leader may answer soon where nobody did. `begun`: the first try.
bool AskedJob::may_come(const Error& why, Time begun) const {
    if (why.code() == ErrorCode::timed_out || why.code() == ErrorCode::unavailable) return true;
    if (why.code() != ErrorCode::closed) return false;
    if (has_answered_) return true;
    if (!job_.has_ledger()) return false;
    const bool all_were_asked = job_.newest->assignment.members.size() <= nodes_of(job_).size();
    return !all_were_asked || boot_now() < begun + kNobodyListens;
}

void AskedJob::tell_waiting(const Error& why, Time begun, Time until) {
    const Time now = boot_now();
    if (has_told_of_waiting_ || now < begun + kTellOfWaiting || now >= until) return;
    has_told_of_waiting_ = true;
    say(why.sentence() + "; asking again for up to " +
        to_text(std::chrono::ceil<std::chrono::seconds>(until - now)));
}

Result<AskedJob::Stub*> AskedJob::connect(Duration patience, NobodyLeads then) {
    const Time begun = boot_now(), until = begun + patience;
    while (!connection_) {
        const auto connected = connect_once(std::max<Duration>(until - boot_now(), kAskAgain));
        if (connected) break;
        const Error why = connected.error();
        const bool nobody_leads = why.code() == ErrorCode::timed_out;
        if (nobody_leads && then == NobodyLeads::tell) return why;
        if (nobody_leads && boot_now() >= until)
            return Error(ErrorCode::unavailable, "nobody leads now: " + why.sentence());
        const bool suspended = suspended_.value_or(false);
        if (suspended || !may_come(why, begun) || boot_now() >= until) return why;
        tell_waiting(why, begun, until);
        drop();
    }
    has_answered_ = true;
    has_told_of_waiting_ = false;
    return &connection_->stub();
}

void AskedJob::drop() {
    connection_.reset();
    std::this_thread::sleep_for(kAskAgain);
}

Result<> AskedJob::ask(const Ask& asked, Duration patience) {
    return ask(asked, patience, NobodyLeads::wait);
}

Result<> AskedJob::ask(const Ask& ask, Duration patience, NobodyLeads then) {
    const Time begun = boot_now(), until = begun + patience;
    for (;;) {
        const auto stub = connect(std::max<Duration>(until - boot_now(), Duration{0}), then);
        if (!stub) return stub.error();
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::duration_cast<std::chrono::milliseconds>(kOneCall));
        const grpc::Status status = ask(**stub, context);
        if (status.ok()) return {};
        // The kernel takes connections for a process that is stopped.
        if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && is_suspended())
            return with_advice(to_error(status), true);
        if (!passes(status) || boot_now() >= until) return to_error(status);
        leads_elsewhere_ = is_here_ && !job_.only_socket;
        tell_waiting(to_error(status), begun, until);
        drop();
    }
}

Result<control::StatusReply> AskedJob::status(Duration patience) {
    control::StatusReply reply;
    const auto asked = ask(
        [&](Stub& stub, grpc::ClientContext& context) { return stub.Status(&context, {}, &reply); },
        patience);
    if (!asked) return asked.error();
    return reply;
}

Result<control::StatusReply> AskedJob::look(Duration patience) {
    control::StatusReply reply;
    const auto asked = ask(
        [&](Stub& stub, grpc::ClientContext& context) { return stub.Status(&context, {}, &reply); },
        patience, NobodyLeads::tell);
    if (asked) return reply;
    if (asked.error().code() != ErrorCode::timed_out) return asked.error();
    return recorded_status(job_, asked.error().sentence(),
                           std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace ddprun::launcher
