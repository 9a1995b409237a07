// What a ledger tells of a job's past, as people and as programs read it.
#include "operator/ddpctl/history_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {
namespace {

using namespace std::chrono_literals;
using rendezvous::LedgerHistory;
using rendezvous::Verdict;
using testing::HasSubstr;
using testing::Not;

// A restart, another leader, a requeue, and success.
LedgerHistory eventful() {
    LedgerHistory history{{dated_generation(0, 2s), with_phases(dated_generation(1, 3602s), 4s, 1s),
                           dated_takeover(3700s), dated_allocation(7202s),
                           dated_generation(2, 7232s), with_phases(dated_end(10832s), 5s, 0s)},
                          {}};
    history.entries[1].entry.restart.totals.restarts = 1;
    history.entries[1].entry.assignment.cause = "rank 3 (local 1 on n2) exited with 1";
    rendezvous::LedgerEntry& end = history.entries.back().entry;
    end.restart.totals = history.entries[1].entry.restart.totals;
    end.restart.totals.causes[0] = 1;
    end.time = {
        kToday, kToday + 10832s, true, true, {.waiting = 32s, .training = 10790s, .lost = 10s}};
    return history;
}
FoundJob begun_today(FoundJob job) {
    job.begun = kToday;
    return job;
}

TEST(HistoryText, TellsEachEntryAndWhereTheTimeWent) {
    const FoundJob job = begun_today(ended_job("lab.1.0", Verdict::succeeded, 0));
    EXPECT_EQ(history_text(job, eventful(), kToday + 5h), R"(lab.1.0: succeeded
2024-10-04T00:00:02.000Z  generation 0: 2 nodes, 4 workers, led by n1; cause: start
2024-10-04T01:00:02.000Z  generation 1: 2 nodes, 4 workers, led by n1; 1 of 3 restarts used up; cause: rank 3 (local 1 on n2) exited with 1
2024-10-04T01:01:40.000Z  n2 leads, generation 1 goes on
2024-10-04T02:00:02.000Z  allocation 1 begins on n1
2024-10-04T02:00:32.000Z  generation 2: 2 nodes, 4 workers, led by n1; 1 of 3 restarts used up; cause: start
2024-10-04T03:00:32.000Z  end: succeeded, exit code 0; all is well
of 3 h 00 m, 2 h 59 m were training that is kept (100 %)
restarts by cause: 1 failed worker
1 restart, 0 ms lost
lost in restarts: 0 ms detected, 0 ms told, 0 ms stopped, 0 ms gone, 0 ms met, 0 ms started, 0 ms store contact, 0 ms progress
)");
}

// Each change stands once, in the entry that has recorded it first.
TEST(HistoryText, TellsWhichLimitsWereSet) {
    LedgerHistory history = eventful();
    for (std::size_t i = 1; i < history.entries.size(); ++i)
        history.entries[i].entry.limits = {2, 4, 5, "alice@login1"};
    history.entries[4].entry.limits = history.entries[5].entry.limits = {3, 3, 5, "bob@login1"};
    const std::string text = history_text(running_job(), history, kToday + 5h);
    EXPECT_THAT(text, HasSubstr("exited with 1; limits set by alice@login1: 2 to 4 nodes, 5 "
                                "restarts\n"));
    EXPECT_THAT(text, HasSubstr("cause: start; limits set by bob@login1: 3 nodes, 5 restarts\n"));
    EXPECT_THAT(text, testing::ContainsRegex("generation 1 goes on\n"));
    const auto json = nlohmann::json::parse(history_json(running_job(), history));
    EXPECT_TRUE(json["entries"][0]["limits"].is_null());
    EXPECT_EQ(json["entries"][1]["limits"]["min_nodes"], 2);
    EXPECT_EQ(json["entries"][5]["limits"]["by"], "bob@login1");
}

TEST(HistoryText, OfAJobThatGoesOn) {
    const LedgerHistory history{{dated_generation(0, 2s)}, {}};
    const std::string text = history_text(begun_today(running_job()), history, kToday + 3 * kDay);
    EXPECT_THAT(text, HasSubstr("lab.8812.0: no end; last entry "));
    EXPECT_THAT(text, Not(HasSubstr("restart")));
}

TEST(HistoryText, OfALedgerWithoutEntries) {
    EXPECT_EQ(history_text(new_job("lab.1.0"), {}, kToday), "lab.1.0: no generation yet\n");
}

// What can be read is told, and why the rest cannot.
TEST(HistoryText, TellsWhatIsMissing) {
    LedgerHistory history = eventful();
    history.fault = Error(ErrorCode::malformed, "ledger entry 7 has vanished");
    EXPECT_THAT(history_text(begun_today(running_job()), history, kToday),
                HasSubstr("\nledger entry 7 has vanished\n"));
}

// Causes come from programs of the job.
TEST(HistoryText, CommandsNoTerminal) {
    LedgerHistory history = eventful();
    history.entries[1].entry.assignment.cause = "\x1b[2J\nforged\xff";
    EXPECT_THAT(history_text(running_job("\x1b"), history, kToday), Not(HasSubstr("\x1b")));
    EXPECT_TRUE(nlohmann::json::accept(history_json(running_job("\xff"), history)));
}

TEST(HistoryJson, HasAllOfIt) {
    const auto json = nlohmann::json::parse(
        history_json(begun_today(ended_job("lab.1.0", Verdict::succeeded, 0)), eventful()));
    EXPECT_EQ(json["format"], "ddpctl history");
    EXPECT_EQ(json["version"], 1);
    EXPECT_EQ(json["state"], "succeeded");
    EXPECT_EQ(json["begun"], "2024-10-04T00:00:00.000Z");
    ASSERT_EQ(json["entries"].size(), 6u);
    const auto& restart = json["entries"][1];
    EXPECT_EQ(restart["kind"], "generation");
    EXPECT_EQ(restart["at"], "2024-10-04T01:00:02.000Z");
    EXPECT_EQ(restart["cause"], "rank 3 (local 1 on n2) exited with 1");
    EXPECT_EQ(restart["nodes"][1]["name"], "n2");
    EXPECT_EQ(restart["nodes"][1]["first_rank"], 2);
    EXPECT_EQ(restart["restart_seconds"]["detected"], 1.0);
    EXPECT_EQ(restart["start_before_seconds"]["started"], 4.0);
    EXPECT_EQ(json["entries"][2]["kind"], "takeover");
    EXPECT_EQ(json["entries"][3]["kind"], "allocation");
    EXPECT_EQ(json["entries"][3]["restart_count"], 1);
    EXPECT_EQ(json["entries"][5]["verdict"], "succeeded");
    double all = 0;
    for (const auto& part : json["seconds"]) all += part.get<double>();
    EXPECT_DOUBLE_EQ(all, 10832);
    EXPECT_EQ(json["restarts_by_cause"]["worker"], 1);
    EXPECT_TRUE(json["fault"].is_null());
}

}  // namespace
}  // namespace ddprun::launcher
