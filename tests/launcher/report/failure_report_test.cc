// The report of a failed job as text and as JSON, from one model. Pure. The golden files lie in
// tests/data/failures and are rewritten with DDPRUN_REWRITE=1. People and tools search the text for
// torchrun's words, so a change of it must be seen in a diff.
#include "launcher/report/failure_report.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launcher/report/failure_json.h"
#include "tests/support/builders.h"

using namespace ddprun;
using namespace ddprun::launcher;
using namespace ddprun::test;
using rendezvous::Ending;
using rendezvous::Verdict;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// A job of Slurm, reported on gpu01. `now` differs from the time of the failure, so that a mix-up
// shows.
const ReportContext kContext{
    .run_id = "job",
    .program = "train.py",
    .slurm_job = slurm::JobId(std::map<std::string, std::string>{{"SLURM_JOB_ID", "8812"}}),
    .node = "gpu01",
    .now = sec(1'900'000'000)};

// Rank 13 has everything that can be known of a death. Two others followed: one is described, the
// other is only counted.
Ending failed() {
    Ending end = ending(Verdict::worker_failed, 139, "restart 3 of 3 used up");
    rendezvous::WorkerOutcome first = killed(13, 11);
    first.local_rank = 5, first.pid = 4711;
    first.error = "ValueError: no data", first.error_file = "/logs/5/error.json";
    first.core_dumped = true, first.remarks = {"core dump: /data/core.4711"};
    first.tail = {"loading", "", "Traceback"};
    end.first_failure = first;
    end.first_failure_node = "gpu01";
    end.generation = Generation{2};
    end.at = sec(1'800'000'000.25);
    end.consequences = 2;
    rendezvous::WorkerOutcome later = exited(2, 1, "RuntimeError: closed by peer");
    later.pid = 12;
    end.told_consequences = {{"gpu02", later, sec(0.0124)}};
    return end;
}

std::string text_of(const FailureReport& report) {
    std::string all;
    for (const std::string& line : report_lines(report, "/logs/failure.json")) all += line + "\n";
    return all;
}

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(DDPRUN_TEST_DATA "/failures/") + name;
    if (std::getenv("DDPRUN_REWRITE")) std::ofstream(path) << text;
    std::ostringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, golden.str()) << path;
}

}  // namespace

TEST(FailureReport, SaysNothingAfterASuccess) {
    EXPECT_FALSE(make_failure_report(ending(Verdict::succeeded, 0, "all succeeded"), kContext));
}

TEST(FailureReport, TellsTheWholeStory) {
    const auto report = make_failure_report(failed(), kContext);
    expect_golden("model.txt", text_of(*report));
    expect_golden("model.json", failure_json(*report));
}

// In a Slurm step the output of all nodes comes together, so only the leader prints the whole
// report.
TEST(FailureReport, IsOneLineBesideTheWholeOne) {
    EXPECT_EQ(report_line(*make_failure_report(failed(), kContext)),
              "first failure: rank 13 was killed by signal 11; restart 3 of 3 used up");
}

// Who has left a debugger knows what it was.
TEST(FailureReport, IsOneLineAfterADebugger) {
    Ending end = failed();
    EXPECT_FALSE(left_debugger(*make_failure_report(end, kContext)));
    end.sentence = "no restart";
    end.first_failure->error = "bdb.BdbQuit";
    end.first_failure->sentence = "rank 13 exited with 1";
    const auto report = make_failure_report(end, kContext);
    EXPECT_TRUE(left_debugger(*report));
    EXPECT_EQ(report_line(*report), "rank 13 exited with 1; no restart");
}

// Nobody failed: the reason is all there is. The time is that of the report (2030), as there is no
// other.
TEST(FailureReport, SaysTheReasonWhereNoWorkerFailed) {
    const auto report =
        make_failure_report(ending(Verdict::unavailable, 69, "too few nodes"), kContext);
    EXPECT_THAT(report_lines(*report, ""), ElementsAre("too few nodes"));
    const auto json = nlohmann::json::parse(failure_json(*report));
    EXPECT_EQ(json["verdict"], "unavailable");
    EXPECT_TRUE(json["first_failure"].is_null());
    EXPECT_EQ(json["time"], "2030-03-17T17:46:40.000Z") << "of the report";
}

