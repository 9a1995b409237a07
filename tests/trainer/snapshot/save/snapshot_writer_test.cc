// All ranks save together in the background: real processes, a real store, a real file system. What
// is called complete must be whole on disk, whatever dies or fails meanwhile.
#include "trainer/snapshot/save/snapshot_writer.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "store/client/client.h"
#include "store/server/store_thread.h"
#include "tests/trainer/group_rank.h"
#include "tests/trainer/snapshot/state.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;
using test::State;
using testing::HasSubstr;

// Warnings are dropped here.
SnapshotFolder open(const Context& context, const std::string& folder, std::size_t keep = 2) {
    return std::move(*SnapshotFolder::open(context, folder, keep, {}));
}

// Files of at most 30 KB: seven tensors of 12 KB then make four files, so that ranks share the
// work.
std::unique_ptr<SnapshotWriter> writer(const Context& context, Store& store,
                                       const std::string& folder) {
    WriterOptions options;
    options.file_bytes = 30'000;
    options.timeout = seconds(10);
    return SnapshotWriter::make(context, store, open(context, folder), options).value();
}

// Saves steps 1 to 4 on so many ranks. The exit code is 0 when all went well.
Ends save_on(int world, const std::string& folder) {
    return run_ranks(world, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        saver->prepare(State(0).views());
        for (std::int64_t step = 1; step <= 4; ++step)
            if (!saver->save(step, State(step).views(), {{"epoch", "3"}})) return 1;
        if (!saver->wait()) return 2;
        return saver->newest().step == 4 && saver->newest().duration.count() >= 0 ? 0 : 3;
    });
}

// It would be no snapshot that resume() finds.
TEST(SnapshotWriter, RefusesAStepBelowZero) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(2, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        const auto begun = saver->save(-1, State(1).views(), {});
        if (saver->wait()) return 1;
        return test::expects_error(begun, "of step -1; steps are 0 or more");
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

// The files of a folder by name, with their content.
std::map<std::string, std::string> content_of(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().filename() != "in-use")  // names the process
            files[entry.path().filename()] =
                entry.is_regular_file() ? test::read_all(entry.path()) : "a folder";
    return files;
}

// The same bytes in the same files, whether one rank wrote them or three: only so another number of
// ranks can resume. What was saved comes back.
TEST(SnapshotWriter, WritesTheSameFilesAtEachWorldSize) {
    test::TemporaryFolder one, three;
    ASSERT_EQ(save_on(1, one), Ends({0}));
    ASSERT_EQ(save_on(3, three), Ends({0, 0, 0}));
    auto files = content_of(one);
    for (auto& [name, text] : files) {
        // A world of one without a launcher's run id is the same run here.
        EXPECT_EQ(text, content_of(three)[name]) << name;
    }
    EXPECT_EQ(files.size(), content_of(three).size());
    // Two snapshots are kept, each of four files and a manifest. The last file is the loader's
    // record.
    EXPECT_EQ(files.size(), 2u * (4 + 1) + 1);
    Context context;
    auto snapshot = open(context, three).load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    EXPECT_EQ((*snapshot)->manifest.name.step, 4);
    EXPECT_EQ((*snapshot)->manifest.metadata.at("epoch"), "3");
    EXPECT_TRUE(State(4).is_in(**snapshot));
}

