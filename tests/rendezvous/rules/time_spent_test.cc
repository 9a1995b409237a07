// The parts of a job's time add up to all of it, whatever happened.
#include "rendezvous/rules/time_spent.h"

#include <gmock/gmock.h>

#include <tuple>

#include "tests/support/builders.h"

namespace ddprun::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Duration kToday = std::chrono::hours{24 * 20000};

// A job's entries, each written so long after its begin.
class Job {
  public:
    Job& generation(Duration after, const TimeFacts& facts = {}, Duration contact = 0s,
                    Duration progress = 0s) {
        return add(MakesGeneration{}, after, facts, contact, progress);
    }
    Job& ends(Verdict verdict, Duration after, const TimeFacts& facts = {}, Duration contact = 0s,
              Duration progress = 0s) {
        return add(EndsJob{test::ending(verdict, 0, "")}, after, facts, contact, progress);
    }
    Job& takeover(Duration after) { return add(TakesOver{}, after, {}, 0s, 0s); }
    Job& allocation(Duration after) {
        ++requeue_;
        return add(BeginsAllocation{}, after, {}, 0s, 0s);
    }
    Job& workers_have_met() {
        met_ = true;
        return *this;
    }
    TimeSpent spent() const {
        EXPECT_EQ(newest().time.spent.all(), newest().time.at - newest().time.begun);
        return newest().time.spent;
    }
    const LedgerEntry& newest() const { return entries_.back(); }
    LedgerEntry& newest() { return entries_.back(); }

  private:
    // `contact`: from the generation's entry before until its first worker called the store.
    Job& add(EntryAct act, Duration after, TimeFacts facts, Duration contact, Duration progress) {
        LedgerEntry entry;
        entry.act = std::move(act);
        entry.requeue = requeue_;
        entry.met = met_;
        entry.restart.times[static_cast<std::size_t>(RestartPhase::contact)].took = contact;
        entry.restart.times[static_cast<std::size_t>(RestartPhase::progress)].took = progress;
        std::tie(facts.now, facts.began) = std::tuple(kToday + after, kToday);
        entry.time = time_until(entry, entries_.empty() ? nullptr : &entries_.back(), facts);
        entries_.push_back(std::move(entry));
        return *this;
    }
    std::vector<LedgerEntry> entries_;
    int requeue_ = 0;
    bool met_ = false;
};

TimeFacts failed(Duration ago) {
    TimeFacts facts;
    facts.over = ago;
    return facts;
}
TimeFacts failed_after(Duration ago, Duration unsaved) {
    TimeFacts facts = failed(ago);
    facts.saves = true;
    facts.unsaved = unsaved;
    return facts;
}

// Its program reports progress and no snapshot.
TEST(TimeSpent, AJobWithOneRestart) {
    Job job;
    job.generation(10s).generation(110s, failed(2s), 3s, 1s);
    job.ends(Verdict::succeeded, 210s, failed(0s), 4s, 2s);
    EXPECT_EQ(job.spent(), (TimeSpent{.waiting = 10s,
                                      .importing = 7s,
                                      .setting_up = 3s,
                                      .training = 188s,
                                      .restarting = 2s}));
}

TEST(TimeSpent, WhatNoSnapshotHasKeptIsLost) {
    Job job;
    job.generation(0s).generation(100s, failed_after(2s, 30s), 3s);
    EXPECT_EQ(job.spent(),
              (TimeSpent{.importing = 3s, .training = 65s, .lost = 30s, .restarting = 2s}));
    // The next generation saves nothing before it fails: all its training is lost.
    job.generation(200s, failed(0s), 10s);
    EXPECT_EQ(job.spent().lost, 120s);
    // The last one succeeds, so what it has not saved is not needed.
    job.ends(Verdict::succeeded, 300s, failed_after(0s, 20s));
    EXPECT_EQ(job.spent().lost, 120s);
    EXPECT_EQ(job.spent().training, 165s);
}

// 20 s of saving in a generation that fails 30 s after its newest snapshot. What was told is more
// than there is left, in the next one.
TEST(TimeSpent, SavingIsAPartOfItsOwn) {
    Job job;
    TimeFacts facts = failed_after(2s, 30s);
    facts.saving = 20s;
    job.generation(0s).generation(100s, facts, 3s);
    EXPECT_EQ(job.spent(),
              (TimeSpent{
                  .importing = 3s, .training = 45s, .lost = 30s, .saving = 20s, .restarting = 2s}));
    facts = failed_after(0s, 4s);
    facts.saving = 20s;
    job.ends(Verdict::work_left, 110s, facts);
    EXPECT_EQ(job.spent().lost, 34s);
    EXPECT_EQ(job.spent().saving, 26s);
    EXPECT_EQ(job.spent().training, 45s);
    EXPECT_THAT(time_lines(job.newest()).at(1), testing::HasSubstr("26.0 s saving snapshots"));
}

// A generation that has not trained has saved nothing, whatever is said.
TEST(TimeSpent, WhatHasNotTrainedHasNotSaved) {
    Job job;
    TimeFacts facts = failed(0s);
    job.generation(0s).generation(50s, facts);
    facts.saving = 5s;
    facts.reached = RestartPhase::contact;
    job.generation(60s, facts);
    EXPECT_EQ(job.spent().saving, 0s);
}

// Two generations fail before the first snapshot of the job.
TEST(TimeSpent, WhatWasBeforeTheFirstSnapshotIsLost) {
    Job job;
    job.generation(0s).generation(50s, failed(0s)).generation(80s, failed(0s));
    EXPECT_EQ(job.spent(), (TimeSpent{.training = 80s})) << "nobody knows";
    job.ends(Verdict::succeeded, 200s, failed_after(0s, 20s));
    EXPECT_EQ(job.spent(), (TimeSpent{.training = 120s, .lost = 80s}));
}

