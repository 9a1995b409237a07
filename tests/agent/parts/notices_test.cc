// The lines that workers can read of each other. Programs depend on every name in them.
#include "agent/parts/notices.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

namespace ddprun::agent {
namespace {

using namespace ddprun::test;
using rendezvous::NewsItem;
using rendezvous::NewsKind;

std::string line(const Notice& notice) { return to_line(notice, Generation{3}, sec(1000)); }

TEST(Notices, HaveTheseNames) {
    EXPECT_EQ(line(NewsItem{NewsKind::worker_lost, "n1", 2, 1, 0, 9}),
              R"({"event":"worker_lost","rank":2,"signal":"SIGKILL","node":"n1","generation":3,)"
              R"("time":1000.0})");
    EXPECT_EQ(line(NewsItem{NewsKind::worker_lost, "n1", 2, 1, 7}),
              R"({"event":"worker_lost","rank":2,"exit_code":7,"node":"n1","generation":3,)"
              R"("time":1000.0})");
    EXPECT_EQ(line(NewsItem{NewsKind::node_lost, "n2", 4, 3}),
              R"({"event":"node_lost","ranks":[4,5,6],"first_rank":4,"count":3,"node":"n2",)"
              R"("generation":3,"time":1000.0})");
    EXPECT_EQ(line(NewsItem{NewsKind::node_joined, "n3"}),
              R"({"event":"node_joined","node":"n3","generation":3,"time":1000.0})");
    EXPECT_EQ(line(SnapshotHint{Generation{3}, {8, "alice@login1"}}),
              R"({"event":"snapshot_requested","by":"alice@login1","number":8,"generation":3,)"
              R"("time":1000.0})");
    EXPECT_EQ(line(Stopping{.signal = 15, .grace = sec(5)}),
              R"({"event":"stop","reason":"restart","signal":"SIGTERM","seconds_left":5.0,)"
              R"("killed_at":1005.0,"requeue":false,"generation":3,"time":1000.0})");
}

TEST(Notices, AStopHasWhatTheStopFileHas) {
    const StopHint hint{Generation{3}, rendezvous::StopCause::time_limit, "60 s away", 15, sec(50),
                        true};
    const auto event = nlohmann::json::parse(line(stopping_by(hint)));
    const auto file = nlohmann::json::parse(to_json(hint, sec(1000)));
    for (const char* name :
         {"reason", "sentence", "signal", "seconds_left", "killed_at", "requeue", "generation"})
        EXPECT_EQ(event.at(name), file.at(name)) << name;
}

// A line must fit the socket in one piece, and be JSON whatever a user calls himself.
TEST(Notices, AreShortLinesOfJson) {
    const std::string text(10'000, '\xff');
    const Notice longest[] = {NewsItem{NewsKind::node_lost, text, 1'000'000'000, 100'000},
                              Stopping{"time_limit", text, 15},
                              SnapshotHint{Generation{3}, {8, text}}};
    for (const Notice& notice : longest) {
        const std::string found = line(notice);
        EXPECT_LT(found.size(), kLongestNotice);
        EXPECT_TRUE(nlohmann::json::accept(found));
        EXPECT_EQ(found.find('\n'), std::string::npos);
    }
}

// The leader sends the death of a node's own worker back to it, and repeats itself after a break.
TEST(PassedOn, TakesEachOnce) {
    PassedOn passed;
    EXPECT_TRUE(passed.is_first({NewsKind::worker_lost, "n1.0", 2, 1, 7}));
    EXPECT_FALSE(passed.is_first({NewsKind::worker_lost, "n1", 2, 1, 7}));
    EXPECT_TRUE(passed.is_first({NewsKind::worker_lost, "n1", 3, 1, 7}));
    EXPECT_TRUE(passed.is_first({NewsKind::node_joined, "n3"}));
    EXPECT_TRUE(passed.is_first({NewsKind::node_joined, "n4"}));
    EXPECT_FALSE(passed.is_first({NewsKind::node_joined, "n3"}));
    EXPECT_TRUE(passed.is_first({NewsKind::node_lost, "n3", 4, 2}));
}

}  // namespace
}  // namespace ddprun::agent
