// A ddprun that is started at once after another was killed together with its keeper.
#include "agent/node/orphan_search.h"

#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "keeper/killing/orphans.h"
#include "tests/agent/output/output_rig.h"
#include "tests/keeper/sleeper.h"

using namespace ddprun;
using namespace ddprun::agent;

namespace {

struct OrphanSearchTest : testing::Test {
    Rig rig;
    std::vector<std::string> warnings;
    OrphanSearch search{rig.io,
                        [this](const std::string& sentence) { warnings.push_back(sentence); }};
    TemporaryFolder dead = make_temporary_folder(rig.folder);
    Sleeper orphan{{"DDPRUN_STOP_FILE=" + dead.path + "/attempt_0/0/stop.json"}};

    void SetUp() override {
        Origin origin = origin_here(dead.path);
        origin.slurm_job_id = {};
        record_origin(dead, to_json(origin));
    }
    void begin() { search.begin(look_beside({rig.path("ddprun_myself"), {}})); }
};

}  // namespace

TEST_F(OrphanSearchTest, EndsWhatAFolderWithoutOwnerHasLeft) {
    dead.lock.reset();
    begin();
    ASSERT_TRUE(rig.run_until([&] { return !warnings.empty(); }));
    EXPECT_NE(warnings[0].find("left by a ddprun that was killed together with its keeper"),
              std::string::npos)
        << warnings[0];
    EXPECT_TRUE(orphan.was_killed());
    EXPECT_FALSE(std::filesystem::exists(dead.path));
}

// The kernel has not come to the end of the owner when the next ddprun looks for the first time, so
// the lock is still held.
TEST_F(OrphanSearchTest, WaitsForAnOwnerThatIsBeingKilled) {
    begin();
    boost::asio::steady_timer end_of_the_owner(rig.io, std::chrono::milliseconds{120});
    end_of_the_owner.async_wait([&](const auto&) { dead.lock.reset(); });
    ASSERT_TRUE(rig.run_until([&] { return !warnings.empty(); }));
    EXPECT_TRUE(orphan.was_killed());
    EXPECT_FALSE(std::filesystem::exists(dead.path));
}

// Sanitizers see what is used after its end.
TEST_F(OrphanSearchTest, MayGoWhenAWaitIsOver) {
    auto other = std::make_unique<OrphanSearch>(rig.io, [](const std::string&) {});
    other->begin(look_beside({rig.path("ddprun_myself"), {}}));
    std::this_thread::sleep_for(std::chrono::milliseconds{60});  // longer than the first wait
    boost::asio::post(rig.io, [&] { other.reset(); });
    ASSERT_TRUE(rig.run_until([&] { return !other; }));
    rig.io.poll();
    EXPECT_TRUE(std::filesystem::exists(dead.path));
}

// Its owner lives: the looks come to an end, and nothing of it is touched.
TEST_F(OrphanSearchTest, LeavesALivingOneAlone) {
    begin();
    rig.io.restart();
    rig.io.run();
    EXPECT_TRUE(warnings.empty());
    EXPECT_TRUE(orphan.lives());
    EXPECT_TRUE(std::filesystem::exists(dead.path));
}
