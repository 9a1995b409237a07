// Which folders below one are ledgers of jobs, whatever else lies there.
#include "operator/ddpctl/survey.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "rendezvous/ledger/ledger_folder.h"
#include "rendezvous/ledger_format/job_pointer.h"
#include "tests/rendezvous/examples.h"
#include "tests/support/loop.h"

namespace ddprun::launcher {
namespace {

using rendezvous::example_end;
using rendezvous::example_entry;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A ledger of two entries, the second of which is the end.
std::uint64_t make_ledger(const std::string& path) {
    std::filesystem::create_directories(path);
    const auto claim = rendezvous::claim_folder(path, "abc123");
    EXPECT_TRUE(claim) << claim.error();
    (void)rendezvous::create_entry(path, claim->mark, example_entry(0));
    (void)rendezvous::create_entry(path, claim->mark, example_end(1));
    return claim->mark;
}

std::vector<std::string> names(const Survey& survey) {
    std::vector<std::string> all;
    for (const FoundJob& job : survey.jobs) all.push_back(job.name);
    std::ranges::sort(all);
    return all;
}

// As ddpctl jobs --ledger=… does.
Result<Survey> survey_at(const std::string& ledger) {
    std::vector<std::string> words{"jobs"};
    if (!ledger.empty()) words.push_back("--ledger=" + ledger);
    return survey_ledgers(*read_call(words));
}

// A job whose ledger is in memory has left word where it can be asked. What is no such word is told
// as such, and a link is not followed.
TEST(Survey, FindsJobsThatAreAskedElsewhere) {
    const Folder folder;
    std::ofstream(folder / "lab.9.0.job")
        << to_json(rendezvous::JobPointer{"lab.9.0", "", "n1", 29400});
    std::ofstream(folder / "odd.job") << "{}";
    std::filesystem::create_symlink("lab.9.0.job", folder / "link.job");
    const auto survey = survey_at(folder / "");
    ASSERT_TRUE(survey) << survey.error();
    ASSERT_THAT(names(*survey), ElementsAre("lab.9.0", "link", "odd"));
    for (const FoundJob& job : survey->jobs) {
        EXPECT_EQ(job.fault.empty(), job.name == "lab.9.0") << job.fault;
        if (job.name != "lab.9.0") continue;
        EXPECT_EQ(job.host, "n1");
        EXPECT_EQ(job.port, 29400);
        EXPECT_EQ(job.run_id, "lab.9.0");
        EXPECT_EQ(state_of(job), JobState::no_ledger);
        EXPECT_EQ(look_again(job)->port, 29400);
        EXPECT_EQ(history_of(job).error().code(), ErrorCode::not_found);
    }
    EXPECT_THAT(names(*survey_at(folder / "lab.9.0.job")), ElementsAre("lab.9.0"));
}

// Its ledger was set aside, and another job has begun there.
TEST(Survey, LooksAgainAtTheSameJobOnly) {
    const Folder folder;
    make_ledger(folder / "lab.1.0");
    FoundJob job = survey_at(folder / "")->jobs.at(0);
    EXPECT_TRUE(look_again(job));
    EXPECT_EQ(history_of(job)->entries.size(), 2u);
    job.mark += 1;
    EXPECT_FALSE(look_again(job));
    job.path = folder / "nothing";
    EXPECT_FALSE(look_again(job));
}

TEST(Survey, FindsLedgersBesideOtherThings) {
    const Folder folder;
    const std::uint64_t mark = make_ledger(folder / "lab.1.0");
    std::filesystem::create_directories(folder / "logs/attempt_0");
    std::filesystem::create_directories(folder / "empty");
    std::ofstream(folder / "train.py") << "pass\n";
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    const auto survey = survey_at(folder / "");
    ASSERT_TRUE(survey) << survey.error();
    ASSERT_THAT(names(*survey), ElementsAre("lab.1.0"));
    const FoundJob& job = survey->jobs[0];
    EXPECT_EQ(job.path, folder / "lab.1.0");
    EXPECT_EQ(job.mark, mark);
    EXPECT_EQ(job.fault, "");
    ASSERT_TRUE(job.newest);
    EXPECT_EQ(*job.newest, example_end(1));
    EXPECT_GT(job.bytes, 0);
    EXPECT_GT(job.begun, Duration{});
    EXPECT_GE(job.written, job.begun);
}

TEST(Survey, TakesOneLedgerByItsPath) {
    const Folder folder;
    make_ledger(folder / "lab.1.0");
    make_ledger(folder / "lab.2.0");
    EXPECT_THAT(names(*survey_at(folder / "lab.2.0//")), ElementsAre("lab.2.0"));
    EXPECT_THAT(names(*survey_at("directory:" + (folder / ""))), ElementsAre("lab.1.0", "lab.2.0"));
}

// A link is shown and not followed: the ledger belongs to the folder in which it lies.
TEST(Survey, ShowsWhatItCannotRead) {
    const Folder folder;
    make_ledger(folder / "elsewhere/lab.1.0");
    const std::string jobs = folder / "jobs/";
    for (const char* name : {"cut", "fifo", "noclaim", "strange"}) make_ledger(jobs + name);
    std::ofstream(jobs + "cut/entry-000001.json") << "{";
    std::ofstream(jobs + "strange/notes.txt") << "mine\n";
    ASSERT_EQ(::unlink((jobs + "noclaim/ledger.json").c_str()), 0);
    ASSERT_EQ(::unlink((jobs + "fifo/entry-000001.json").c_str()), 0);
    ASSERT_EQ(::mkfifo((jobs + "fifo/entry-000001.json").c_str(), 0600), 0);
    ASSERT_EQ(::symlink((folder / "elsewhere/lab.1.0").c_str(), (jobs + "link").c_str()), 0);
    const auto survey = survey_at(jobs);
    ASSERT_TRUE(survey) << survey.error();
    EXPECT_THAT(names(*survey), ElementsAre("cut", "fifo", "link", "noclaim", "strange"));
    const std::map<std::string, const char*> faults = {{"cut", "entry-000001.json is truncated"},
                                                       {"fifo", "no ledger has: entry-000001.json"},
                                                       {"link", "is a symbolic link"},
                                                       {"noclaim", "lacks ledger.json"},
                                                       {"strange", "no ledger has: notes.txt"}};
    for (const FoundJob& job : survey->jobs) {
        EXPECT_EQ(state_of(job), JobState::unreadable) << job.name;
        EXPECT_THAT(job.fault, HasSubstr(faults.at(job.name)));
    }
}

TEST(Survey, AMissingFolderIsAnErrorIfItWasNamed) {
    const Folder folder;
    EXPECT_EQ(survey_at(folder / "nothing").error().code(), ErrorCode::not_found);
    EXPECT_EQ(survey_at("etcd:a").error().code(), ErrorCode::usage);
    EXPECT_EQ(survey_at("memory").error().code(), ErrorCode::usage);
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder / "");
    const auto none = survey_at("");
    make_ledger(".ddprun/lab.1.0");
    const auto one = survey_at("");
    std::filesystem::current_path(before);
    ASSERT_TRUE(none) << none.error();
    EXPECT_THAT(names(*none), IsEmpty());
    EXPECT_EQ(one->jobs.at(0).path, ".ddprun/lab.1.0");
}

}  // namespace
}  // namespace ddprun::launcher
