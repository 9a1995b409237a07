// What is read from answers of RAS. The files in tests/data/nccl_ras are written after NCCL's
// documentation and sources, and none was recorded from a job. Pure.
#include "diagnosis/nccl/ras_reader.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ddprun::agent {
namespace {

using Wrong = RasFault::Kind;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

std::string file(const std::string& name) {
    std::ifstream stream(std::string(DDPRUN_TEST_DATA) + "/" + name);
    std::stringstream text;
    text << stream.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    return text.str();
}
RasAnswer read(const std::string& name) {
    const auto answer = read_ras_answer(file(name));
    EXPECT_TRUE(answer) << name;
    return answer.value_or(RasAnswer());
}

TEST(RasReader, TextNamesTheOneRankThatIsBehind) {
    const RasAnswer answer = read("behind_2.28.txt");
    EXPECT_EQ(answer.version, "2.28.3");
    EXPECT_EQ(answer.processes, 32);
    const RasCounts counts{"AllGather", {{641, 31, {}}, {640, 1, {{12, "10.4.0.12", 70412}}}}};
    EXPECT_THAT(answer.communicators,
                ElementsAre(RasCommunicator{"5d1c9be2a07f3346", 32, false, {counts}, {}}));
}

// Before 2.26 the operations are not told apart, and a process may be unknown.
TEST(RasReader, TextOf224) {
    const RasAnswer answer = read("behind_2.24.txt");
    EXPECT_EQ(answer.processes, 14);
    const RasCounts counts{"", {{77, 12, {}}, {76, 2, {{3, "fe80::21", 901}, {9, "", 0}}}}};
    EXPECT_THAT(answer.communicators,
                ElementsAre(RasCommunicator{"00c4f10b9a3d2e51", 14, false, {counts}, {}}));
}

TEST(RasReader, TextNamesProcessesThatDoNotAnswerAndErrors) {
    const RasAnswer answer = read("silent_2.27.txt");
    EXPECT_THAT(answer.processes_lost, ElementsAre(RasFault{Wrong::silent, {-1, "10.4.0.13", 3105}},
                                                   RasFault{Wrong::dead, {-1, "10.4.0.13", 3107}}));
    ASSERT_EQ(answer.communicators.size(), 2u);
    const RasCommunicator& world = answer.communicators[0];
    EXPECT_EQ(world.size, 8);
    EXPECT_THAT(world.faults,
                ElementsAre(RasFault{Wrong::silent, {5, "10.4.0.13", 3105}},
                            RasFault{Wrong::failed, {2, "10.4.0.12", 2206}, "Remote process error"},
                            RasFault{Wrong::absent, {6, "10.4.0.13", 3106}}));
    EXPECT_THAT(
        world.counts,
        ElementsAre(RasCounts{
            "AllReduce",
            {{12, 4, {}}, {11, 1, {{0, "10.4.0.12", 2204}}}, {0, 1, {{1, "10.4.0.12", 2205}}}}}));
    EXPECT_FALSE(world.ends);
    EXPECT_TRUE(answer.communicators[1].ends);
}

TEST(RasReader, TextOf224ListsMissingRanks) {
    EXPECT_THAT(
        read("missing_2.24.txt").communicators.at(0).faults,
        ElementsAre(RasFault{Wrong::silent, {20, "", 0}}, RasFault{Wrong::silent, {21, "", 0}}));
}

TEST(RasReader, JsonHasAllRanks) {
    const RasAnswer answer = read("behind_2.29.json");
    EXPECT_EQ(answer.version, "2.29.2");
    EXPECT_EQ(answer.processes, 3);
    const RasRank first{0, "10.4.0.12", 501}, second{1, "10.4.0.12", 502};
    ASSERT_EQ(answer.communicators.size(), 2u);
    EXPECT_EQ(answer.communicators[0],
              (RasCommunicator{
                  "3f90c1d6ab25e874",
                  3,
                  false,
                  {{"AllReduce", {{40, 1, {second}}, {41, 1, {first}}}},
                   {"Broadcast", {{3, 2, {first, second}}}}},
                  {{Wrong::failed, second, "Remote process error"}, {Wrong::silent, {2, "", 0}}}}));
    EXPECT_TRUE(answer.communicators[1].ends);
    EXPECT_THAT(answer.communicators[1].faults, IsEmpty());
}

// Those that tests/gpu.sh has got from NCCL itself.
TEST(RasReader, RecordedAnswersOfNcclAreRead) {
    const char* folder = std::getenv("DDPRUN_RAS_ANSWERS");
    if (!folder) GTEST_SKIP() << "DDPRUN_RAS_ANSWERS is not set";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        const auto answer = read_ras_answer(text.str());
        ASSERT_TRUE(answer) << entry.path();
        EXPECT_FALSE(answer->version.empty()) << entry.path();
        EXPECT_GE(answer->processes, 1) << entry.path();
    }
}

// A half answer must not look like one without faults.
TEST(RasReader, HalfAnAnswerIsNone) {
    for (const char* name : {"behind_2.28.txt", "silent_2.27.txt", "behind_2.29.json"}) {
        const std::string whole = file(name);
        for (std::size_t size = 0; size < whole.size() / 2; size += 7)
            EXPECT_FALSE(read_ras_answer(whole.substr(0, size))) << name << " " << size;
    }
}

TEST(RasReader, AnythingElseIsNone) {
    for (const std::string text :
         {"", "\n", "ERROR: Unknown command SET FORMAT json\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
          "{", "{}", "{\"communicators\":7}", "[1]", "Warnings\n"})
        EXPECT_FALSE(read_ras_answer(text)) << text;
    EXPECT_FALSE(read_ras_answer(std::string(kLongestRasAnswer + 1, ' ')));
    std::string deep = "{\"communicators\":[],\"x\":";
    for (int i = 0; i < 100000; ++i) deep += "[";
    EXPECT_FALSE(read_ras_answer(deep));
}

// 16 MiB of the worst kind take seconds where something goes over all for each line.
TEST(RasReader, ManyCommunicatorsAreRead) {
    std::string text = "NCCL version 2.27.3 compiled\n";
    for (int i = 0; i < 200000; ++i)
        text += "#0-" + std::to_string(i) + " (" + std::to_string(i) + ") MISMATCH\n";
    const auto answer = read_ras_answer(text + "Warnings\n");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->communicators.size(), 200000u);
}

TEST(RasReader, NamesArePlain) {
    const auto answer = read_ras_answer(
        R"({"communicators":[{"hash":"0xab\u001b[31m","size":1e9,"ranks":[{"rank":-5,)"
        R"("host":"a\nb","pid":-3,"collective_counts":{"All\"Reduce":1,"x":-1,"y":1.5}}]}]})");
    ASSERT_TRUE(answer);
    const RasCommunicator& only = answer->communicators.at(0);
    EXPECT_EQ(only.hash, "ab31m");
    EXPECT_EQ(only.size, 0);
    EXPECT_EQ(only.counts, (std::vector<RasCounts>{{"AllReduce", {{1, 1, {{-1, "ab", 0}}}}}}));
}

}  // namespace
}  // namespace ddprun::agent
