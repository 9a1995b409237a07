// Who waits for whom by the answers of a double of RAS: kinds of faults, each on many jobs that a
// seed makes, in the words of each version. Pure.
#include "diagnosis/nccl/ras_judgement.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "diagnosis/nccl/nccl_watch.h"
#include "diagnosis/nccl/ras_reader.h"
#include "ras_double.h"

namespace ddprun::agent {
namespace {

using namespace test;
using Kind = RasJudgement::Kind;
using testing::HasSubstr;

std::string host_of(int rank) { return "10.0.0." + std::to_string(1 + rank / 8); }
std::int64_t pid_of(int rank) { return 4000 + rank; }
RasJudgement::Process process(int rank) { return {host_of(rank), pid_of(rank)}; }

// All ranks in one communicator, and four at a time in communicators of their own.
PlayedJob job_of(int ranks, std::uint64_t calls) {
    PlayedJob job;
    PlayedCommunicator world{0x5d1c, {}, {}};
    for (int rank = 0; rank < ranks; ++rank) {
        job.processes.push_back({host_of(rank), pid_of(rank)});
        world.members.push_back(rank);
    }
    const auto size = static_cast<std::size_t>(ranks);
    world.launched = {{"AllReduce", std::vector(size, calls)},
                      {"AllGather", std::vector(size, std::uint64_t{7})}};
    job.communicators.push_back(world);
    for (int first = 0; first + 4 <= ranks && ranks > 4; first += 4)
        job.communicators.push_back({0x100u + static_cast<unsigned>(first),
                                     {first, first + 1, first + 2, first + 3},
                                     {{"AllReduce", std::vector(4, calls / 2)}}});
    return job;
}
std::uint64_t& launched(PlayedJob& job, int communicator, const char* operation, int rank) {
    return job.communicators[static_cast<std::size_t>(communicator)]
        .launched[operation][static_cast<std::size_t>(rank)];
}

std::string words(const PlayedJob& job, PlayedVersion version) {
    return version == PlayedVersion::v2_29 ? ras_json(job) : ras_text(job, version);
}
RasJudgement judge(const PlayedJob& job, PlayedVersion version) {
    const auto answer = read_ras_answer(words(job, version));
    EXPECT_TRUE(answer);
    return judge_ras(answer.value_or(RasAnswer()));
}

struct Fault {
    const char* name;
    std::function<void(PlayedJob&, int rank)> plant;  // `rank`: the odd one
    Kind kind;
    bool in_old_text = true;  // NCCL 2.24 tells it, too
};
const Fault kFaults[] = {
    {"one rank is behind", [](PlayedJob& job, int rank) { --launched(job, 0, "AllReduce", rank); },
     Kind::behind},
    {"far behind", [](PlayedJob& job, int rank) { launched(job, 0, "AllReduce", rank) = 0; },
     Kind::behind},
    {"behind in another operation",
     [](PlayedJob& job, int rank) { --launched(job, 0, "AllGather", rank); }, Kind::behind},
    {"behind in two operations",
     [](PlayedJob& job, int rank) {
         --launched(job, 0, "AllReduce", rank);
         --launched(job, 0, "AllGather", rank);
     },
     Kind::behind},
    // The rank itself waits for nobody; its group waits for it, and all others for the group.
    {"the group of a rank is behind, too",
     [](PlayedJob& job, int rank) {
         const int group = 1 + rank / 4, first = rank / 4 * 4;
         for (int i = first; i < first + 4; ++i) {
             --launched(job, 0, "AllReduce", i);
             launched(job, group, "AllReduce", i - first) += i != rank;
         }
     },
     Kind::behind},
    {"one communicator of many",
     [](PlayedJob& job, int rank) { --launched(job, 1 + rank / 4, "AllReduce", rank % 4); },
     Kind::behind},
    {"silent",
     [](PlayedJob& job, int rank) { job.processes[static_cast<std::size_t>(rank)].silent = true; },
     Kind::lost},
    {"silent, and others are behind",
     [](PlayedJob& job, int rank) {
         job.processes[static_cast<std::size_t>(rank)].silent = true;
         --launched(job, 0, "AllReduce", rank ^ 1);
     },
     Kind::lost},
    {"dead",
     [](PlayedJob& job, int rank) { job.processes[static_cast<std::size_t>(rank)].dead = true; },
     Kind::lost},
    {"missing", [](PlayedJob& job, int rank) { job.communicators[0].absent.insert(rank); },
     Kind::lost},
    {"an error", [](PlayedJob& job, int rank) { job.communicators[0].errors[rank] = 6; },
     Kind::lost},
    {"another call",
     [](PlayedJob& job, int rank) {
         --launched(job, 0, "AllReduce", rank);
         ++launched(job, 0, "AllGather", rank);
     },
     Kind::differ, false},
};

TEST(RasJudgement, TwelveKindsOfFaults) {
    int played = 0, right = 0;
    for (const Fault& fault : kFaults)
        for (unsigned seed = 0; seed < 20; ++seed)
            for (const auto version :
                 {PlayedVersion::v2_24, PlayedVersion::v2_27, PlayedVersion::v2_29}) {
                if (version == PlayedVersion::v2_24 && !fault.in_old_text) continue;
                std::mt19937 random(seed);
                const int ranks = 8 << random() % 4;
                const int odd = static_cast<int>(random() % static_cast<unsigned>(ranks));
                PlayedJob job = job_of(ranks, 20 + random() % 1000);
                fault.plant(job, odd);
                const RasJudgement found = judge(job, version);
                ++played;
                bool good = found.kind == fault.kind;
                for (int rank = 0; rank < ranks; ++rank) {
                    const bool awaited = rank == odd && fault.kind != Kind::differ;
                    good &= found.part_of(process(rank)) ==
                            (awaited ? NcclPart::is_awaited : NcclPart::waits);
                }
                if (fault.kind == Kind::differ)
                    good &= found.operation_of(process(odd)) == "AllGather" &&
                            found.operation_of(process(odd ^ 1)) != "AllGather";
                right += good;
                EXPECT_TRUE(good) << fault.name << ", seed " << seed << ", rank " << odd << " of "
                                  << ranks << ": " << found.sentence << "\n"
                                  << (seed == 0 ? words(job, version) : "");
            }
    EXPECT_GE(right * 100, played * 95);
}

TEST(RasJudgement, Sentences) {
    PlayedJob behind = job_of(32, 641);
    --launched(behind, 0, "AllReduce", 12);
    for (const auto version : {PlayedVersion::v2_27, PlayedVersion::v2_29})
        EXPECT_EQ(judge(behind, version).sentence,
                  "rank 12 has launched 640 AllReduce operations, and 31 ranks 641");
    EXPECT_EQ(judge(behind, PlayedVersion::v2_24).sentence,
              "rank 12 has launched 647 operations, and 31 ranks 648");

    PlayedJob group = job_of(32, 641);
    --launched(group, 2, "AllReduce", 1);
    EXPECT_EQ(judge(group, PlayedVersion::v2_29).sentence,
              "rank 1 of the 4 of communicator 104 (process 4005 on 10.0.0.1) has launched 319 "
              "AllReduce operations, and 3 ranks 320");

    PlayedJob lost = job_of(32, 641);
    lost.processes[5].silent = true;
    lost.processes[9].dead = true;
    lost.communicators[0].absent = {3};
    lost.communicators[0].errors = {{2, 6}};
    EXPECT_EQ(judge(lost, PlayedVersion::v2_29).sentence,
              "rank 2 (process 4002 on 10.0.0.1) reports: Remote process error; rank 3 "
              "(process 4003 on 10.0.0.1) is missing in its communicator; rank 5 (process 4005 on "
              "10.0.0.1) does not answer; rank 9 (process 4009 on 10.0.0.2) has not answered for a "
              "minute");
    EXPECT_EQ(judge(lost, PlayedVersion::v2_24).sentence.find("rank 5"), std::string::npos)
        << "it is not said twice: of which process it is, is told apart";

    PlayedJob differ = job_of(4, 100);
    --launched(differ, 0, "AllReduce", 1);
    ++launched(differ, 0, "AllGather", 1);
    EXPECT_EQ(judge(differ, PlayedVersion::v2_29).sentence,
              "rank 1 has launched 8 AllGather operations, and 3 ranks 7; rank 1 has launched 99 "
              "AllReduce operations, and 3 ranks 100");

    EXPECT_EQ(judge(job_of(32, 641), PlayedVersion::v2_29).sentence,
              "no rank is behind, all 32 have launched 641 AllReduce operations: if they wait in "
              "it, the network or a kernel stands still");
    EXPECT_EQ(judge(job_of(32, 641), PlayedVersion::v2_27).sentence, "");
}

// A process that is not in an answer is of another job.
TEST(RasJudgement, AnotherJobsAnswerSaysNothing) {
    PlayedJob job = job_of(8, 10);
    --launched(job, 0, "AllReduce", 3);
    const RasJudgement found = judge(job, PlayedVersion::v2_29);
    EXPECT_EQ(found.part_of({"10.0.0.1", 77}), NcclPart::unknown);
    EXPECT_EQ(found.part_of({"10.0.0.9", 4000}), NcclPart::unknown);
}

TEST(RasJudgement, ACommunicatorThatEndsDoesNotCount) {
    const auto answer = read_ras_answer(
        R"({"communicators":[{"hash":"0x1","size":2,"ranks":[)"
        R"({"rank":0,"host":"h","pid":1,"status":{"finalize_called":true},"collective_counts":{"AllReduce":5}},)"
        R"({"rank":1,"host":"h","pid":2,"collective_counts":{"AllReduce":4}}]}]})");
    EXPECT_EQ(judge_ras(*answer).kind, Kind::nothing);
}

Time at(int seconds) { return Time{} + std::chrono::seconds{seconds + 1000}; }
RasAnswer answer_of(const PlayedJob& job) { return *read_ras_answer(ras_json(job)); }
const std::vector<std::int64_t> kPids = {4000, 4001, 4002, 0};
const std::vector<std::string> kHosts = {"127.0.0.1", "10.0.0.1"};

TEST(NcclWatch, TellsOnlyWhatTwoAnswersHaveAlike) {
    NcclWatch watch;
    PlayedJob job = job_of(4, 10);
    --launched(job, 0, "AllReduce", 1);
    watch.answered(at(0), answer_of(job));
    EXPECT_EQ(watch.states(kPids, kHosts)[1].part, NcclPart::unknown);
    for (int rank = 0; rank < 4; ++rank) launched(job, 0, "AllReduce", rank) += 3;
    watch.answered(at(5), answer_of(job));
    EXPECT_EQ(watch.states(kPids, kHosts)[1].part, NcclPart::unknown);
    watch.answered(at(10), answer_of(job));
    const auto states = watch.states(kPids, kHosts);
    EXPECT_EQ(states[0].part, NcclPart::waits);
    EXPECT_EQ(states[1].part, NcclPart::is_awaited);
    EXPECT_EQ(states[3].part, NcclPart::unknown);  // it has ended
    EXPECT_EQ(states[1].moved_at, at(5));
    watch.unanswered(at(15));
    EXPECT_EQ(watch.states(kPids, kHosts)[1].part, NcclPart::unknown);
}

TEST(NcclWatch, LearnsHowLongTheJobUsuallyPauses) {
    NcclWatch watch;
    PlayedJob job = job_of(4, 10);
    watch.answered(at(0), answer_of(job));
    for (int second = 5; second <= 40; second += 5) watch.answered(at(second), answer_of(job));
    ++launched(job, 0, "AllReduce", 0);
    watch.answered(at(45), answer_of(job));
    watch.answered(at(50), answer_of(job));
    EXPECT_EQ(watch.states(kPids, kHosts)[0].usual, std::chrono::seconds{45});
}

TEST(NcclWatch, AsksLessOftenInALargeJobAndWhereNobodyAnswers) {
    NcclWatch watch;
    EXPECT_TRUE(watch.is_due(at(0)));
    watch.answered(at(1), answer_of(job_of(8, 1)));
    EXPECT_FALSE(watch.is_due(at(2)));
    EXPECT_TRUE(watch.is_due(at(3)));
    watch.answered(at(6), answer_of(job_of(512, 1)));
    EXPECT_FALSE(watch.is_due(at(31)));
    EXPECT_TRUE(watch.is_due(at(32)));
    for (const int wait : {2, 4, 8, 16, 32, 60, 60}) {
        watch.unanswered(at(100));
        EXPECT_FALSE(watch.is_due(at(100 + wait - 1)));
        EXPECT_TRUE(watch.is_due(at(100 + wait)));
    }
}

// A thousand looks at jobs that move, or in which all ranks pause: nobody is awaited.
TEST(NcclWatch, HealthyJobsSayNothing) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        NcclWatch watch;
        PlayedJob job = job_of(4 << random() % 3, 10);
        bool pauses = false;
        for (int look = 0; look < 50; ++look) {
            if (look % 10 == 0) pauses = !pauses && seed % 2 == 0;
            auto& counts = job.communicators[0].launched["AllReduce"];
            const std::uint64_t most = *std::ranges::max_element(counts);
            // All have come to the same call, or each is somewhere in the newest steps.
            for (std::uint64_t& count : counts) count = most + (pauses ? 0 : 2 + random() % 2);
            watch.answered(at(5 * look), answer_of(job));
            for (const NcclState& state : watch.states(kPids, kHosts))
                EXPECT_EQ(state.part, NcclPart::unknown);
        }
    }
}

}  // namespace
}  // namespace ddprun::agent
