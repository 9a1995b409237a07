// The list of jobs, as people and as programs read it.
#include "operator/ddpctl/jobs_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/operator/ddpctl/examples.h"

namespace ddprun::launcher {
namespace {

using rendezvous::Verdict;
using testing::HasSubstr;
using testing::Not;

const std::vector<FoundJob> kShownJobs = {ended_job("lab.1.0", Verdict::succeeded, 0),
                                          ended_job("lab.2.0", Verdict::worker_failed, 7),
                                          ended_job("lab.3.0", Verdict::work_left, 75),
                                          running_job("lab.4.0"),
                                          new_job("lab.5.0"),
                                          unreadable_job("lab.6.0")};

TEST(JobsText, IsATable) {
    EXPECT_EQ(
        jobs_text(kShownJobs, ".ddprun", kToday, false),
        R"(NAME     STATE                       GENERATION  RESTARTS      SIZE  BEGUN              ENDED
lab.1.0  succeeded                            4         3  20.0 KiB  2024-09-24 00:00Z  2024-10-02 00:00Z
lab.2.0  failed with 7                        4         3  20.0 KiB  2024-09-24 00:00Z  2024-10-02 00:00Z
lab.3.0  stopped with work left               4         3  20.0 KiB  2024-09-24 00:00Z  2024-10-02 00:00Z
lab.4.0  no end; last entry 2 d ago           4         3  20.0 KiB  2024-09-24 00:00Z  -
lab.5.0  no generation yet                    -         -  20.0 KiB  2024-09-24 00:00Z  -
lab.6.0  cannot be read                       -         -  20.0 KiB  2024-09-24 00:00Z  -
6 ledgers, 120.0 KiB in .ddprun
lab.6.0: ledger folder .ddprun/lab.6.0 has a file that no ledger has: notes.txt
)");
    EXPECT_EQ(jobs_text({}, ".ddprun", kToday, false), "no job has a ledger in .ddprun\n");
}

// Colours take no room in the table, and there are none unless asked for.
TEST(JobsText, ColoursTheState) {
    const std::string text = jobs_text(kShownJobs, ".ddprun", kToday, true);
    EXPECT_THAT(text, HasSubstr("lab.1.0  \x1b[32msucceeded\x1b[0m        "));
    EXPECT_THAT(text, HasSubstr("\x1b[31mfailed with 7\x1b[0m"));
    EXPECT_THAT(text, HasSubstr("\x1b[33mno end"));
    EXPECT_THAT(jobs_text(kShownJobs, ".ddprun", kToday, false), Not(HasSubstr("\x1b")));
}

// A folder's name may have any bytes. The terminal must not obey them.
TEST(JobsText, NamesAreHarmless) {
    const FoundJob job = running_job("a\x1b[2J\n\xff");
    EXPECT_THAT(jobs_text({job}, "\x1b]0;x\a", kToday, false), Not(HasSubstr("\x1b")));
    EXPECT_TRUE(nlohmann::json::accept(jobs_json({job}, "\xff")));
}

TEST(JobsJson, HasWhatTheTableHasAndMore) {
    const auto json = nlohmann::json::parse(jobs_json(kShownJobs, ".ddprun"));
    EXPECT_EQ(json["format"], "ddpctl jobs");
    EXPECT_EQ(json["version"], 1);
    EXPECT_EQ(json["jobs"].size(), 6u);
    const auto& failed = json["jobs"][1];
    EXPECT_EQ(failed["state"], "failed");
    EXPECT_EQ(failed["verdict"], "worker_failed");
    EXPECT_EQ(failed["exit_code"], 7);
    EXPECT_EQ(failed["ended"], "2024-10-02T00:00:00.000Z");
    const auto& running = json["jobs"][3];
    EXPECT_EQ(running["generation"], 4);
    EXPECT_TRUE(running["ended"].is_null());
    EXPECT_EQ(running["newest_entry"], "2024-10-02T00:00:00.000Z");
    EXPECT_TRUE(json["jobs"][4]["generation"].is_null());
    EXPECT_THAT(json["jobs"][5]["reason"].get<std::string>(), HasSubstr("notes.txt"));
}

TEST(Amounts, AreReadable) {
    EXPECT_EQ(size_text(0), "0 B");
    EXPECT_EQ(size_text(1023), "1023 B");
    EXPECT_EQ(size_text(1536), "1.5 KiB");
    EXPECT_EQ(size_text((std::int64_t{1} << 20) - 1), "1.0 MiB");
    EXPECT_EQ(size_text(std::int64_t{1} << 60), "1048576.0 TiB");
    EXPECT_EQ(age_text(Duration{-1}), "0 s");
    EXPECT_EQ(age_text(std::chrono::seconds{119}), "119 s");
    EXPECT_EQ(age_text(std::chrono::minutes{119}), "119 m");
    EXPECT_EQ(age_text(std::chrono::hours{47}), "47 h");
    EXPECT_EQ(age_text(std::chrono::hours{48}), "2 d");
}

}  // namespace
}  // namespace ddprun::launcher
