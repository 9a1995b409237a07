// What each reader of the page gets, and that a slow one misses only what is old.
#include "operator/page/page_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operator/page/page_examples.h"

namespace ddprun::launcher {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(PageBoard, GivesASubscriberTheNewestOfEachKind) {
    PageBoard board("1.2.3");
    board.tell_ledger(running_job(), history_until(kMoment));
    PageBoard::Seen fast, slow;
    EXPECT_THAT(*board.next_event(fast, kMoment), StartsWith("event: status\ndata: {"));
    EXPECT_THAT(*board.next_event(fast, kMoment), StartsWith("event: history\ndata: {"));
    EXPECT_EQ(board.next_event(fast, kMoment), nullptr);
    for (int step = 1; step <= 100; ++step) {
        control::StatusReply status = status_of_nodes(2);
        status.set_step(step);
        board.tell_status(status, std::nullopt);
        if (step % 10 == 0) {
            EXPECT_THAT(*board.next_event(fast, kMoment),
                        HasSubstr("\"step\":" + std::to_string(step) + ","));
        }
    }
    // The slow one gets the hundredth, as the same text that the fast one has had.
    PageBoard::Seen other;
    const auto text = board.next_event(slow, kMoment);
    EXPECT_EQ(text, board.next_event(other, kMoment));
    EXPECT_THAT(*text, HasSubstr("\"step\":100,"));
    EXPECT_THAT(*board.next_event(slow, kMoment), StartsWith("event: history"));
    EXPECT_EQ(board.next_event(slow, kMoment), nullptr);
    // One event is one line of data.
    EXPECT_EQ(std::ranges::count(*text, '\n'), 3);
}

TEST(PageBoard, SaysWhenTheLeaderWasLost) {
    PageBoard board("1.2.3");
    board.tell_status(status_of_nodes(2), 2.0);
    PageBoard::Seen seen;
    EXPECT_THAT(*board.next_event(seen, kMoment), HasSubstr("\"steps_a_second\":2.0"));
    board.tell_link(PageView::Link::lost, "gone", kMoment);
    EXPECT_THAT(*board.next_event(seen, kMoment + seconds{5}), HasSubstr("\"link\":\"lost\""));
    EXPECT_EQ(board.view().heard, kMoment);
    // The same again is no news, and changes nothing about when it was heard.
    board.next_event(seen, kMoment);
    board.tell_link(PageView::Link::lost, "gone", kMoment + seconds{9});
    EXPECT_EQ(board.next_event(seen, kMoment), nullptr);
    EXPECT_EQ(board.view().heard, kMoment);
    board.tell_status(status_of_nodes(2), std::nullopt);
    EXPECT_THAT(*board.next_event(seen, kMoment), HasSubstr("\"link\":\"answers\""));
}

TEST(PageBoard, HasNoJsonOfWhatNobodyKnows) {
    PageBoard board("1.2.3");
    EXPECT_EQ(board.text(PageContent::status_json, kMoment), nullptr);
    EXPECT_EQ(board.text(PageContent::history_json, kMoment), nullptr);
    board.tell_status(status_of_nodes(1), std::nullopt);
    board.tell_ledger(running_job(), history_until(kMoment));
    EXPECT_THAT(*board.text(PageContent::status_json, kMoment),
                HasSubstr("\"format\": \"ddpctl status\""));
    EXPECT_THAT(*board.text(PageContent::history_json, kMoment),
                HasSubstr("\"format\": \"ddpctl history\""));
    EXPECT_THAT(*board.text(PageContent::openmetrics, kMoment), testing::EndsWith("\n# EOF\n"));
}

// A node's name must not end the script element in which the first state lies.
TEST(PageHtml, HasNoMarkupOfTheJob) {
    PageBoard board("1.2.3");
    FoundJob job = running_job("</script><script>alert(1)</script><!--");
    board.tell_ledger(job, history_until(kMoment));
    const std::string html = *board.text(PageContent::page, kMoment);
    EXPECT_THAT(html, Not(HasSubstr("</script><script>alert")));
    EXPECT_THAT(html, Not(HasSubstr("<!--")));
    EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cscript>alert(1)"));
    EXPECT_THAT(html, Not(HasSubstr("{{")));
    for (const char* outside : {"http://", "https://", "src=", "@import", "url("})
        EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(PageHtml, AllowsItsOwnScriptAndNothingElse) {
    const std::string policy = page_policy();
    EXPECT_THAT(policy, StartsWith("default-src 'none'; style-src 'sha256-"));
    EXPECT_THAT(policy, HasSubstr("script-src 'sha256-"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

}  // namespace
}  // namespace ddprun::launcher
