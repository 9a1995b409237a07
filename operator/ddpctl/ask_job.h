// Asks the leader of a running job, or one of its nodes. The address comes from the newest entry of
// the job's ledger, or from --rdzv-endpoint, the secret from where the job's nodes have it. While
// no leader answers, because one was just lost, the ledger is read and asked again: every request
// of proto/control.proto can be repeated. It is always the same job that is asked, also if another
// one begins in the same folder. Who only looks is told that nobody leads now, and does not wait
// (look()). Where nobody listens from the beginning, nobody waits. Who waits for longer than a
// moment says so on standard error, once until there is an answer.
//
// Thread: blocks its caller.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/control/operator_connection.h"
#include "operator/ddpctl/ctl_call.h"
#include "operator/ddpctl/found_job.h"
#include "rendezvous/link/call_target.h"

namespace ddprun::launcher {

class AskedJob {
  public:
    using Stub = control::Control::Stub;
    using Ask = std::function<grpc::Status(Stub&, grpc::ClientContext&)>;

    // Finds the job that the options --ledger, --rdzv-endpoint and --secret-file mean: of several
    // the one without an end. Possible errors: those of survey_ledgers, choose_job and
    // read_secret_file.
    static Result<AskedJob> find(const CtlCall& call);

    // Possible errors: not_found (the job has ended, has no such node, or does not do it; the
    // sentence says why), unavailable (nobody answers within `patience`), closed (nobody has
    // answered this object yet, and nobody listens: no waiting helps), refused (the secret), usage.
    Result<> ask(const Ask& ask, Duration patience);
    Result<control::StatusReply> status(Duration patience);
    // The same. While nodes of the job answer and none of them leads, it is what the ledger tells
    // (recorded_status.h), at once.
    Result<control::StatusReply> look(Duration patience);

    // Connects to who leads now. The connection is kept until drop(), which waits a moment before
    // the next try. With `tell`, possible errors also: timed_out (nobody leads now).
    enum class NobodyLeads { wait, tell };
    Result<Stub*> connect(Duration patience, NobodyLeads then = NobodyLeads::wait);
    void drop();

    // Reads the ledger again. Possible errors: not_found (the job has ended or its ledger is gone),
    // unavailable.
    Result<> look_again();
    // Connects to one node of the job, whether it leads or not, for its service Workers. Possible
    // errors: unavailable, closed (the node does not listen), refused (the secret).
    using Connection = std::unique_ptr<rendezvous::OperatorConnection>;
    Result<Connection> connect_to(const rendezvous::CallTarget& node, Duration limit) const;
    // Whether the leader was asked on this host, and the same for its own workers.
    bool is_here() const { return is_here_; }
    Result<Connection> connect_here_again() const;

    const FoundJob& job() const { return job_; }
    const std::string& by() const { return by_; }  // "alice@login1"

  private:
    AskedJob() = default;
    Result<> ask(const Ask& ask, Duration patience, NobodyLeads then);
    Result<> read_ledger();
    bool may_come(const Error& why, Time begun) const;
    void tell_waiting(const Error& why, Time begun, Time until);
    rendezvous::OperatorConnection::Target target(std::vector<rendezvous::CallTarget> nodes) const;
    Result<> connect_once(Duration limit);
    Result<> connect_here();
    bool is_suspended();

    SecretText secret_;
    std::string by_;
    FoundJob job_;
    std::unique_ptr<rendezvous::OperatorConnection> connection_;
    bool is_here_ = false;              // connection_ goes through the private socket
    bool leads_elsewhere_ = false;      // what has answered there leads no more
    bool has_answered_ = false;         // a leader, to this object
    bool has_told_of_waiting_ = false;  // since the last answer
    std::optional<bool> suspended_;     // what Slurm has said when nobody answered
};

Error to_error(const grpc::Status& status);
// Whether asking again may help.
bool passes(const grpc::Status& status);

// "the job has ended with code 143: stopped by …"; empty: no end is recorded.
std::string end_sentence(const FoundJob& job);
std::string end_sentence(const control::StatusReply& job);

}  // namespace ddprun::launcher