// The user has to look at gpu02, and not at "1 of 2 nodes came".
TEST(FailureReport, NamesALostNodeAsTheCause) {
    Ending end = ending(Verdict::unavailable, 69, "1 of 2 nodes came within 10 m 00 s");
    end.loss = {"gpu02", "node gpu02 is gone: its ddprun has ended"};
    const auto report = make_failure_report(end, kContext);
    EXPECT_THAT(text_of(*report), HasSubstr("  meaning   : node gpu02 is gone"));
    EXPECT_EQ(nlohmann::json::parse(failure_json(*report))["lost_node"]["node"], "gpu02");
}

// Most scripts write no error file, but Python prints the exception last. What is not known has no
// row.
TEST(FailureReport, TakesTheExceptionFromTheLastLines) {
    Ending end = failed();
    end.first_failure->error = end.first_failure->error_file = "";
    end.first_failure->tail = {"  File \"train.py\", line 7, in <module>", "KeyError: 'x'"};
    EXPECT_THAT(text_of(*make_failure_report(end, kContext)),
                testing::Not(HasSubstr("traceback : ")))
        << "a signal ended it; the exception was caught before";
    end.first_failure->signal = 0;
    end.first_failure->exit_code = 1;
    const auto report = make_failure_report(end, kContext);
    EXPECT_THAT(text_of(*report), HasSubstr("  traceback : KeyError: 'x'\n  meaning "));
    EXPECT_THAT(text_of(*report), testing::Not(HasSubstr("error_file")));
    EXPECT_EQ(nlohmann::json::parse(failure_json(*report))["first_failure"]["error"],
              "KeyError: 'x'");
    end.first_failure->tail.clear();
    const auto bare = text_of(*make_failure_report(end, kContext));
    EXPECT_THAT(bare, testing::Not(HasSubstr("<N/A>")));
    EXPECT_THAT(bare, testing::Not(HasSubstr("traceback ")));
    EXPECT_THAT(bare, testing::Not(HasSubstr("output ")));
}

// A worker prints any bytes. JSON is UTF-8 all the same, or no program could read the report.
TEST(FailureReport, IsJsonWhateverAWorkerPrints) {
    Ending end = failed();
    end.first_failure->tail = {"\xff\xfe\x01\"\\"};
    end.first_failure->error = "\xc3";
    EXPECT_TRUE(nlohmann::json::accept(failure_json(*make_failure_report(end, kContext))));
}

// A hung job has no exit code. Where the slowest ranks are is what the user needs.
TEST(FailureReport, TellsWhereAHungJobStands) {
    Ending end = ending(Verdict::worker_failed, kHungCode, "restart 1 of 1 used up");
    end.first_failure = exited(3, 0);
    end.first_failure->sentence = "no rank has made progress for 35.0 s";
    end.first_failure->hung = true;
    end.first_failure->stack = {"rank 3 (local 1 on gpu02), at step 7:", "    thread 812 sleeps"};
    const auto report = make_failure_report(end, kContext);
    EXPECT_THAT(text_of(*report), HasSubstr("  stacks    : where the slowest ranks are\n"
                                            "    rank 3 (local 1 on gpu02), at step 7:\n"
                                            "        thread 812 sleeps"));
    const auto json = nlohmann::json::parse(failure_json(*report));
    EXPECT_EQ(json["first_failure"]["hung"], true);
    EXPECT_EQ(json["first_failure"]["stack"].size(), 2u);
    // The worker lived, so there is no code of its own.
    EXPECT_THAT(text_of(*report), HasSubstr("  exitcode  : <N/A> (pid: "));
    EXPECT_EQ(json["first_failure"]["exit_code"], nullptr);
    const auto above = nlohmann::json::parse(torchrun_error_json(*report, kContext.now));
    EXPECT_EQ(above["message"]["errorCode"], kHungCode);
}

// The file that TORCHELASTIC_ERROR_FILE names, in torchrun's form: a signal is a negative code, and
// the time is that of the writing.
TEST(FailureReport, IsWhatASchedulerAboveReads) {
    const auto json = nlohmann::json::parse(
        torchrun_error_json(*make_failure_report(failed(), kContext), kContext.now));
    EXPECT_EQ(json["message"]["message"], "ValueError: no data");
    EXPECT_EQ(json["message"]["errorCode"], -11);
    EXPECT_EQ(json["message"]["extraInfo"]["timestamp"], "1900000000");
}
