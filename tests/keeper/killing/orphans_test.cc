// What is left of a dead ddprun, and what only looks like it.
#include "keeper/killing/orphans.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/keeper/sleeper.h"

using namespace ddprun::agent;

namespace {

std::string unique_folder() { return "/no/such/ddprun_" + std::to_string(::getpid()); }

}  // namespace

TEST(Orphans, AreKnownByFolderAndJob) {
    Origin origin = origin_here(unique_folder());
    origin.slurm_job_id = "4711";
    const std::string stop = "DDPRUN_STOP_FILE=" + origin.folder;
    Sleeper one({stop + "/attempt_0/0/stop.json", "SLURM_JOB_ID=4711"});
    Sleeper two({"SLURM_JOB_ID=4711", "PATH=/bin", stop + "/attempt_1/0/stop.json"});
    // Submitted by a worker; started without the variables; of a folder with a longer name.
    Sleeper submitted({stop + "/attempt_0/0/stop.json", "SLURM_JOB_ID=4712"});
    Sleeper at({stop + "/attempt_0/0/stop.json"});
    Sleeper plain({"SLURM_JOB_ID=4711", "OLD_DDPRUN_STOP_FILE=" + origin.folder + "/x"});
    Sleeper other({stop + "2/attempt_0/0/stop.json", "SLURM_JOB_ID=4711"});
    const auto left = kill_orphans(origin);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->count, 2);
    EXPECT_EQ(left->first.name, "sleep");
    EXPECT_TRUE(one.was_killed());
    EXPECT_TRUE(two.was_killed());
    for (const Sleeper* stranger : {&submitted, &at, &plain, &other})
        EXPECT_TRUE(stranger->lives());
}

// In another place the same variables say nothing.
TEST(Orphans, AreOfThisBootNamespaceAndCgroup) {
    const Origin here = origin_here(unique_folder());
    Sleeper one({"DDPRUN_STOP_FILE=" + here.folder + "/stop.json"});
    for (std::string Origin::*part : {&Origin::boot, &Origin::pid_namespace, &Origin::cgroup}) {
        Origin elsewhere = here;
        elsewhere.*part += "x";
        EXPECT_EQ(kill_orphans(elsewhere)->count, 0);
    }
    EXPECT_TRUE(one.lives());
    EXPECT_EQ(kill_orphans(here)->count, 1);
    EXPECT_TRUE(one.was_killed());
}

// The kernel shows a new program before it shows its variables.
TEST(Orphans, AreFoundInTheMiddleOfExec) {
    const Origin here = origin_here(unique_folder());
    for (int i = 0; i < 300; ++i) {
        Sleeper one({"DDPRUN_STOP_FILE=" + here.folder + "/stop.json"});
        ASSERT_EQ(kill_orphans(here)->count, 1) << "process " << i;
        ASSERT_TRUE(one.was_killed());
    }
}

TEST(Orphans, ARecordIsReadAsItWasWritten) {
    Origin origin = origin_here("/tmp/ddprun_abcdef");
    origin.slurm_job_id = "4711";
    EXPECT_EQ(read_origin(to_json(origin)), origin);
    EXPECT_FALSE(origin.boot.empty());
    EXPECT_FALSE(origin.pid_namespace.empty());
    for (const char* text : {"", "{", "[]", "{\"folder\": 1}", "{\"folder\": \"/tmp/x\"}"})
        EXPECT_FALSE(read_origin(text)) << text;
    // Below these everything lies.
    for (const char* folder : {"", "/", "tmp"}) {
        origin.folder = folder;
        EXPECT_FALSE(read_origin(to_json(origin))) << folder;
    }
}
