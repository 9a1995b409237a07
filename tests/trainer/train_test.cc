// The program `train` itself: its place from the environment, crash and restart, damaged snapshots,
// wrong options.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using test::Ends;
using test::run_program;
using testing::HasSubstr;

const std::vector<std::string> kTrain{DDPRUN_TRAIN, "--steps=60", "--snapshot-every=10",
                                      "--timeout=20", "--backend=gloo"};

std::vector<std::string> train(std::vector<std::string> more) {
    more.insert(more.begin(), kTrain.begin(), kTrain.end());
    return more;
}

std::string last_line(const fs::path& file) {
    std::ifstream in(file);
    std::string line, last;
    while (std::getline(in, line)) last = line;
    return last;
}

// The final line of a run without snapshots or crash.
std::string plain_result(int world, const fs::path& folder) {
    EXPECT_EQ(run_program(world, 0, kTrain, folder), Ends(world, 0))
        << test::read_all(folder / "0");
    return last_line(folder / "0");
}

// Two runs end with the same bits, and the loss has fallen.
TEST(Train, IsDeterministic) {
    test::TemporaryFolder folder;
    const std::string once = plain_result(3, folder.path() / "a");
    EXPECT_THAT(once, testing::MatchesRegex("loss=[0-9.e-]+ checksum=[0-9a-f]+"));
    EXPECT_EQ(plain_result(3, folder.path() / "b"), once);
    EXPECT_THAT(test::read_all(folder.path() / "a" / "0"), HasSubstr("step=10 loss="));
}

