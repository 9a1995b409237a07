// Finds the leader, and asks until there is an answer (ask_job.h).
#include "launcher/ctl/ask_job.h"

#include <grpcpp/client_context.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "launcher/ctl/survey.h"

namespace ddprun::launcher {
namespace {

constexpr std::size_t kMembersAsked = 16;
constexpr std::chrono::milliseconds kAskAgain{200};
constexpr Duration kOneCall = std::chrono::seconds{10};

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

bool has_one_node(const rendezvous::LedgerEntry& entry) {
    const auto& members = entry.assignment.members;
    return members.size() == 1 && members.front().node == entry.at.node;
}

// Who wrote the newest entry, then the members of its generation: each knows the leader, or is it.
std::vector<rendezvous::CallTarget> nodes_of(const rendezvous::LedgerEntry& entry) {
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
    if (has_one_node(entry))
        for (const std::string& address : entry.assignment.members.front().offer.addresses)
            if (!address.starts_with("fe80:")) add(address, entry.at.port);  // of one link only
    return nodes;
}

}  // namespace

SlurmNames own_slurm_names() {
    const auto value = [](const char* name) {
        const char* text = std::getenv(name);
        return std::string(text ? text : "");
    };
    return {value("SLURM_JOB_ID"), value("SLURM_STEP_ID")};
}

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

Result<AskedJob> AskedJob::find(const CtlCall& call) {
    AskedJob asked;
    asked.by_ = own_name();
    if (call.has("secret-file")) {
        auto secret = rendezvous::read_secret_file(call.value("secret-file"));
        if (!secret) return secret.error();
        asked.secret_ = std::move(*secret);
    }
    const auto survey = survey_ledgers(call.value("ledger"));
    if (!survey) return survey.error();
    auto job = choose_job(survey->jobs, own_slurm_names(), survey->folder, Wanted::may_run);
    if (!job) return job.error();
    asked.job_ = std::move(*job);
    return asked;
}

// Only this job's folder is read. Another job may have begun there, and set this one's ledger
// aside.
Result<> AskedJob::read_ledger() {
    const auto survey = survey_ledgers(job_.path);
    const bool is_there = survey && !survey->jobs.empty();
    if (!is_there || (job_.mark != 0 && survey->jobs.front().mark != job_.mark))
        return Error(ErrorCode::not_found,
                     "the job has ended: its ledger is no longer at " + job_.path);
    job_ = survey->jobs.front();
    return {};
}

Result<> AskedJob::look_again() {
    if (const auto read = read_ledger(); !read) return read.error();
    if (!job_.fault.empty()) return Error(ErrorCode::unavailable, job_.fault);
    if (const std::string end = end_sentence(job_); !end.empty())
        return Error(ErrorCode::not_found, end);
    if (!job_.newest)
        return Error(ErrorCode::unavailable,
                     "the ledger " + job_.path + " does not say yet where the job's leader is");
    return {};
}

rendezvous::OperatorConnection::Target AskedJob::target(
    std::vector<rendezvous::CallTarget> nodes) const {
    rendezvous::IdentityConfig identity;
    identity.secret = secret_;
    identity.folder = job_.path;
    return {
        std::move(nodes),
        identity,
        {{"", {by_, Incarnation{random_number()}}, "ddpctl", job_.newest->requeue, {}}, job_.mark},
        has_one_node(*job_.newest)};
}

Result<AskedJob::Connection> AskedJob::connect_to(const rendezvous::Offer& node,
                                                  Duration limit) const {
    auto to = target(has_one_node(*job_.newest)
                         ? nodes_of(*job_.newest)
                         : std::vector<rendezvous::CallTarget>{{node.address, node.service_port}});
    to.opening.this_node = true;
    return rendezvous::OperatorConnection::open(std::move(to), limit);
}

Result<> AskedJob::connect_once(Duration limit) {
    if (const auto looked = look_again(); !looked) return looked.error();
    const std::vector<rendezvous::CallTarget> nodes = nodes_of(*job_.newest);
    if (nodes.empty())
        return Error(ErrorCode::not_found,
                     "this job answers no operator: it has one node and was started with "
                     "--identity=none, or could not listen; stop it with scancel, or with SIGTERM "
                     "to its ddprun");
    auto connection = rendezvous::OperatorConnection::open(target(nodes), limit);
    if (!connection) return connection.error();
    connection_ = std::move(*connection);
    return {};
}

Result<AskedJob::Stub*> AskedJob::connect(Duration patience) {
    const Time until = boot_now() + patience;
    while (!connection_) {
        const auto connected = connect_once(std::max<Duration>(until - boot_now(), kAskAgain));
        if (connected) break;
        const bool may_pass = connected.error().code() == ErrorCode::unavailable;
        if (!may_pass || boot_now() >= until) return connected.error();
        drop();
    }
    return &connection_->stub();
}

void AskedJob::drop() {
    connection_.reset();
    std::this_thread::sleep_for(kAskAgain);
}

Result<> AskedJob::ask(const Ask& ask, Duration patience) {
    const Time until = boot_now() + patience;
    for (;;) {
        const auto stub = connect(std::max<Duration>(until - boot_now(), Duration{0}));
        if (!stub) return stub.error();
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::duration_cast<std::chrono::milliseconds>(kOneCall));
        const grpc::Status status = ask(**stub, context);
        if (status.ok()) return {};
        if (!passes(status) || boot_now() >= until) return to_error(status);
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

}  // namespace ddprun::launcher
