// The user's program for events: what it gets, and that nothing waits for it. With real programs.
#include "launcher/job/event_program.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/control/job_events.h"
#include "tests/support/loop.h"

namespace ddprun::launcher {
namespace {

using rendezvous::JobStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EventProgramTest : public testing::Test {
  protected:
    EventProgramTest() { job_.emplace().leader.name = "n1"; }

    // A program that writes what it reads into a new file each time, and then does this.
    std::string program(const std::string& then = "") {
        const std::string path = folder_ / "program";
        const std::string here = folder_ / "";
        std::ofstream(path) << "#!/bin/sh\ncat > " << here << "told.$$\nmv " << here << "told.$$ "
                            << here << "event.$$\n"
                            << then << "\n";
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        return path;
    }
    EventProgram& start(const std::string& path) {
        events_.emplace(
            loop_, path, [this] { return job_; }, rendezvous::event_texts(),
            [this](const std::string& line) { warnings_.push_back(line); });
        events_->begin();
        return *events_;
    }
    std::vector<std::string> told() const {
        std::vector<std::pair<std::string, std::string>> found;
        left_out_ = 0;
        for (const auto& file : std::filesystem::directory_iterator(folder_ / "")) {
            if (!file.path().filename().string().starts_with("event.")) continue;
            std::ostringstream text;
            text << std::ifstream(file.path()).rdbuf();
            const auto json = nlohmann::json::parse(text.str());
            found.emplace_back(json["time"], json["sentence"]);
            left_out_ += json.value("left_out", 0);
        }
        std::ranges::sort(found);
        std::vector<std::string> all;
        for (auto& [time, sentence] : found) all.push_back(std::move(sentence));
        return all;
    }
    bool runs_until_told(std::size_t count) {
        return run_until(loop_, [&] { return told().size() >= count; });
    }

    const Folder folder_;
    boost::asio::io_context loop_;
    std::optional<JobStatus> job_;
    std::vector<std::string> warnings_;
    std::optional<EventProgram> events_;
    mutable int left_out_ = 0;  // as the events say that told() has found
};

TEST_F(EventProgramTest, GetsEachEvent) {
    EventProgram& events = start(program());
    EXPECT_TRUE(runs_until_told(1));
    job_->waiting_for = "waiting for n2: its ddprun has not called";
    EXPECT_TRUE(runs_until_told(2));
    events.finish(rendezvous::ended(rendezvous::Verdict::unavailable, 69, "nobody came"));
    EXPECT_THAT(told(), ElementsAre("n1 leads", "waiting for n2: its ddprun has not called",
                                    "the job has ended with code 69: nobody came"));
    EXPECT_THAT(warnings_, IsEmpty());
}

// Another node leads, and then this one again: it says anew how the job stands.
TEST_F(EventProgramTest, IsSilentWhileAnotherLeads) {
    const std::string path = program();
    job_.reset();
    EventProgram& events = start(path);
    for (int i = 0; i < 2; ++i) loop_.run_one();
    EXPECT_THAT(told(), IsEmpty());
    job_.emplace().leader.name = "n2";
    EXPECT_TRUE(runs_until_told(1));
    job_.reset();
    events.finish(rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well"));
    EXPECT_THAT(told(), ElementsAre("n2 leads")) << "the leader tells the end";
}

// It hangs in its first call. The loop goes on, events wait, and the oldest give way.
TEST_F(EventProgramTest, IsNeverWaitedFor) {
    const std::string gate = folder_ / "gate";
    EventProgram& events = start(program("until [ -e " + gate + " ]; do sleep 0.02; done"));
    EXPECT_TRUE(runs_until_told(1));
    // More nodes than there is room for, all in one look.
    for (int i = 0; i < 103; ++i)
        job_->nodes.push_back({.name = "m" + std::to_string(i), .why = "", .heard = {}});
    for (int i = 0; i < 3; ++i) loop_.run_one();
    EXPECT_EQ(told().size(), 1u);
    std::ofstream(gate).put('1');
    events.finish(rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well"));
    EXPECT_EQ(told().size(), 101u);
    EXPECT_EQ(left_out_, 4) << "three of the nodes, and one more for the end";
}

// It hangs in every call but the last one.
TEST_F(EventProgramTest, TheEndIsToldAfterOneThatHangs) {
    const std::string path =
        program("grep -q '\"event\":\"end\"' " + (folder_ / "event.$$") + " || exec sleep 300");
    events_.emplace(
        loop_, path, [this] { return job_; }, rendezvous::event_texts(),
        [this](const std::string& line) { warnings_.push_back(line); },
        EventLimits{.call = std::chrono::seconds{2}, .due = std::chrono::milliseconds{10}});
    events_->begin();
    job_->waiting_for = "waiting for n2";
    events_->finish(rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well"));
    EXPECT_THAT(told(), ElementsAre("n1 leads", HasSubstr("has ended with code 0")));
    EXPECT_EQ(left_out_, 1);
    EXPECT_THAT(warnings_,
                testing::Contains(HasSubstr("slow or hangs; 1 event before the end left out")));
}

// It is moved away for a while.
TEST_F(EventProgramTest, WhatItHasNotGotIsCounted) {
    const std::string path = program();
    std::filesystem::rename(path, folder_ / "away");
    EventProgram& events = start(path);
    EXPECT_TRUE(run_until(loop_, [&] { return !warnings_.empty(); }));
    std::filesystem::rename(folder_ / "away", path);
    events.finish(rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well"));
    EXPECT_THAT(told(), ElementsAre(HasSubstr("has ended with code 0")));
    EXPECT_EQ(left_out_, 1);
}

TEST_F(EventProgramTest, ItsFailureIsToldOnce) {
    EventProgram& events = start(program("exit 3"));
    EXPECT_TRUE(run_until(loop_, [&] { return !warnings_.empty(); }));
    events.finish(rendezvous::ended(rendezvous::Verdict::succeeded, 0, "all is well"));
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("program exited with 3; further failures")));
    EXPECT_EQ(told().size(), 2u);
}

}  // namespace
}  // namespace ddprun::launcher
