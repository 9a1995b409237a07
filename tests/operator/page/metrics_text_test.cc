// The metrics of a job: the whole text as it was reviewed, and what is left out.
#include "operator/page/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/operator/page/page_examples.h"

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

PageView view_of_job() {
    PageView view;
    view.link = PageView::Link::answers;
    view.status = status_in_all_states(20);
    view.job = running_job();
    view.history = history_until(kMoment);
    return view;
}
std::string text_of(const PageView& view, MetricsFormat format = MetricsFormat::prometheus) {
    return metrics_text(view, kMoment, "1.2.3", format);
}

// tests/data/page; DDPRUN_REWRITE=1 writes the files anew.
void compare(const std::string& text, const std::string& name) {
    const std::string path = std::string(DDPRUN_TEST_DATA) + "/page/" + name;
    if (std::getenv("DDPRUN_REWRITE")) std::ofstream(path) << text;
    std::stringstream golden;
    golden << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, golden.str()) << path;
}

TEST(MetricsText, IsAsReviewed) {
    compare(text_of(view_of_job()), "metrics.prom");
    compare(text_of(view_of_job(), MetricsFormat::openmetrics), "metrics.openmetrics");
}

// Only what the ledger tells: a number that is no longer true is worse than none.
TEST(MetricsText, LeavesOutWhatALostLeaderWouldTell) {
    PageView view = view_of_job();
    view.link = PageView::Link::lost;
    view.heard = kMoment - std::chrono::milliseconds{2500};
    const std::string text = text_of(view);
    EXPECT_THAT(text, HasSubstr("ddprun_up{run=\"lab.8812.0\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("ddprun_last_word_age_seconds{run=\"lab.8812.0\"} 2.5\n"));
    EXPECT_THAT(text, HasSubstr("ddprun_generation{run=\"lab.8812.0\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("ddprun_restarts_total{run=\"lab.8812.0\",cause=\"worker\"} 1\n"));
    for (const char* gone : {"ddprun_nodes", "ddprun_step", "ddprun_waiting", "generation_runs"})
        EXPECT_THAT(text, Not(HasSubstr(gone)));
}

TEST(MetricsText, KnowsTheEndOfAJob) {
    PageView view = view_of_job();
    view.link = PageView::Link::ended;
    view.history = ended_history(kMoment);
    EXPECT_THAT(text_of(view), HasSubstr("ddprun_ended{run=\"lab.8812.0\"} 1\n"));
    EXPECT_THAT(text_of(view), HasSubstr("ddprun_exit_code{run=\"lab.8812.0\"} 7\n"));
}

// A job before its first generation has no number that would mean another thing.
TEST(MetricsText, HasNoNumberForNone) {
    PageView view;
    view.job = new_job("lab.1.0");
    const std::string text = text_of(view);
    EXPECT_THAT(text, HasSubstr("ddprun_up{run=\"lab.1.0\"} 0\n"));
    EXPECT_THAT(text, Not(HasSubstr("ddprun_generation")));
    EXPECT_THAT(text, Not(HasSubstr("-1")));
    view.link = PageView::Link::answers;
    view.status = status_of_nodes(1);
    view.status->set_generation(-1);
    view.status->set_step(-1);
    view.status->set_snapshot(-1);
    EXPECT_THAT(text_of(view), Not(HasSubstr("-1")));
}

TEST(MetricsText, EscapesTheNameOfTheJob) {
    PageView view;
    view.job = new_job("a\"b\\c\nd");
    EXPECT_THAT(text_of(view), HasSubstr("ddprun_up{run=\"a\\\"b\\\\c\\\\nd\"} 0\n"));
}

}  // namespace
}  // namespace ddprun::launcher
