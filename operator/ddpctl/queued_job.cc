// Reads squeue's list, and cancels a job in it (queued_job.h).
#include "operator/ddpctl/queued_job.h"

#include <chrono>

#include "base/loop/child_program.h"
#include "operator/ddpctl/recorded_status.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kQueuedPhase = "pending";
constexpr Duration kQueueAnswers = std::chrono::seconds{5};
constexpr Duration kCancelAnswers = std::chrono::seconds{20};

// Removes the text up to the next bar from `line`, and returns it.
std::string take_field(std::string_view& line) {
    const std::size_t end = std::min(line.find('|'), line.size());
    const std::string field(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    return field;
}

}  // namespace

std::optional<QueuedJob> find_queued(const FoundJob& job, std::string_view listed) {
    while (!listed.empty()) {
        const std::size_t end = std::min(listed.find('\n'), listed.size());
        std::string_view line = listed.substr(0, end);
        listed.remove_prefix(std::min(end + 1, listed.size()));
        const std::string number = take_field(line);
        QueuedJob queued;
        queued.spelled = take_field(line);
        queued.start = take_field(line);
        queued.reason = take_field(line);
        if (queued.start == "N/A") queued.start.clear();
        if (!queued.spelled.empty() && is_among(job, number)) return queued;
    }
    return std::nullopt;
}

std::string queued_sentence(const QueuedJob& queued) {
    return "job " + queued.spelled + " waits in Slurm's queue (" + queued.reason + "), " +
           (queued.start.empty() ? "and Slurm does not know yet when it starts"
                                 : "and can start at " + queued.start);
}

control::StatusReply queued_status(const FoundJob& job, const QueuedJob& queued, Duration now) {
    control::StatusReply reply = status_of_ledger(job, now);
    reply.set_phase(kQueuedPhase);
    reply.set_waiting_for("PENDING: " + queued_sentence(queued));
    return reply;
}

bool is_queued(const control::StatusReply& job) { return job.phase() == kQueuedPhase; }

std::optional<QueuedJob> ask_queue(const FoundJob& job) {
    const auto listed = run_program_now(
        {"squeue", "-h", "--me", "-t", "PENDING", "-o", "%A|%i|%S|%r"}, kQueueAnswers);
    if (!listed || listed->code != 0) return std::nullopt;
    return find_queued(job, listed->output);
}

Result<> cancel_queued(const QueuedJob& queued) {
    const auto done =
        run_program_now({"scancel", "--state=PENDING", queued.spelled}, kCancelAnswers);
    if (!done) return Error(ErrorCode::unavailable, "scancel: " + done.error().sentence());
    if (done->code == 0) return {};
    return Error(ErrorCode::unavailable,
                 "scancel " + queued.spelled + " ended with " + std::to_string(done->code));
}

}  // namespace ddprun::launcher
