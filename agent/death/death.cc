// Judges one worker's death: when it happened, how it counts, and what is said about it.
#include "agent/death/death.h"

#include <algorithm>

#include "agent/death/known_words.h"

namespace ddprun::agent {
namespace {

// An error file from outside the worker's life belongs to another process or has a wrong time.
bool was_written_in_life(const DeathFacts& facts) {
    return facts.error_written && !facts.error.empty() && *facts.error_written >= facts.started &&
           *facts.error_written <= facts.reaped;
}

// The most certain cause wins: what ddprun did itself, then what the kernel says, then known words
// in the output.
std::string cause_of(const DeathFacts& facts) {
    if (!facts.sent_signal.empty()) return "ddprun sent it: " + facts.sent_signal;
    if (!facts.memory_kill.empty()) return "out of memory: " + facts.memory_kill;
    return known_words(facts.error, facts.tail);
}

// Facts for the report that are not the cause.
std::vector<std::string> remarks_of(const DeathFacts& facts, bool cut_short) {
    std::vector<std::string> remarks;
    if (cut_short)
        remarks.push_back(
            "it had failed and was about to end when the stop reached it: counted as exit code " +
            std::to_string(facts.error_code));
    if (!facts.error_problem.empty()) remarks.push_back(facts.error_problem);
    if (facts.status.core && !facts.core_place.empty())
        remarks.push_back("core dump: " + facts.core_place);
    if (facts.memory_kill.empty() && facts.other_kills > 0)
        remarks.push_back("while it ran, the kernel killed " + std::to_string(facts.other_kills) +
                          (facts.other_kills == 1 ? " process" : " processes") +
                          " of its control group for lack of memory");
    return remarks;
}

}  // namespace

Death judge_death(DeathFacts facts) {
    const bool accounted = was_written_in_life(facts);
    // The worker had failed and written so before our stop reached it, and was then killed by our
    // signal. The failure is its own, so it counts as the exit code that was on its way, and not
    // as "killed by us".
    const bool cut_short = facts.stopped && accounted && *facts.error_written < *facts.stopped &&
                           facts.status.signal != 0;
    if (cut_short) facts.status = {.code = facts.error_code, .signal = 0, .core = false};
    Death death;
    // An early error file moves the death forward in time, but only for a worker that failed.
    death.at = accounted && facts.status.failed() ? *facts.error_written : facts.reaped;
    rendezvous::WorkerOutcome& outcome = death.outcome;
    outcome.rank = facts.rank;
    outcome.local_rank = facts.local_rank;
    outcome.pid = facts.pid;
    outcome.exit_code = facts.status.code;
    outcome.signal = facts.status.signal;
    outcome.sentence = exit_sentence(facts.status, {.rank = facts.rank,
                                                    .local_rank = facts.local_rank,
                                                    .node = facts.node,
                                                    .ran = death.at - facts.started,
                                                    .slurm_job_id = facts.slurm_job_id,
                                                    .stopped_by_us = facts.stopped && !cut_short,
                                                    .known_cause = cause_of(facts)});
    // A success needs no error, remarks or last lines.
    if (!facts.status.failed()) return death;
    outcome.error = facts.error;
    outcome.error_file = facts.error_file;
    outcome.core_dumped = facts.status.core;
    outcome.out_of_memory = !facts.memory_kill.empty();
    outcome.remarks = remarks_of(facts, cut_short);
    outcome.tail = bounded_tail(std::move(facts.tail), kTailBytes);
    return death;
}

// Goes backwards from the newest line. Each line counts one byte more, for its line end.
std::vector<std::string> bounded_tail(std::vector<std::string> lines, std::size_t bytes) {
    auto first = lines.end();
    while (first != lines.begin() && bytes > 0) {
        std::string& line = *--first;
        // The end of a line usually says more than its beginning.
        if (line.size() + 1 > bytes) line.erase(0, line.size() + 1 - bytes);
        bytes -= std::min(bytes, line.size() + 1);
    }
    lines.erase(lines.begin(), first);
    return lines;
}

}  // namespace ddprun::agent
