// The report of a job that did not succeed: one model, from which come the text that people read
// and the JSON that programs do (failure_json.h). Pure.
//
// The text has torchrun's words where tools look for them: "Root Cause (first observed failure):",
// "rank      :", "exitcode  :", "error_file:", "traceback :", and a signal as a negative exit code.
// Times are UTC, by the clock of the leader's host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "rendezvous/model/model.h"

namespace ddprun::launcher {

// What the node that reports knows of the job beside its ending.
struct ReportContext {
    std::string run_id;
    std::string program;  // script, module or program
    std::string slurm_job_id;
    std::string node;  // this one
    Duration now{};    // time of day, for what has no time of its own
    // Bytes of the workers' output that nobody has read from this node's stdout and stderr.
    std::size_t unread_stdout = 0, unread_stderr = 0;
};

struct FailureReport {
    struct Worker {
        std::string node, time;
        int rank = 0, local_rank = 0;
        std::int64_t pid = 0;
        int exit_code = 0;        // minus the signal's number, as torchrun has it
        std::string signal_name;  // "SIGKILL", or empty
        std::string sentence, error, error_file;
        bool core_dumped = false, out_of_memory = false;
        std::vector<std::string> notes, last_lines;
        bool hung = false;               // it lived, and made no progress
        std::vector<std::string> stack;  // then: where it and the next slowest were
        double seconds_after = 0;        // the first failure
    };
    struct LostNode {
        std::string node, time, sentence;
    };

    std::string verdict;  // "worker_failed"
    int code = 0;         // that every node exits with
    std::string reason;   // why the job ended
    std::string time;     // of the first cause, else of the report
    ReportContext context;
    std::optional<std::int64_t> generation;
    std::optional<Worker> first;
    std::optional<LostNode> lost;
    std::vector<Worker> consequences;  // the first of them
    int consequence_count = 0;
};

// Nothing after a success.
std::optional<FailureReport> make_failure_report(const rendezvous::Ending& ending,
                                                 const ReportContext& context);

// In full, one element a line. `json_file` is where the same is kept for programs; empty: nowhere.
std::vector<std::string> report_lines(const FailureReport& report, const std::string& json_file);
// In one line, for nodes whose output stands beside that of the one that says all.
std::string report_line(const FailureReport& report);

// "2026-11-21T19:35:30.123Z".
std::string utc_text(Duration since_1970);

}  // namespace ddprun::launcher
