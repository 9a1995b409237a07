// Which options of a start reach the jobs of a rehearsal, and which lists of faults are accepted.
// Pure.
#include "launcher/options/rehearsal_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Result<Options> start(std::vector<std::string> words) {
    return parse_options(words, {}, {.site = {}, .own = {}, .warnings = {}}, {});
}

std::string refused(std::vector<std::string> words) {
    const auto options = start(std::move(words));
    return options ? "accepted" : options.error().sentence();
}

TEST(RehearsalOrder, OptionsOfOneNodeArePassedOn) {
    const auto options = start({"--rehearse=torn,kill", "--rehearse-seed=7", "--nnodes=2",
                               "--rdzv-id=x", "--nproc-per-node=2", "--no-python", "train", "-x"});
    ASSERT_TRUE(options) << options.error().sentence();
    EXPECT_THAT(
        rehearsal_order(*options, "/bin/ddprun"),
        ElementsAre("--ddprun=/bin/ddprun", "--faults=kill,torn", "--steps=100",
                    "--pattern=", "--format=text", "--seed=7", "--option=--nproc-per-node=2",
                    "--option=--no-python", "--option=--max-restarts=3", "--", "train", "-x"));
}

TEST(RehearsalOrder, RestartsAndHangTimeoutOfTheUserStay) {
    const auto options = start({"--rehearse", "--max-restarts=0", "--hang-timeout=9", "train.py"});
    const auto words = rehearsal_order(options.value(), "ddprun");
    EXPECT_THAT(words, Contains("--faults=kill,stop,node,hang,disk,torn"));
    EXPECT_THAT(words, Contains("--option=--max-restarts=0"));
    EXPECT_THAT(words, Contains("--hang-timeout-given"));
    EXPECT_THAT(words, Not(Contains("--option=--max-restarts=3")));
    EXPECT_THAT(words, Not(Contains(StartsWith("--option=--rehearse"))));
}

TEST(RehearsalOrder, WrongValuesAreRefused) {
    for (const char* list : {"fire", "kill,", "kill,kill", "kill stop", ",kill"})
        EXPECT_THAT(refused({std::string("--rehearse=") + list, "p"}), HasSubstr("list of faults"))
            << list;
    EXPECT_THAT(refused({"--rehearse-steps=50", "p"}), HasSubstr("together with --rehearse"));
    EXPECT_THAT(refused({"--rehearse", "--rehearse-steps=3", "p"}), HasSubstr("from 4 to"));
    EXPECT_THAT(refused({"--rehearse", "--rehearse-pattern=it", "p"}), HasSubstr("group"));
    EXPECT_THAT(refused({"--rehearse", "--dry-run", "p"}), HasSubstr("without --check"));
    EXPECT_THAT(refused({"--rehearse"}), HasSubstr("no program is given"));
}

}  // namespace
}  // namespace ddprun::launcher
