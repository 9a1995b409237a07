// When a job without its batch host is ended, and when not. Slurm's commands are small shell
// scripts in a folder of the test; connections are real. A wrong "yes" cancels a user's job, so
// most tests are about "no".
#include "launcher/in_slurm/headless.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <fstream>

namespace ddprun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// By default: job 8812 runs on n2 and n3, its batch host n1 is gone, and no other step runs.
class Headless : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "headless_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        command("scancel", "echo \"$*\" >>" + cancelled().string());
        command("squeue", "printf '8812.0\\n8812.batch\\n'");
        shows("n[2-3]");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // Makes one of Slurm's commands.
    void command(const std::string& name, const std::string& text) {
        const auto path = folder_ / name;
        std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
        ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
    }
    // What `scontrol show job` prints of a batch job that has these nodes now.
    std::string job(const std::string& nodes) {
        return "printf 'JobId=8812\\n JobState=RUNNING\\n BatchFlag=1\\n NodeList=" + nodes +
               "\\n BatchHost=n1\\n'";
    }
    void shows(const std::string& nodes) { command("scontrol", job(nodes)); }
    // scancel writes its arguments into this file.
    std::filesystem::path cancelled() const { return folder_ / "cancelled"; }

    // Whether the job was cancelled, exactly once. No connection reaches a broadcast address, so by
    // default srun's host is silent.
    bool ends(const std::string& srun_address = "255.255.255.255", std::uint16_t port = 29400,
              int restart_count = 0) {
        const slurm::JobId job(std::map<std::string, std::string>{{"SLURM_JOB_ID", "8812"}});
        const SlurmCalls calls(loop_, job, {{"PATH", folder_.string() + ":/usr/bin:/bin"}});
        HeadlessConfig config{job, "0", restart_count, srun_address, port};
        // Seconds and minutes in a real job. Here some questions fit into the patience.
        config.between = std::chrono::milliseconds{50};
        config.patience = std::chrono::milliseconds{300};
        config.connecting = std::chrono::seconds{1};
        bool returned = false;
        boost::asio::co_spawn(
            loop_,
            end_if_headless(config, calls,
                            [this](auto, const std::string& line) { said_.push_back(line); }),
            [&](std::exception_ptr error) { returned = !error; });
        loop_.run();
        loop_.restart();
        EXPECT_TRUE(returned);
        std::ifstream file(cancelled());
        const std::string text(std::istreambuf_iterator<char>(file), {});
        EXPECT_THAT(text, testing::AnyOf("", spelled_ + "\n"));
        return !text.empty();
    }

    boost::asio::io_context loop_;
    std::filesystem::path folder_;
    std::vector<std::string> said_;
    std::string spelled_ = "8812";  // as scancel must be told of the job
};

// The host is silent, and Slurm has taken it out of the job: both are needed for the proof.
TEST_F(Headless, AJobWithoutItsBatchHostIsEnded) {
    EXPECT_TRUE(ends());
    EXPECT_THAT(
        said_, ElementsAre(HasSubstr("job 8812 has lost its batch host; ddprun has cancelled it")));
}

// The element with the array's own id, 8812. Its brother runs, and has two steps.
TEST_F(Headless, OfAnArrayOneElementIsEnded) {
    spelled_ = "8812_3";
    command("scontrol",
            "printf 'JobId=8813 ArrayJobId=8812 ArrayTaskId=1 JobName=a\\n JobState=RUNNING\\n "
            "BatchFlag=1\\n NodeList=n4\\n BatchHost=n4\\n\\nJobId=8812 ArrayJobId=8812 "
            "ArrayTaskId=3 JobName=a\\n JobState=RUNNING\\n BatchFlag=1\\n NodeList=n[2-3]\\n "
            "BatchHost=n1\\n'");
    command("squeue", "printf '8812_3.0\\n8812_3.batch\\n8812_1.0\\n8812_1.1\\n'");
    EXPECT_TRUE(ends());
    EXPECT_THAT(said_, ElementsAre(HasSubstr("job 8812_3 has lost its batch host")));
}

