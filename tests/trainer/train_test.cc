// The example program `train` itself, as real processes: its place from the environment, crash and
// restart, damaged snapshots, wrong options. Results are compared by their bits.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using test::Ends;
using test::run_program;
using testing::HasSubstr;

// 60 steps take a moment, and have several snapshots. 20 s are the group's time-out for each call.
// Gloo is used everywhere, so that machines with and without GPUs run the same.
const std::vector<std::string> kTrain{DDPRUN_TRAIN, "--steps=60", "--timeout=20", "--backend=gloo"};

// The same command with more options.
std::vector<std::string> train(std::vector<std::string> more) {
    more.insert(more.begin(), kTrain.begin(), kTrain.end());
    return more;
}

// The result: loss and checksum of the parameters.
std::string last_line(const fs::path& file) {
    std::ifstream in(file);
    std::string line, last;
    while (std::getline(in, line)) last = line;
    return last;
}

// The result of an undisturbed run, without snapshots or crash. The others are measured by it.
std::string plain_result(int world, const fs::path& folder) {
    EXPECT_EQ(run_program(world, 0, kTrain, folder), Ends(world, 0))
        << test::read_all(folder / "0");
    return last_line(folder / "0");
}

// Two runs end with the same bits. All other tests here build on that.
TEST(Train, IsDeterministic) {
    test::TemporaryFolder folder;
    const std::string once = plain_result(3, folder.path() / "a");
    EXPECT_THAT(once, testing::MatchesRegex("loss=[0-9.e-]+ checksum=[0-9a-f]+"));
    EXPECT_EQ(plain_result(3, folder.path() / "b"), once);
    EXPECT_THAT(test::read_all(folder.path() / "a" / "0"), HasSubstr("step=10 loss="));
}

