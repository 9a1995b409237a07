// Writes the failure report as JSON, in ddprun's form and in torchrun's.
#include "launcher/report/failure_json.h"

#include <nlohmann/json.hpp>

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

// An unknown field is null, never an empty text.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// `replace`: a worker may have printed bytes that are not UTF-8, and dump() would throw.
std::string dump(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json json_of(const FailureReport::Worker& worker) {
    const rendezvous::WorkerOutcome& outcome = worker.outcome;
    return {{"time", worker.time},
            {"node", worker.node},
            {"rank", outcome.rank},
            {"local_rank", outcome.local_rank},
            {"pid", outcome.pid},
            // A worker that hung has not exited.
            {"exit_code", outcome.hung ? Json() : Json(worker.exit_code())},
            {"signal", text_or_null(worker.signal_name())},
            {"sentence", outcome.sentence},
            {"error", text_or_null(outcome.error)},
            {"error_file", text_or_null(outcome.error_file)},
            {"core_dumped", outcome.core_dumped},
            {"out_of_memory", outcome.out_of_memory},
            {"notes", outcome.remarks}};
}

// The first failure has two fields more than its consequences: output and stacks explain the cause.
Json first_of(const FailureReport& report) {
    if (!report.first) return {};
    const rendezvous::WorkerOutcome& outcome = report.first->outcome;
    Json json = json_of(*report.first);
    json["last_lines"] = outcome.tail;
    if (!outcome.hung) return json;
    json["hung"] = true;
    json["stack"] = outcome.stack;
    return json;
}

Json lost_of(const FailureReport& report) {
    if (!report.lost) return {};
    return {{"time", report.lost->time},
            {"node", report.lost->node},
            {"sentence", report.lost->sentence}};
}

}  // namespace

std::string failure_json(const FailureReport& report) {
    Json consequences = Json::array();
    for (const FailureReport::Worker& worker : report.consequences) {
        Json one = json_of(worker);
        one["seconds_after"] = worker.seconds_after;
        consequences.push_back(std::move(one));
    }
    return dump(
        {{"format", "ddprun failure report"},
         {"version", kFailureJsonVersion},
         {"verdict", report.verdict},
         {"exit_code", report.code},
         {"reason", report.reason},
         {"time", report.time},
         {"run_id", report.context.run_id},
         {"program", report.context.program},
         {"slurm_job_id", text_or_null(report.context.slurm_job.number())},
         {"slurm_job", text_or_null(report.context.slurm_job.spelled())},
         {"reported_by", report.context.node},
         {"unread_bytes",
          {{"stdout", report.context.unread_stdout}, {"stderr", report.context.unread_stderr}}},
         {"generation", report.generation ? Json(*report.generation) : Json()},
         {"first_failure", first_of(report)},
         {"lost_node", lost_of(report)},
         {"consequence_count", report.consequence_count},
         {"consequences", std::move(consequences)}},
        2);
}

std::string torchrun_error_json(const FailureReport& report, Duration now) {
    // The most specific text that is known: the worker's exception, else what ended it, else the
    // lost node.
    std::string message = report.reason;
    if (report.lost) message = report.lost->sentence;
    if (report.first)
        message = report.first->outcome.error.empty() ? report.first->outcome.sentence
                                                      : report.first->outcome.error;
    // Names and nesting below are torchrun's; its timestamp is a text as well. A hung worker has no
    // exit code.
    const bool exited = report.first && !report.first->outcome.hung;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    return dump(
        {{"message",
          {{"message", message},
           {"errorCode", exited ? report.first->exit_code() : report.code},
           {"extraInfo",
            {{"py_callstack", report_line(report)}, {"timestamp", std::to_string(seconds)}}}}}},
        -1);
}

}  // namespace ddprun::launcher