// A rank kills itself in the first generation; the second resumes from the snapshot and ends with
// the same bits.
TEST(Train, EndsWithTheSameBitsAfterACrash) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(2, folder.path() / "plain");
    const auto command =
        train({"--snapshot-dir", folder.path() / "s", "--crash-at-step=37", "--crash-rank=1"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({1, -9}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"),
                HasSubstr("resumed from snapshot-000000000030-g0 at step 30"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// The newest snapshot is cut short between crash and restart: a warning, the one before, the same
// bits.
TEST(Train, FallsBackToTheSnapshotBefore) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(2, folder.path() / "plain");
    const auto command =
        train({"--snapshot-dir", folder.path() / "s", "--crash-at-step=37", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    fs::resize_file(folder.path() / "s" / "snapshot-000000000030-g0.safetensors", 5000);
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    const std::string output = test::read_all(folder.path() / "g1" / "0");
    EXPECT_THAT(output, HasSubstr("snapshot-000000000030-g0.json is skipped"));
    EXPECT_THAT(output, HasSubstr("at step 20"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// The same with a rate that changes in each step, and clipping.
TEST(Train, GoesOnWithItsSchedule) {
    test::TemporaryFolder folder;
    const std::vector<std::string> options{"--lr=0.01", "--reference-batch=32", "--warm-up=0.4",
                                           "--cosine=0.9", "--clip=0.5"};
    auto command = train(options);
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "plain"), Ends({0, 0}));
    const std::string expected = last_line(folder.path() / "plain" / "0");
    EXPECT_NE(expected, plain_result(2, folder.path() / "constant"));
    command.insert(command.end(),
                   {"--snapshot-dir", folder.path() / "s", "--crash-at-step=37", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// Rank 1 alone finds the file that says the end is near: all stop after the same step, with a
// snapshot, and go on from there later.
TEST(Train, StopsOnAllRanksWhenOneIsTold) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(3, folder.path() / "plain");
    test::write_all(folder.path() / "stop.json", "{}");
    auto command = train({"--snapshot-dir", folder.path() / "s"});
    std::vector<std::string> told{"/bin/sh", "-c",
                                  "[ $RANK != 1 ] || export DDPRUN_STOP_FILE=$0; exec \"$@\"",
                                  folder.path() / "stop.json"};
    told.insert(told.end(), command.begin(), command.end());
    EXPECT_EQ(run_program(3, 0, told, folder.path() / "g0"), Ends({143, 143, 143}));
    EXPECT_EQ(run_program(3, 1, command, folder.path() / "g1"), Ends({0, 0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"),
                HasSubstr("resumed from snapshot-000000000001-g0 at step 1\n"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// A rate that makes the numbers overflow: no rank goes on, and the parameter is named.
TEST(Train, NamesAGradientThatIsNoNumber) {
    test::TemporaryFolder folder;
    EXPECT_EQ(run_program(2, 0, train({"--lr=1e6", "--momentum=1"}), folder.path()), Ends({1, 1}));
    EXPECT_THAT(test::read_all(folder.path() / "1"),
                testing::ContainsRegex(
                    "train: the gradient of \"w[12]\" is not a finite number on rank [01]"));
}

// A snapshot of another model, other data or another seed is refused, and says which.
TEST(Train, RefusesAForeignSnapshot) {
    test::TemporaryFolder folder;
    const auto command = train({"--snapshot-dir", folder.path() / "s"});
    ASSERT_EQ(run_program(1, 0, command, folder.path() / "a"), Ends({0}));
    const std::pair<const char*, const char*> mistakes[] = {
        {"--hidden=65", "has no \"w1\" of 1040 floats; was it written with other --hidden"},
        {"--samples=100", "is outside of the data set (100 samples)"},
        {"--seed=2", "was written with another --seed"}};
    int generation = 1;
    for (const auto& [option, sentence] : mistakes) {
        auto other = command;
        other.push_back(option);
        const fs::path output = folder.path() / std::to_string(generation);
        EXPECT_EQ(run_program(1, generation++, other, output), Ends({2})) << option;
        EXPECT_THAT(test::read_all(output / "0"), HasSubstr(sentence));
    }
}

// Nothing gets better without a rate: the first validation is the best, the third after it ends
// the training on all ranks; so it is after a crash between them, and for the job once it is over.
TEST(Train, StopsEarly) {
    test::TemporaryFolder folder;
    const auto command = train({"--lr=0", "--validate-every=4", "--patience=2", "--snapshot-dir",
                                folder.path() / "s", "--crash-at-step=13"});
    EXPECT_EQ(run_program(3, 0, command, folder.path() / "g0"), Ends({-9, 1, 1}));
    for (int generation : {1, 2}) {
        const fs::path output = folder.path() / std::to_string(generation);
        EXPECT_EQ(run_program(3, generation, command, output), Ends({0, 0, 0}));
        const std::string text = test::read_all(output / "0");
        EXPECT_THAT(text, HasSubstr(generation == 1 ? "at step 10\n" : "at step 16\n"));
        EXPECT_EQ(text.find("step=16 ") != std::string::npos, generation == 1) << text;
        EXPECT_EQ(text.find("step=20"), std::string::npos) << text;
    }
}

// A job that is complete gives its result again without a step, with the same bits.
TEST(Train, RepeatsTheResultOfACompleteJob) {
    test::TemporaryFolder folder;
    const auto command = train({"--snapshot-dir", folder.path() / "s"});
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "a"), Ends({0, 0}));
    ASSERT_EQ(run_program(2, 1, command, folder.path() / "b"), Ends({0, 0}));
    EXPECT_EQ(last_line(folder.path() / "b" / "0"), last_line(folder.path() / "a" / "0"));
}

// A snapshot of two ranks is taken up by three: its content does not know the world size.
TEST(Train, ResumesAtAnotherWorldSize) {
    test::TemporaryFolder folder;
    const auto command = train({"--snapshot-dir", folder.path() / "s", "--crash-at-step=37"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({-9, 1}));
    EXPECT_EQ(run_program(3, 1, command, folder.path() / "g1"), Ends({0, 0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"), HasSubstr("at step 30"));
}

// Wrong options end with code 2 and one line.
TEST(Train, RefusesWrongOptions) {
    test::TemporaryFolder folder;
    int number = 0;
    for (const char* option :
         {"--stepz=3", "--steps=x", "--steps=-1", "--lr=nan", "--backend=mpi", "--seed"}) {
        const fs::path output = folder.path() / std::to_string(number++);
        EXPECT_EQ(run_program(1, 0, {DDPRUN_TRAIN, option}, output), Ends({2})) << option;
        const std::string text = test::read_all(output / "0");
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    }
}

// A CSV of numbers is trained on; a wrong line is named.
TEST(Train, ReadsData) {
    test::TemporaryFolder folder;
    test::write_all(folder.path() / "good.csv", "# x, y\n1,2,3\n4, 5 ,6\n");
    test::write_all(folder.path() / "bad.csv", "1,2,3\n1,2\n");
    EXPECT_EQ(run_program(1, 0, train({"--data", folder.path() / "good.csv"}), folder.path() / "a"),
              Ends({0}));
    EXPECT_EQ(run_program(1, 0, train({"--data", folder.path() / "bad.csv"}), folder.path() / "b"),
              Ends({1}));
    EXPECT_THAT(test::read_all(folder.path() / "b" / "0"), HasSubstr("bad.csv:2: not a row"));
}

// The validation of three ranks is that of one with the same parameters, and is written as JSON.
TEST(Train, ValidatesOverRanks) {
    test::TemporaryFolder folder;
    for (int world : {1, 3}) {
        const fs::path metrics = folder.path() / (std::to_string(world) + ".jsonl");
        const auto command = train({"--lr=0", "--validate-every=30", "--metrics", metrics});
        EXPECT_EQ(run_program(world, 0, command, folder.path() / std::to_string(world)),
                  Ends(static_cast<std::size_t>(world), 0));
    }
    auto validation = [&](const char* name) {
        const std::string text = last_line(folder.path() / name);
        const auto at = text.find("\"validation\":");
        return at == std::string::npos ? -1 : std::atof(text.c_str() + at + 13);
    };
    EXPECT_GT(validation("1.jsonl"), 0);
    EXPECT_NEAR(validation("3.jsonl"), validation("1.jsonl"), 1e-6);
}

// A failure leaves the worker's own account where the launcher looks for it.
TEST(Train, LeavesAnErrorFile) {
    test::TemporaryFolder folder;
    const fs::path account = folder.path() / "error.json";
    ASSERT_EQ(setenv("TORCHELASTIC_ERROR_FILE", account.c_str(), 1), 0);
    EXPECT_EQ(run_program(1, 0, {DDPRUN_TRAIN, "--data", "nowhere.csv"}, folder.path() / "o"),
              Ends({1}));
    unsetenv("TORCHELASTIC_ERROR_FILE");
    EXPECT_THAT(test::read_all(account),
                testing::AllOf(HasSubstr("\"message\":{\"message\":\"not_found: "),
                               HasSubstr("nowhere.csv"), HasSubstr("\"timestamp\"")));
}

}  // namespace
}  // namespace ddprun::trainer