// The main promise: rank 1 kills itself before step 37 of the first generation, the second one
// resumes from the snapshot of step 30 and ends with the same bits as an undisturbed run. Momentum,
// sampler and learning rate have to come back as well.
TEST(Train, EndsWithTheSameBitsAfterACrash) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(2, folder.path() / "plain");
    const auto command = train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s",
                                "--crash-at-step=37", "--crash-rank=1"});
    // Rank 0 notices that rank 1 is gone and fails by itself (1).
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({1, -9}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"),
                HasSubstr("resumed from snapshot-000000000030-g0 at step 30"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// The newest snapshot is cut short between crash and restart, as by a file system that lost its
// last writes. A warning, the snapshot before, ten steps more, and still the same bits.
TEST(Train, FallsBackToTheSnapshotBefore) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(2, folder.path() / "plain");
    const auto command = train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s",
                                "--crash-at-step=37", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    fs::resize_file(folder.path() / "s" / "snapshot-000000000030-g0.safetensors", 5000);
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    const std::string output = test::read_all(folder.path() / "g1" / "0");
    EXPECT_THAT(output, HasSubstr("snapshot-000000000030-g0.json is skipped"));
    EXPECT_THAT(output, HasSubstr("at step 20"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// The disk is full. The training goes on, says once for each snapshot that it is not saved, and
// saves again as soon as there is room: here when the second warning is out. (It has 140 steps left
// then, of 20 ms each.)
TEST(Train, GoesOnWithoutRoomForItsSnapshots) {
    if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    test::TemporaryFolder folder;
    const fs::path disk = folder.path() / "disk", filler = disk / "filler",
                   output = folder.path() / "g0" / "0";
    fs::create_directory(disk);
    if (unshare(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
        mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m"))
        GTEST_SKIP() << "mounting is not allowed here";
    {
        std::ofstream all(filler, std::ios::binary);
        for (const std::string page(4096, 'x'); all.write(page.data(), 4096).flush();) continue;
    }
    std::atomic<bool> ended = false;
    const auto warnings = [&] {
        const std::string text = test::read_all(output);
        std::size_t count = 0;
        for (auto at = text.find("No space left"); at != std::string::npos;
             at = text.find("No space left", at + 1))
            count += text.find("the next save tries again", at) < text.find('\n', at);
        return count;
    };
    std::thread makes_room([&] {
        while (!ended && warnings() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        fs::remove(filler);
    });
    auto command =
        train({"--snapshot-every=10", "--snapshot-dir", disk / "s", "--step-time-ms=20"});
    command[1] = "--steps=160";
    const auto ends = run_program(2, 0, command, folder.path() / "g0");
    ended = true;
    makes_room.join();
    EXPECT_EQ(ends, Ends({0, 0})) << test::read_all(output);
    EXPECT_GE(warnings(), 2u);
    EXPECT_LE(warnings(), 15u);
    EXPECT_TRUE(fs::exists(disk / "s" / "snapshot-000000000160-g0.json"));
    EXPECT_THAT(last_line(output), HasSubstr("loss="));
    (void)umount2(disk.c_str(), MNT_DETACH);
}

// The same with a learning rate that changes in each step, and with clipping. A schedule that
// counts from the restart on, instead of from the start, gives other bits.
TEST(Train, GoesOnWithItsSchedule) {
    test::TemporaryFolder folder;
    const std::vector<std::string> options{"--lr=0.01", "--reference-batch=32", "--warm-up=0.4",
                                           "--cosine=0.9", "--clip=0.5"};
    auto command = train(options);
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "plain"), Ends({0, 0}));
    const std::string expected = last_line(folder.path() / "plain" / "0");
    // The options have an effect at all.
    EXPECT_NE(expected, plain_result(2, folder.path() / "constant"));
    command.insert(command.end(), {"--snapshot-every=10", "--snapshot-dir", folder.path() / "s",
                                   "--crash-at-step=37", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), expected);
}

// Rank 1 alone finds the file that asks for a stop, as when one node hears it first. All stop after
// the same step, with a snapshot, and go on from there later.
TEST(Train, StopsOnAllRanksWhenOneIsTold) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(3, folder.path() / "plain");
    test::write_all(folder.path() / "stop.json", "{}");
    auto command = train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s"});
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

// Rank 1 alone finds the file that asks for a snapshot, as when it comes to one node first. All
// write their share of it, the file is removed, and the training goes on as if nothing had
// happened.
TEST(Train, WritesASnapshotOnAllRanksWhenOneIsAsked) {
    test::TemporaryFolder folder;
    const std::string expected = plain_result(3, folder.path() / "plain");
    const auto asked = folder.path() / "snapshot.json";
    test::write_all(asked, R"({"number":1000001})");
    auto command = train(
        {"--snapshot-every=10", "--snapshot-dir", folder.path() / "s", "--snapshot-every=1000000"});
    std::vector<std::string> told{
        "/bin/sh", "-c", "[ $RANK != 1 ] || export DDPRUN_SNAPSHOT_FILE=$0; exec \"$@\"", asked};
    told.insert(told.end(), command.begin(), command.end());
    EXPECT_EQ(run_program(3, 0, told, folder.path() / "g0"), Ends({0, 0, 0}));
    EXPECT_EQ(last_line(folder.path() / "g0" / "0"), expected);
    EXPECT_FALSE(std::filesystem::exists(asked));
    bool of_the_first_step = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "s"))
        of_the_first_step |=
            entry.path().filename().string().starts_with("snapshot-000000000001-g0");
    EXPECT_TRUE(of_the_first_step);
}

// A learning rate that makes the numbers overflow. The averaging spreads a NaN to all ranks, so
// each of them must fail and name parameter and rank of its origin. No rank trains on with rubbish.
TEST(Train, NamesAGradientThatIsNoNumber) {
    test::TemporaryFolder folder;
    EXPECT_EQ(run_program(2, 0, train({"--lr=1e6", "--momentum=1"}), folder.path()), Ends({1, 1}));
    EXPECT_THAT(test::read_all(folder.path() / "1"),
                testing::ContainsRegex(
                    "train: the gradient of \"w[12]\" is not a finite number on rank [01]"));
}

// A user changes the model, the data or the seed and forgets the old snapshot folder. The job ends
// at once with the reason, instead of training on with numbers that do not belong together.
TEST(Train, RefusesAForeignSnapshot) {
    test::TemporaryFolder folder;
    const auto command = train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s"});
    ASSERT_EQ(run_program(1, 0, command, folder.path() / "a"), Ends({0}));
    const std::pair<const char*, const char*> mistakes[] = {
        {"--dtype=bfloat16", "tensor \"w1\" is F32 [1024] in snapshot "},
        {"--hidden=65", "tensor \"w1\" is F32 [1024] in snapshot "},
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

// Figures that nobody could read are no reason to train for hours first: the reason, before the
// ranks meet. Figures that cannot be written later are a warning.
TEST(Train, NamesAFileOfFiguresThatCannotBeWritten) {
    test::TemporaryFolder folder;
    const std::string path = folder;
    const std::pair<std::string, std::string> mistakes[] = {
        {path, "--metrics " + path + " cannot be written: it is a folder; name a file in it\n"},
        {path + "/none/f", "--metrics " + path + "/none/f cannot be written: " + path +
                               "/none: No such file or directory; name a file in a folder where "
                               "you may write\n"}};
    int count = 0;
    for (const auto& [file, sentence] : mistakes) {
        const fs::path output = folder.path() / std::to_string(++count);
        EXPECT_EQ(run_program(1, 0, train({"--metrics", file}), output), Ends({2})) << file;
        EXPECT_EQ(test::read_all(output / "0"), "train: " + sentence);
    }
    ASSERT_EQ(run_program(1, 0, train({"--metrics=/dev/full"}), folder.path() / "full"), Ends({0}));
    EXPECT_THAT(test::read_all(folder.path() / "full" / "0"),
                HasSubstr("train: warning: the figures of this epoch are not in --metrics "
                          "/dev/full: No space left on device\n"));
}

// With a rate of 0 nothing gets better. The first validation (step 4) is the best one, and the
// third after it (step 16) ends the training on all ranks. The count survives the crash at step 13,
// which lies between them, and the end survives as well: a further start makes no step.
TEST(Train, StopsEarly) {
    test::TemporaryFolder folder;
    const auto command =
        train({"--lr=0", "--validate-every=4", "--patience=2", "--snapshot-every=10",
               "--snapshot-dir", folder.path() / "s", "--crash-at-step=13"});
    EXPECT_EQ(run_program(3, 0, command, folder.path() / "g0"), Ends({-9, 1, 1}));
    for (int generation : {1, 2}) {
        const fs::path output = folder.path() / std::to_string(generation);
        EXPECT_EQ(run_program(3, generation, command, output), Ends({0, 0, 0}));
        const std::string text = test::read_all(output / "0");
        // The first restart resumes at the snapshot before the crash, the second one at the end.
        EXPECT_THAT(text, HasSubstr(generation == 1 ? "at step 10\n" : "at step 16\n"));
        EXPECT_EQ(text.find("step=16 ") != std::string::npos, generation == 1) << text;
        EXPECT_EQ(text.find("step=20"), std::string::npos) << text;
    }
}

// A requeued job may already be complete. It gives its result again, with the same bits, and makes
// no step.
TEST(Train, RepeatsTheResultOfACompleteJob) {
    test::TemporaryFolder folder;
    const auto command = train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s"});
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "a"), Ends({0, 0}));
    ASSERT_EQ(run_program(2, 1, command, folder.path() / "b"), Ends({0, 0}));
    EXPECT_EQ(last_line(folder.path() / "b" / "0"), last_line(folder.path() / "a" / "0"));
}

// Four threads load batches ahead, over the ends of epochs (64 steps each). Neither their number
// nor a crash with batches loaded ahead changes a bit.
TEST(Train, LoadsAheadWithoutATrace) {
    test::TemporaryFolder folder;
    auto command = train({"--steps=150"});
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "plain"), Ends({0, 0}));
    command.insert(command.end(), {"--loader-threads=4", "--snapshot-every=10", "--snapshot-dir",
                                   folder.path() / "s", "--crash-at-step=137", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"), HasSubstr("at step 130"));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), last_line(folder.path() / "plain" / "0"));
}

double loss_in(const std::string& line) { return std::stod(line.substr(line.find('=') + 1)); }

// Parameters, gradients and sums of 16 bits: after 60 steps the loss is within 1 % of the one in
// float32 (seen: 0.1 %), with other bits. float16 begins with a scale that overflows nothing.
TEST(Train, In16BitsItsLossIsNearlyThatOfFloat32) {
    test::TemporaryFolder folder;
    const std::string full = plain_result(2, folder.path() / "float32");
    for (const char* type : {"bfloat16", "float16"}) {
        const auto output = folder.path() / type;
        auto command = train({"--dtype", type});
        if (type == std::string("float16")) command.push_back("--loss-scale=1024");
        ASSERT_EQ(run_program(2, 0, command, output), Ends({0, 0})) << test::read_all(output / "0");
        const std::string half = last_line(output / "0");
        EXPECT_NEAR(loss_in(half), loss_in(full), 0.01 * loss_in(full)) << type;
        EXPECT_NE(half, full);
    }
}

// The first scale overflows, so the first 16 or so steps are skipped and the scale is halved each
// time. The crash falls into them. With the scale, master weights and momenta of the snapshot the
// second generation skips as many, and ends with the bits of an undisturbed run.
TEST(Train, SkipsTheSameStepsAfterACrash) {
    test::TemporaryFolder folder;
    auto command = train({"--dtype=float16", "--loss-scale=1e9", "--clip=2"});
    ASSERT_EQ(run_program(2, 0, command, folder.path() / "plain"), Ends({0, 0}));
    const std::string plain = test::read_all(folder.path() / "plain" / "0");
    EXPECT_THAT(plain, HasSubstr("scale=976562 skipped=10"));
    command.insert(command.end(), {"--snapshot-every=10", "--snapshot-dir", folder.path() / "s",
                                   "--crash-at-step=12", "--crash-exit=7"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({7, 1}));
    EXPECT_EQ(run_program(2, 1, command, folder.path() / "g1"), Ends({0, 0}));
    const std::string resumed = test::read_all(folder.path() / "g1" / "0");
    EXPECT_THAT(resumed, HasSubstr("at step 10"));
    const auto last_scale = [](const std::string& text) {
        const auto at = text.rfind("scale=");
        return text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(last_scale(resumed), last_scale(plain));
    EXPECT_EQ(last_line(folder.path() / "g1" / "0"), last_line(folder.path() / "plain" / "0"));
}

// A node is lost or comes back: three ranks take up the snapshot of two. Its content does not
// depend on the world size.
TEST(Train, ResumesAtAnotherWorldSize) {
    test::TemporaryFolder folder;
    const auto command =
        train({"--snapshot-every=10", "--snapshot-dir", folder.path() / "s", "--crash-at-step=37"});
    EXPECT_EQ(run_program(2, 0, command, folder.path() / "g0"), Ends({-9, 1}));
    EXPECT_EQ(run_program(3, 1, command, folder.path() / "g1"), Ends({0, 0, 0}));
    EXPECT_THAT(test::read_all(folder.path() / "g1" / "0"), HasSubstr("at step 30"));
}

// A typing error in a batch script must not start a training with the defaults. One line, since
// each rank prints it.
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

// Who gives an option expects something of it. One that does nothing beside the others is refused,
// and so is a rank that the job does not have; a later generation may have fewer ranks.
TEST(Train, RefusesOptionsWithoutAnEffect) {
    test::TemporaryFolder folder;
    const std::pair<std::vector<std::string>, const char*> mistakes[] = {
        {{"--loss-scale=8"}, "--loss-scale has no effect without --dtype float16; see"},
        {{"--loss-scale=8", "--dtype=bfloat16"}, "--loss-scale has no effect"},
        {{"--samples=9", "--data=x.csv"}, "--samples has no effect with --data; see"},
        {{"--snapshot-every=9"}, "--snapshot-every has no effect without --snapshot-dir; see"},
        {{"--snapshot-keep=9"}, "--snapshot-keep has no effect without --snapshot-dir; see"},
        {{"--crash-rank=0"}, "--crash-rank has no effect without --crash-at-step; see"},
        {{"--crash-exit=3"}, "--crash-exit has no effect without --crash-at-step; see"},
        {{"--crash-at-step=1", "--crash-exit=3", "--crash-signal=9"}, "with --crash-exit; see"},
        {{"--crash-at-step=60"}, "--crash-at-step has no effect at or after the last of --steps;"},
        {{"--cosine=1", "--warm-up=1"}, "--cosine has no effect up to the end of --warm-up; see"},
        {{"--crash-at-step=1", "--crash-rank=1"}, "--crash-rank 1 is none of the ranks 0 to 0"}};
    int number = 0;
    for (const auto& [options, sentence] : mistakes) {
        const fs::path output = folder.path() / std::to_string(number++);
        EXPECT_EQ(run_program(1, 0, train(options), output), Ends({2})) << sentence;
        const std::string text = test::read_all(output / "0");
        EXPECT_THAT(text, HasSubstr(sentence));
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    }
    EXPECT_EQ(run_program(1, 1, train(mistakes[10].first), folder.path() / "later"), Ends({0}));
}

// A CSV of numbers is trained on, also as spreadsheets write it: with the mark of UTF-8, names of
// columns, and Windows' line ends.
TEST(Train, ReadsData) {
    test::TemporaryFolder folder;
    const std::string path = folder.path() / "data.csv";
    std::string first;
    for (const char* text : {"# x, y\n1,2,3\n4, 5 ,6\n", "1,2,3\n\n4,5,6",
                             "\xef\xbb\xbfmass,\"width\",y\r\n1,2,3\r\n4,5,6\r\n"}) {
        test::write_all(path, text);
        ASSERT_EQ(run_program(1, 0, train({"--data", path}), folder.path() / "a"), Ends({0}))
            << test::read_all(folder.path() / "a" / "0");
        if (first.empty()) first = last_line(folder.path() / "a" / "0");
        EXPECT_EQ(last_line(folder.path() / "a" / "0"), first) << text;
    }
}

// A bad row is named by its line, so that it can be found among millions. It is the user's mistake,
// so the launcher does not try again.
TEST(Train, NamesBadData) {
    test::TemporaryFolder folder;
    const std::string path = folder.path() / "bad.csv";
    const std::string row = "numbers with commas between them, the last one the target\n";
    const std::pair<std::string, std::string> mistakes[] = {
        {"1,2,3\n1,2\n", path + ":2: not a row of 3 " + row},
        {"1;2;3\n", path + ":1: not a row of 2 or more " + row},
        {"x,y\n\"1\",\"2\"\n", path + ":2: not a row of 2 or more " + row},
        {"1,2\n1,nan\n", path + ":2: not a row of 2 " + row},
        {"x,y\n", "--data " + path + " holds no samples\n"}};
    int count = 0;
    for (const auto& [text, sentence] : mistakes) {
        test::write_all(path, text);
        const fs::path output = folder.path() / std::to_string(++count);
        EXPECT_EQ(run_program(1, 0, train({"--data", path}), output), Ends({2})) << text;
        EXPECT_EQ(test::read_all(output / "0"), "train: " + sentence);
    }
    EXPECT_EQ(run_program(1, 0, train({"--data", folder}), folder.path() / "f"), Ends({2}));
    EXPECT_THAT(test::read_all(folder.path() / "f" / "0"), HasSubstr(" is a folder; name a CSV"));
}

// The validation of three ranks is that of one rank with the same parameters (rate 0), within the
// rounding of its additions. A mean of means would differ, since the ranks' shares differ in size.
TEST(Train, ValidatesOverRanks) {
    test::TemporaryFolder folder;
    for (int world : {1, 3}) {
        const fs::path metrics = folder.path() / (std::to_string(world) + ".jsonl");
        const auto command = train({"--lr=0", "--validate-every=30", "--metrics", metrics});
        EXPECT_EQ(run_program(world, 0, command, folder.path() / std::to_string(world)),
                  Ends(static_cast<std::size_t>(world), 0));
    }
    // The figure in the last line of JSON; -1 when there is none.
    auto validation = [&](const char* name) {
        const std::string text = last_line(folder.path() / name);
        const auto at = text.find("\"validation\":");
        return at == std::string::npos ? -1 : std::atof(text.c_str() + at + 13);
    };
    EXPECT_GT(validation("1.jsonl"), 0);
    EXPECT_NEAR(validation("3.jsonl"), validation("1.jsonl"), 1e-6);
}

// A failure leaves the worker's own account in the file that the launcher names, so that the report
// can quote it.
TEST(Train, LeavesAnErrorFile) {
    test::TemporaryFolder folder;
    const fs::path account = folder.path() / "error.json";
    ASSERT_EQ(setenv("TORCHELASTIC_ERROR_FILE", account.c_str(), 1), 0);
    EXPECT_EQ(run_program(1, 0, {DDPRUN_TRAIN, "--data", "nowhere.csv"}, folder.path() / "o"),
              Ends({2}));
    unsetenv("TORCHELASTIC_ERROR_FILE");
    EXPECT_THAT(
        test::read_all(account),
        testing::AllOf(HasSubstr("\"message\":{\"message\":\"usage: "), HasSubstr("nowhere.csv"),
                       HasSubstr("\"timestamp\""), HasSubstr("\"errorCode\":2}")));
}

}  // namespace
}  // namespace ddprun::trainer
