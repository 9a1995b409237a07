// The report of a job that did not succeed: one model, printed as text for people and as JSON for
// programs (failure_json.h). Pure.
//
// The text keeps torchrun's words where tools look for them: "Root Cause (first observed
// failure):", "rank      :", "exitcode  :", "error_file:", "traceback :", and a negative exit code
// for a signal. Times are UTC by the clock of the leader's host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/model/model.h"
#include "slurm/job_id.h"

namespace ddprun::launcher {

// What the reporting node knows besides the job's ending.
struct ReportContext {
    std::string run_id;
    std::string program;  // script, module or program, for the headline
    slurm::JobId slurm_job;
    std::string node;  // the reporting node
    Duration now{};    // time of day; used where the ending has no time of its own
    // Bytes of the workers' output that nobody read from this node's stdout and stderr.
    std::size_t unread_stdout = 0, unread_stderr = 0;
};

// All texts are ready to print; empty means unknown.
struct FailureReport {
    // One worker that failed, or the one that hung.
    struct Worker {
        rendezvous::WorkerOutcome outcome;
        std::string node, time;
        double seconds_after = 0;  // the first failure

        // Minus the signal's number where one ended it, as torchrun writes it.
        int exit_code() const { return outcome.signal != 0 ? -outcome.signal : outcome.exit_code; }
        std::string signal_name() const;  // "SIGKILL", or empty
    };
    struct LostNode {
        std::string node, time, sentence;
    };

    std::string verdict;  // "worker_failed", rendezvous::to_string(Verdict)
    int code = 0;         // the exit code of every node
    std::string reason;   // why the job ended
    std::string time;     // of the first cause, else of the report; UTC
    ReportContext context;
    std::optional<std::int64_t> generation;
    std::optional<Worker> first;
    std::optional<LostNode> lost;
    std::vector<Worker> consequences;  // the first few; consequence_count counts all
    int consequence_count = 0;
};

// Returns nothing after a success.
std::optional<FailureReport> make_failure_report(const rendezvous::Ending& ending,
                                                 const ReportContext& context);

// The full text, one element a line. `json_file` is named in it as the place of the JSON; empty:
// there is none.
std::vector<std::string> report_lines(const FailureReport& report, const std::string& json_file);
// A worker has ended in its debugger: a line is enough for the person who has left it.
bool left_debugger(const FailureReport& report);
// One line, for a node whose output appears beside that of the node with the full report.
std::string report_line(const FailureReport& report);

}  // namespace ddprun::launcher