TimeFacts failed_in(std::optional<RestartPhase> reached) {
    TimeFacts facts = failed(0s);
    facts.reached = reached;
    return facts;
}

// The leader was lost as soon as its entry stood, so no node heard of the generation.
TEST(TimeSpent, AGenerationThatNobodyHasRunIsRestarting) {
    Job job;
    job.generation(0s).generation(50s, failed(0s)).generation(80s, failed_in(std::nullopt));
    EXPECT_EQ(job.spent(), (TimeSpent{.training = 50s, .restarting = 30s}));
}

TEST(TimeSpent, WhatFailsBeforeItsFirstProgressHasNotTrained) {
    Job job;
    // Nobody knows yet whether this program reports progress.
    job.generation(0s).generation(10s, failed_in(RestartPhase::contact), 2s);
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 2s, .training = 8s}));
    job.generation(50s, failed_in(RestartPhase::progress));
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 2s, .setting_up = 8s, .training = 40s}));
    job.generation(60s, failed_in(RestartPhase::contact), 3s);
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 5s, .setting_up = 15s, .training = 40s}));
    job.generation(64s, failed_in(RestartPhase::started));
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 9s, .setting_up = 15s, .training = 40s}));
}

// It trains when its workers have met. One that never uses the store trains from its start on.
TEST(TimeSpent, AProgramThatReportsNothing) {
    Job job;
    job.generation(0s).generation(10s, failed_in(RestartPhase::started));
    EXPECT_EQ(job.spent(), (TimeSpent{.training = 10s}));
    job.workers_have_met();
    job.generation(20s, failed_in(RestartPhase::contact), 1s);
    job.generation(30s, failed_in(RestartPhase::started));
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 11s, .training = 19s}));
}

// A host was lost, and the others waited for it.
TEST(TimeSpent, WaitingForANodeIsNoRestarting) {
    LedgerEntry first, next;
    first.act = next.act = MakesGeneration{};
    first.time.begun = first.time.at = kToday;
    next.restart.times[static_cast<std::size_t>(RestartPhase::met)].took = 40s;
    TimeFacts facts = failed(45s);
    facts.now = kToday + 100s;
    EXPECT_EQ(time_until(next, &first, facts).spent,
              (TimeSpent{.waiting = 40s, .training = 55s, .restarting = 5s}));
}

// It was stopped with work left, and waited in the queue.
TEST(TimeSpent, TimeBetweenTwoAllocationsIsWaiting) {
    Job job;
    job.generation(0s).ends(Verdict::work_left, 100s, failed_after(0s, 0s));
    job.allocation(400s).generation(430s).ends(Verdict::succeeded, 500s);
    EXPECT_EQ(job.spent(), (TimeSpent{.waiting = 330s, .training = 170s}));
}

TEST(TimeSpent, NobodyKnowsWhenALostAllocationStoppedTraining) {
    Job job;
    job.generation(0s).takeover(50s).allocation(400s).generation(430s);
    EXPECT_EQ(job.spent(), (TimeSpent{.waiting = 30s, .unknown = 400s}));
}

TEST(TimeSpent, ATakeoverSharesOutNothing) {
    Job job;
    job.generation(10s).takeover(50s);
    EXPECT_EQ(job.spent(), (TimeSpent{.waiting = 10s}));
    EXPECT_EQ(job.ends(Verdict::succeeded, 110s).spent(),
              (TimeSpent{.waiting = 10s, .training = 100s}));
}

// The clocks of two leaders differ, or go back.
TEST(TimeSpent, NoPartIsLargerThanTheWholeOrNegative) {
    Job job;
    job.generation(-5s).generation(10s, failed(9s), 8s).generation(4s, failed(-3s), 8s);
    EXPECT_EQ(job.spent(), (TimeSpent{.importing = 1s, .restarting = 9s}));
}

// A job that an older ddprun has begun.
TEST(TimeSpent, CountsFromWhereItIsRecorded) {
    Job job;
    job.generation(10s);
    job.newest().time = {};
    job.generation(50s, failed(1s)).ends(Verdict::succeeded, 60s);
    EXPECT_EQ(job.spent(), (TimeSpent{.training = 10s}));
}

TEST(TimeLines, SayWhatIsKeptAndWhereTheRestWent) {
    EXPECT_THAT(time_lines({}), IsEmpty());
    Job job;
    job.generation(0s).generation(100s, failed_after(2s, 30s), 3s);
    job.newest().restart.totals.causes = {2, 0, 1, 0, 0};
    EXPECT_THAT(time_lines(job.newest()),
                ElementsAre("of 100.0 s, 65.0 s were training that is kept (65 %)",
                            "the rest: 30.0 s training that no snapshot has kept, 3.0 s starting "
                            "workers and importing, 2.0 s restarting",
                            "restarts by cause: 2 failed workers, 1 lost node"));
    // What is below a second or a percent is left out.
    Job quick;
    quick.generation(0s).generation(100s, failed_after(900ms, 30s), 3s);
    EXPECT_THAT(time_lines(quick.newest()).at(1), Not(HasSubstr("restarting")));
    Job other;
    other.generation(0s).ends(Verdict::succeeded, 100s);
    EXPECT_THAT(time_lines(other.newest()),
                ElementsAre("of 100.0 s, 100.0 s were training (100 %); no snapshot was reported, "
                            "so nobody knows how much of it is kept"));
}

}  // namespace
}  // namespace ddprun::rendezvous