// Slurm has started the job again, and that allocation has lost its batch host in turn. It is not
// ours to end.
TEST_F(Headless, AJobThatRunsAgainElsewhereIsLeftAlone) {
    command("scontrol",
            "printf 'JobId=8812\\n JobState=RUNNING\\n Requeue=1 Restarts=1 BatchFlag=1\\n "
            "NodeList=n[2-3]\\n BatchHost=n1\\n'");
    command("squeue", "echo 8812.0");
    EXPECT_FALSE(ends());
    EXPECT_TRUE(ends("255.255.255.255", 29400, 1));
}

// Slurm notices a loss only after minutes. The first question gets no answer, the second one still
// shows n1, and only the third one proves the loss.
TEST_F(Headless, SlurmsWordIsWaitedFor) {
    const std::string count = (folder_ / "asked").string();
    command("scontrol", "echo >>" + count + "\nlines=$(wc -l <" + count +
                            ")\n[ $lines -gt 1 ] || exit 1\n[ $lines -gt 2 ] || { " +
                            job("n[1-3]") + "; exit; }\n" + job("n[2-3]"));
    EXPECT_TRUE(ends());
    EXPECT_THAT(said_,
                ElementsAre(HasSubstr("as soon as Slurm notices"), HasSubstr("has cancelled it")));
}

// Slurm never takes n1 out of the job. After the patience the job keeps its nodes, and the user
// reads how to end it.
TEST_F(Headless, SlurmIsNotWaitedForForEver) {
    shows("n[1-3]");
    EXPECT_FALSE(ends());
    EXPECT_THAT(said_,
                ElementsAre(HasSubstr("as soon as Slurm notices"), HasSubstr("keeps its nodes")));
    said_.clear();
    command("scontrol", "exit 1");
    EXPECT_FALSE(ends());
    EXPECT_THAT(said_.back(), HasSubstr("keeps its nodes"));
}

// A host that answers, or refuses, is alive: its batch script goes on, or Slurm sees to it. Slurm
// is not even asked: scontrol would leave a trace in the file.
TEST_F(Headless, AHostThatAnswersKeepsItsJob) {
    using boost::asio::ip::tcp;
    command("scontrol", "echo asked >>" + cancelled().string() + "; " + job("n[2-3]"));
    tcp::acceptor listener(loop_, {boost::asio::ip::address_v4::loopback(), 0});
    const std::uint16_t port = listener.local_endpoint().port();
    EXPECT_FALSE(ends("127.0.0.1", port));
    listener.close();
    EXPECT_FALSE(ends("127.0.0.1", port)) << "refused";
    EXPECT_FALSE(ends("not an address"));
    EXPECT_THAT(said_, IsEmpty());
}

// A job of salloc's has no batch host that could be lost. A job that is ending needs no end.
TEST_F(Headless, AJobThatIsNobodysToEndIsLeft) {
    command("scontrol",
            "printf 'JobId=8812\\n JobState=RUNNING\\n BatchFlag=0\\n NodeList=n2\\n "
            "BatchHost=login\\n'");
    EXPECT_FALSE(ends()) << "salloc's";
    command("scontrol",
            "printf 'JobId=8812\\n JobState=COMPLETING\\n BatchFlag=1\\n NodeList=n2\\n "
            "BatchHost=n1\\n'");
    EXPECT_FALSE(ends());
    EXPECT_THAT(said_, IsEmpty());
}

// The user may run a second training in the allocation. If Slurm does not say, there may be one.
TEST_F(Headless, OtherStepsKeepTheJob) {
    command("squeue", "printf '8812.0\\n8812.1\\n'");
    EXPECT_FALSE(ends());
    command("squeue", "exit 1");
    EXPECT_FALSE(ends());
    EXPECT_THAT(said_, testing::Each(HasSubstr("other steps may still run")));
}

// A user may lack the right to cancel. The reason is in scancel's own words.
TEST_F(Headless, SaysWhatScancelSays) {
    command("scancel", "echo 'scancel: error: Access denied'; exit 1");
    EXPECT_FALSE(ends());
    EXPECT_THAT(said_, ElementsAre(HasSubstr("cannot end it: scancel: scancel: error: Access")));
}

}  // namespace
}  // namespace ddprun::launcher
