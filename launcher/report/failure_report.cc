// Makes the failure report from a job's ending and prints it as text.
#include "launcher/report/failure_report.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/death/exit_report.h"
#include "base/python_exception.h"
#include "base/utc_text.h"
#include "rendezvous/model/node_name.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Verdict;

// With leading zeros, to `width` digits.
std::string padded(long number, std::size_t width) {
    std::string text = std::to_string(number);
    return std::string(width - std::min(width, text.size()), '0') + text;
}

// `at` is the time of the first failure, `after` how much later this worker failed.
// Where there is no error file, the exception is looked for in the last lines.
FailureReport::Worker worker_of(const std::string& node, rendezvous::WorkerOutcome outcome,
                                Duration at, Duration after) {
    // Python ends with 1 by an exception. Other ends have other causes; a traceback above them was
    // caught.
    if (outcome.error.empty() && outcome.exit_code == 1)
        outcome.error = python_exception(outcome.tail);
    return {std::move(outcome), rendezvous::host_of(node), utc_text(at + after),
            std::chrono::duration<double>(after).count()};
}

// Builds the text line by line. The caller owns the lines.
class Text {
  public:
    explicit Text(std::vector<std::string>& lines) : lines_(lines) {}
    void rule(char c) { lines_.emplace_back(60, c); }
    void line(std::string text) { lines_.push_back(std::move(text)); }
    // torchrun's labels: ten characters, then a colon.
    void field(std::string label, const std::string& text) {
        label.resize(std::max<std::size_t>(label.size(), 10), ' ');
        line("  " + label + ": " + text);
    }
    // torchrun prints "<N/A>" for what it does not know. A row without content is left out here.
    void known(const char* label, const std::string& text) {
        if (!text.empty()) field(label, text);
    }

  private:
    std::vector<std::string>& lines_;
};

std::string exit_text(const FailureReport::Worker& worker) {
    const std::string code = worker.outcome.hung ? "<N/A>" : std::to_string(worker.exit_code());
    std::string text = code + " (pid: " + std::to_string(worker.outcome.pid) + ")";
    const std::string signal = worker.signal_name();
    if (!signal.empty()) text += "  (" + signal + ")";
    return text;
}

// The first block has torchrun's labels in torchrun's order; "meaning" and what follows are
// ddprun's own.
void say_worker(Text& text, const FailureReport::Worker& worker) {
    text.line("[0]:");
    text.field("time", worker.time);
    text.field("host", worker.node);
    text.field("rank", std::to_string(worker.outcome.rank) +
                           " (local_rank: " + std::to_string(worker.outcome.local_rank) + ")");
    text.field("exitcode", exit_text(worker));
    text.known("error_file", worker.outcome.error_file);
    text.known("traceback", worker.outcome.error);
    text.field("meaning", worker.outcome.sentence);
    for (const std::string& note : worker.outcome.remarks) text.field("note", note);
    if (!worker.outcome.stack.empty()) text.field("stacks", "where the slowest ranks are");
    for (const std::string& line : worker.outcome.stack) text.line("    " + line);
    if (worker.outcome.tail.empty()) return;
    text.field("output", worker.outcome.tail.size() == 1 ? "its last line" : "its last lines");
    for (const std::string& line : worker.outcome.tail) text.line("    " + line);
}

// "0.012 s later".
std::string later(double seconds) {
    const long ms = static_cast<long>(seconds * 1000 + 0.5);
    return std::to_string(ms / 1000) + "." + padded(ms % 1000, 3) + " s later";
}

// torchrun prints these before the root cause. Here they follow it, one line each: they failed only
// because of it.
void say_consequences(Text& text, const FailureReport& report) {
    text.line("Failures:");
    if (report.consequence_count == 0) return text.line("  <NO_OTHER_FAILURES>");
    text.line("  " + std::to_string(report.consequence_count) +
              (report.consequence_count == 1 ? " other worker" : " other workers") +
              " failed after it, as a consequence");
    int index = 0;
    for (const FailureReport::Worker& worker : report.consequences)
        text.line(
            "  [" + std::to_string(++index) + "]: rank " + std::to_string(worker.outcome.rank) +
            " (local_rank: " + std::to_string(worker.outcome.local_rank) + ") on " + worker.node +
            ", " + later(worker.seconds_after) + ", exitcode: " + exit_text(worker) +
            (worker.outcome.error.empty() ? "" : ": " + worker.outcome.error));
    if (report.consequence_count > index)
        text.line("  and " + std::to_string(report.consequence_count - index) + " more");
}

}  // namespace

std::string FailureReport::Worker::signal_name() const {
    return outcome.signal != 0 ? agent::signal_name(outcome.signal) : "";
}

std::optional<FailureReport> make_failure_report(const rendezvous::Ending& ending,
                                                 const ReportContext& context) {
    if (ending.verdict == Verdict::succeeded) return std::nullopt;
    FailureReport report;
    report.verdict = to_string(ending.verdict);
    report.code = ending.code;
    report.reason = ending.sentence;
    // Without a leader's word the ending has no time; then the time of the report is the best there
    // is.
    const Duration at = ending.at == Duration{} ? context.now : ending.at;
    report.time = utc_text(at);
    report.context = context;
    if (ending.generation != kNoGeneration) report.generation = ending.generation.value;
    if (ending.first_failure)
        report.first = worker_of(ending.first_failure_node, *ending.first_failure, at, {});
    if (ending.loss)
        report.lost = FailureReport::LostNode{rendezvous::host_of(ending.loss->node), report.time,
                                              ending.loss->sentence};
    for (const rendezvous::Consequence& one : ending.told_consequences)
        report.consequences.push_back(worker_of(one.node, one.outcome, at, one.after));
    report.consequence_count = ending.consequences;
    return report;
}

std::vector<std::string> report_lines(const FailureReport& report, const std::string& json_file) {
    // Without a first cause (a stop, a time-out) the reason in one line is all there is to say.
    if (!report.first && !report.lost) return {report.reason};
    std::vector<std::string> lines;
    Text text(lines);
    text.rule('=');
    text.line(report.context.program + " FAILED");
    text.rule('-');
    text.line("Root Cause (first observed failure):");
    if (report.first) {
        say_worker(text, *report.first);
    } else {
        text.field("time", report.lost->time);
        text.field("host", report.lost->node);
        text.field("meaning", report.lost->sentence);
    }
    text.rule('-');
    say_consequences(text, report);
    // The loss came after the first failure, so it stands with the consequences.
    if (report.first && report.lost) text.line("  and " + report.lost->sentence);
    text.rule('-');
    text.line("Job:");
    text.field("id", report.context.run_id);
    if (report.generation) text.field("generation", std::to_string(*report.generation));
    text.field("verdict", report.verdict + ": " + report.reason);
    text.field("exit code", std::to_string(report.code));
    if (!json_file.empty()) text.field("report", json_file);
    text.rule('=');
    return lines;
}

// The cause first, since a terminal may cut the line.
bool left_debugger(const FailureReport& report) {
    if (!report.first) return false;
    const rendezvous::WorkerOutcome& worker = report.first->outcome;
    return ended_in_debugger(worker.error, worker.tail);
}

std::string report_line(const FailureReport& report) {
    // The sentence of a worker already names rank and node.
    if (left_debugger(report)) return report.first->outcome.sentence + "; " + report.reason;
    if (report.first)
        return "first failure: " + report.first->outcome.sentence + "; " + report.reason;
    if (report.lost) return report.lost->sentence + "; " + report.reason;
    return report.reason;
}

}  // namespace ddprun::launcher
