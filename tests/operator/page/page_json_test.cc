// What the page's script gets, and how much of it at most.
#include "operator/page/page_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/operator/page/page_examples.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

PageView view_of(const control::StatusReply& status) {
    PageView view;
    view.link = PageView::Link::answers;
    view.status = status;
    view.job = running_job();
    view.history = history_until(kMoment);
    return view;
}

TEST(PageJson, SaysHowAJobStands) {
    const Json json = Json::parse(page_status_json(view_of(status_in_all_states(20)), kMoment));
    EXPECT_EQ(json["link"], "answers");
    EXPECT_EQ(json["now"], kNow / 1'000'000);
    EXPECT_EQ(json["generation"], 2);
    EXPECT_EQ(json["waiting_for"], "waiting for gpu0009: its connection is gone, and 2 nodes more");
    EXPECT_EQ(json["counts"]["running"], 10);
    EXPECT_EQ(json["counts"]["out of service"], 1);
    ASSERT_EQ(json["nodes"].size(), 20);
    EXPECT_EQ(json["nodes"][0], Json({"gpu0001", "running", nullptr, 0, 4, nullptr, 48210}));
    EXPECT_EQ(json["nodes"][7][5], (kNow - 9 * kSecond) / 1'000'000);
    EXPECT_EQ(json["ended"], nullptr);
}

// A leader that is lost: what it has told last, and when.
TEST(PageJson, SaysHowOldItIs) {
    PageView view = view_of(status_of_nodes(2));
    view.link = PageView::Link::lost;
    view.why = "no node answers";
    view.heard = kMoment - std::chrono::seconds{7};
    const Json json = Json::parse(page_status_json(view, kMoment));
    EXPECT_EQ(json["link"], "lost");
    EXPECT_EQ(json["why"], "no node answers");
    EXPECT_EQ(json["heard"], kNow / 1'000'000 - 7000);
    EXPECT_EQ(json["nodes"].size(), 2);
}

// A job that answers nobody shows the members of its newest generation.
TEST(PageJson, ShowsAJobFromItsLedgerAlone) {
    PageView view;
    view.link = PageView::Link::ended;
    view.job = running_job();
    view.history = ended_history(kMoment);
    const Json json = Json::parse(page_status_json(view, kMoment));
    EXPECT_EQ(json["generation"], 3);
    EXPECT_EQ(json["ended"]["code"], 7);
    EXPECT_EQ(json["nodes"], Json::parse(R"([["n1","recorded",null,0,2,null,null],
                                             ["n2","recorded",null,2,2,null,null]])"));
    EXPECT_FALSE(json.contains("told"));
}

// What was told before the end may be that all run.
TEST(PageJson, ShowsNoNodeThatRunsAfterTheEnd) {
    PageView view = view_of(status_in_all_states(20));
    view.link = PageView::Link::ended;
    view.history = ended_history(kMoment);
    const Json json = Json::parse(page_status_json(view, kMoment));
    EXPECT_EQ(json["counts"]["recorded"], 12);
    EXPECT_EQ(json["counts"]["lost"], 1);
    EXPECT_FALSE(json["counts"].contains("running"));
}

TEST(PageJson, TellsThePastTheNewestFirst) {
    const Json json = Json::parse(page_history_json(view_of(status_of_nodes(2))));
    ASSERT_EQ(json["entries"].size(), 4);
    EXPECT_EQ(json["entries"][0]["generation"], 3);
    EXPECT_EQ(json["entries"][0]["cause"], "restarted by alice@login1 with ddpctl");
    EXPECT_EQ(json["parts"][0][0], "training");
    EXPECT_DOUBLE_EQ(json["parts"][0][2], 55 * 60 * 0.8);
    EXPECT_EQ(json["causes"]["worker"], 1);
    EXPECT_EQ(json["entries_left_out"], 0);
}

// What does not fit is counted, and nodes that do not run stay.
TEST(PageJson, KeepsToItsLimit) {
    control::StatusReply status = status_of_nodes(9000);
    for (control::Node& node : *status.mutable_nodes()) node.set_why(std::string(5000, 'w'));
    status.mutable_nodes(8999)->set_state("lost");
    status.set_waiting_for(std::string(1'000'000, 'w'));
    status.set_standstill(std::string(1'000'000, '\x1b'));
    PageView view = view_of(status);
    view.why = std::string(1'000'000, '"');
    const std::string text = page_status_json(view, kMoment);
    EXPECT_LT(text.size(), kEventLimit);
    const Json json = Json::parse(text);
    EXPECT_EQ(json["counts"]["running"], 8999);
    EXPECT_EQ(json["nodes"].back()[0], "gpu9000");
    EXPECT_EQ(json["nodes"].size() + json["nodes_left_out"].get<std::size_t>(), 9000);

    for (int i = 0; i < 1000; ++i) view.history.entries.push_back(view.history.entries.back());
    for (auto& dated : view.history.entries) dated.entry.assignment.cause = std::string(4000, '"');
    const std::string past = page_history_json(view);
    EXPECT_LT(past.size(), kEventLimit);
    const Json entries = Json::parse(past);
    EXPECT_EQ(entries["entries"].size() + entries["entries_left_out"].get<std::size_t>(), 1004);
    EXPECT_GT(entries["entries"].size(), 50);
}

// A text is one line of what it says, whatever bytes are in it, and is not cut amid a character.
TEST(PageJson, MakesTextsPrintable) {
    control::StatusReply status = status_of_nodes(1);
    status.mutable_nodes(0)->set_name("a\x1b[2J\n\xff\xe2\x80\xae");
    std::string wide;
    for (int i = 0; i < 2000; ++i) wide += "ü";
    status.set_waiting_for("x" + wide);
    const std::string text = page_status_json(view_of(status), kMoment);
    const Json json = Json::parse(text);
    for (const char* bad : {"\x1b", "\n", "\xff", "\xe2\x80\xae", "\\u001b", "\xef\xbf\xbd"})
        EXPECT_THAT(text, Not(HasSubstr(bad)));
    EXPECT_THAT(json["waiting_for"].get<std::string>(), testing::EndsWith("ü…"));
}

}  // namespace
}  // namespace ddprun::launcher