// What the ranks say of a save is gone from the store after the next one, also if a save fails.
TEST(SnapshotWriter, LeavesNothingInTheStore) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(3, [&](const Context& context) {
        test::StoreRank me(context);
        auto saver = writer(context, *me.store, folder);
        auto client =
            store::StoreClient::connect(context.master_addr, context.master_port, seconds(10));
        const auto keys = [&]() -> std::ptrdiff_t {
            const auto all = client->list_keys(seconds(10)).value();
            return std::count_if(all.begin(), all.end(), [](const std::string& key) {
                return key.find("snapshot_writer/") != std::string::npos;
            });
        };
        std::vector<float> part(4);
        std::ptrdiff_t before = 0;
        for (std::int64_t step = 1; step <= 12; ++step) {
            const State state(step);
            auto tensors = state.views();
            // Each rank has a slice, too.
            auto slice = tensor_view("slices", {4}, std::span<const float>(part));
            slice.place = Place{{12}, {4 * static_cast<std::uint64_t>(context.rank.value)}};
            tensors.push_back(slice);
            // No step goes back: all ranks fail here.
            const bool good = step != 6;
            auto done = saver->save(good ? step : 1, tensors, {});
            if (done) done = saver->wait();
            if (done.has_value() != good)
                return test::expects_error(done, "an error where none is expected");
            // All have removed what they said.
            for (const char* word : {"a", "b"}) {
                const std::string name = word + std::to_string(step);
                if (!me.say(name + std::to_string(context.rank.value))) return 2;
                for (int rank = 0; rank < 3; ++rank)
                    if (!me.hear(name + std::to_string(rank))) return 3;
                if (context.is_first() && *word == 'a') {
                    if (step == 3) before = keys();
                    if (step == 12 && keys() != before) return 4;
                }
            }
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// One rank may not write so large a file (here by a limit, on a cluster by a quota). All ranks get
// an error that names the file. If one rank believed in the snapshot, it would report progress that
// does not exist. Nothing stays but the record.
TEST(SnapshotWriter, FailsOnAllRanksWhenOneCannotWrite) {
    test::TemporaryFolder folder;
    auto ends = run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        if (context.rank.value == 1) {
            // Without this, the limit would end the process by a signal and not fail the write.
            (void)signal(SIGXFSZ, SIG_IGN);
            const rlimit small{1000, 1000};
            if (setrlimit(RLIMIT_FSIZE, &small)) return 3;
        }
        (void)saver->save(1, State(1).views(), {});
        auto done = saver->wait();
        if (done) return 1;
        const std::string text = done.error().sentence();
        return text.find("snapshot-000000000001-g0 was not saved") != std::string::npos &&
                       text.find("00002-of-00004") != std::string::npos
                   ? 0
                   : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
    for (const auto& [name, text] : content_of(folder)) EXPECT_THAT(name, HasSubstr("resume"));
}

// The disk is full: the error says so, the snapshot before stands, and no temporary file takes the
// last space. The disk is a small one in memory, in a mount namespace of the child's own.
TEST(SnapshotWriter, KeepsTheOldOneWhenTheDiskIsFull) {
    if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    test::TemporaryFolder folder;
    auto ends = run_ranks(1, [&](const Context& context) {
        if (unshare(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
            mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=300k"))
            return 77;
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        if (!saver->save(1, State(1).views(), {}) || !saver->wait()) return 1;
        // 84 KB are on the disk; 252 KB more do not fit into 300 KB.
        (void)saver->save(2, State(2, 9000).views(), {});
        auto done = saver->wait();
        if (done || done.error().sentence().find("No space left") == std::string::npos) return 2;
        for (const auto& [name, text] : content_of(folder))
            if (name.ends_with(".tmp") || name.find("02-g0") != std::string::npos) return 3;
        auto snapshot = open(context, folder).load(SnapshotName{1, Generation(0)});
        if (!snapshot || !State(1).is_in(*snapshot)) return 4;
        // What fits is saved again.
        return saver->save(3, State(3).views(), {}) && saver->wait() ? 0 : 5;
    });
    if (ends == Ends({77})) GTEST_SKIP() << "mounting is not allowed here";
    EXPECT_EQ(ends, Ends({0}));
}

// Rank 0 is killed when the manifest is written, before it has reported that. The snapshot is
// valid, and the other ranks cannot know it. So they must not remove their files.
TEST(SnapshotWriter, StandsWhenRankZeroDiesBeforeItSaysSo) {
    test::TemporaryFolder folder;
    // The moment to die: after the manifest, rank 0 removes old snapshots, and warns if it cannot.
    // A folder in place of an old manifest cannot be removed, and the warning kills rank 0.
    fs::create_directory(folder.path() / SnapshotName{0, Generation(0)}.manifest());
    // Rank 0 serves the store itself, so the store dies with it, as when the leader's node is lost.
    const auto listener = test::listen_on_loopback();
    auto ends = run_ranks(2, [&](Context context) {
        context.master_port = listener.port;
        std::unique_ptr<store::StoreThread> served;
        if (context.is_first())
            served = store::StoreThread::start(listener.fd, {}).value();
        else
            close(listener.fd);
        auto store = connect_store(context, seconds(10)).value();
        WriterOptions options;
        options.file_bytes = 30'000;
        auto opened = SnapshotFolder::open(context, folder, 1,
                                           [](const std::string&) { (void)raise(SIGKILL); });
        auto saver = SnapshotWriter::make(context, *store, std::move(*opened), options).value();
        (void)saver->save(1, State(1).views(), {});
        return saver->wait() ? 1 : 0;
    });
    close(listener.fd);
    EXPECT_EQ(ends, Ends({-SIGKILL, 0}));
    Context later;
    later.generation = Generation(1);
    auto snapshot = open(later, folder).load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    EXPECT_TRUE(State(1).is_in(**snapshot));
}

// Rank 0 cannot copy its tensors. The other ranks hear of it at once with the reason, and do not
// wait for files until their time-out (10 minutes by default).
TEST(SnapshotWriter, TellsTheOthersThatRankZeroCannotCopy) {
    test::TemporaryFolder folder;
    auto ends = run_ranks(
        2,
        [&](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            WriterOptions options;
            options.file_bytes = 30'000;
            if (context.is_first())
                options.copy = [](std::byte*, const TensorView&) -> Result<void> {
                    return Error(ErrorCode::unavailable, "the GPU fell off");
                };
            auto saver = SnapshotWriter::make(context, *store, open(context, folder), options);
            auto done = (*saver)->save(1, State(1).views(), {});
            if (done) done = (*saver)->wait();
            if (done) return 1;
            return done.error().sentence().find("the GPU fell off") == std::string::npos ? 2 : 0;
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0}));
    // Only the record is left.
    EXPECT_EQ(content_of(folder).size(), 1u);
}

// A child that saves without end. It writes the step of each complete snapshot to the pipe.
[[noreturn]] void save_for_ever(const Context& context, const std::string& folder,
                                std::int64_t first, int acknowledge) {
    auto store = connect_store(context).value();
    auto saver = writer(context, *store, folder);
    for (std::int64_t step = first;; ++step) {
        if (!saver->save(step, State(step, 1000).views(), {}) || !saver->wait()) _exit(1);
        if (write(acknowledge, &step, sizeof step) != sizeof step) _exit(2);
    }
}

// The writer is killed at a random moment, again and again. The newest snapshot is whole, and not
// older than the last one that the writer called complete: what the user was promised is there.
TEST(SnapshotWriter, SurvivesBeingKilledAtAnyMoment) {
    // 300 kills take seconds; tests/run.sh --long asks for more.
    const int kills = std::getenv("DDPRUN_LONG") ? 10'000 : 300;
    test::TemporaryFolder folder;
    std::mt19937 random(1);
    std::int64_t step = 0;
    for (int kill_number = 0; kill_number < kills; ++kill_number) {
        int pipe_ends[2];
        ASSERT_EQ(pipe(pipe_ends), 0);
        Context context;
        context.generation = Generation(kill_number);
        const pid_t child = fork();
        if (child == 0) save_for_ever(context, folder, step + 1, pipe_ends[1]);
        close(pipe_ends[1]);
        // Random work, not random sleep: the kill falls so many acknowledgements and turns later.
        std::int64_t acknowledged = step;
        // The moment of the kill: after up to two complete snapshots, and then after some random
        // work. Work and not sleep, so that the moments lie close together.
        for (unsigned n = random() % 3; n > 0; --n)
            if (read(pipe_ends[0], &acknowledged, sizeof acknowledged) <= 0) break;
        volatile unsigned turns = random() % 3'000'000;
        while (turns) turns = turns - 1;
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed with " << status;
        // What was complete but not read yet counts as promised, too.
        for (std::int64_t more; read(pipe_ends[0], &more, sizeof more) == sizeof more;)
            acknowledged = more;
        close(pipe_ends[0]);
        context.generation = Generation(kill_number + 1);
        auto snapshot = open(context, folder).load_newest();
        ASSERT_TRUE(snapshot);
        if (acknowledged == 0 && !*snapshot) continue;
        ASSERT_TRUE(*snapshot) << "after kill " << kill_number;
        step = (*snapshot)->manifest.name.step;
        ASSERT_GE(step, acknowledged) << "after kill " << kill_number;
        ASSERT_TRUE(State(step, 1000).is_in(**snapshot)) << "after kill " << kill_number;
    }
    // Enough snapshots were completed between the kills; otherwise the test would have tested
    // nothing.
    EXPECT_GT(step, kills / 4);
    // Nothing piles up: at most three snapshots in two files each (a kill may come before the
    // oldest is removed), and the record of the last loader.
    EXPECT_LE(content_of(folder).size(), 2u * 3 + 1);
}

// The training fails while a snapshot is under way, and another rank will not write its part. The
// others end long before the time-out of the snapshot, which is ten minutes: the test gives them
// 30 s. So the restart need not wait for it. A failure is an exception, or a word to the writer.
TEST(SnapshotWriter, DoesNotWaitLongForOtherRanksWhenTheTrainingFails) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(
        3,
        [&](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto saver =
                SnapshotWriter::make(context, *store, open(context, folder), WriterOptions{});
            if (!saver || !store->add("made", 1)) return 1;
            try {
                const std::unique_ptr<SnapshotWriter> mine = std::move(*saver);
                if (context.rank.value == 2) raise(SIGKILL);
                if (!mine->save(1, State(1).views(), {})) return 2;
                if (context.rank.value == 0) return mine->training_failed(), 0;
                throw std::runtime_error("the connection to rank 2 was closed");
            } catch (const std::runtime_error&) {
                return 0;
            }
        },
        seconds(30));
    EXPECT_EQ(ends, Ends({0, 0, -SIGKILL}));
}

}  // namespace
}  // namespace ddprun::trainer
