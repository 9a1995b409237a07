// A snapshot folder on a real file system: cut and altered files, stale writers, several jobs in
// one folder. A loader must find a whole snapshot, or say that there is none.
#include "trainer/snapshot/folder/snapshot.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using test::Ends;
using test::read_all;
using test::write_all;

class SnapshotTest : public testing::Test {
  protected:
    // The folder as rank 0 of this generation sees it. Its warnings are collected.
    SnapshotFolder open(std::int64_t generation, std::size_t keep = 3) {
        Context context;
        context.generation = Generation(generation);
        context.run_id = "test";
        return std::move(
            *SnapshotFolder::open(context, folder_, keep,
                                  [this](const std::string& text) { warnings_.push_back(text); }));
    }
    // One tensor, whose first number is the step: content and name can be compared.
    Result<void> try_to_save(SnapshotFolder& folder, std::int64_t step) {
        const std::vector<float> values{static_cast<float>(step), 2, 3};
        return folder.save(step, {tensor_view("w", {3}, std::span<const float>(values))},
                           {{"seed", "7"}});
    }
    void save(SnapshotFolder& folder, std::int64_t step) {
        auto done = try_to_save(folder, step);
        ASSERT_TRUE(done) << done.error();
    }
    // The step of what a new loader of this generation takes; -1 when there is none. The loader
    // takes over the folder, as after a restart.
    std::int64_t newest(std::int64_t generation) {
        auto snapshot = open(generation).load_newest();
        EXPECT_TRUE(snapshot) << snapshot.error();
        return snapshot && *snapshot ? (*snapshot)->manifest.name.step : -1;
    }
    // The path of a file of a snapshot.
    fs::path file(std::int64_t step, std::int64_t generation, const char* suffix) const {
        return folder_.path() / (SnapshotName{step, Generation(generation)}.stem() + suffix);
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            if (entry.path().filename() != "in-use") names.push_back(entry.path().filename());
        return names;
    }

    std::ptrdiff_t tensor_files() const {
        const auto names = files();
        return std::count_if(names.begin(), names.end(),
                             [](const auto& name) { return name.ends_with(".safetensors"); });
    }

    test::TemporaryFolder folder_;
    std::vector<std::string> warnings_;
};

// What was saved comes back with its metadata, and no temporary file stays.
TEST_F(SnapshotTest, ComesBack) {
    auto folder = open(0);
    EXPECT_EQ(newest(0), -1);
    save(folder, 10);
    auto snapshot = open(0).load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    EXPECT_EQ((*snapshot)->manifest.metadata.at("seed"), "7");
    const auto* tensor = (*snapshot)->content.find("w");
    ASSERT_TRUE(tensor);
    EXPECT_EQ(reinterpret_cast<const float*>(tensor->data.data())[0], 10.0f);
    for (const auto& name : files()) EXPECT_THAT(name, testing::Not(testing::EndsWith(".tmp")));
    EXPECT_TRUE(warnings_.empty());
}

// A crash may cut a file at any byte, and a disk may turn any bit over. Such a snapshot is skipped
// with a warning, and the one before is used. Training on damaged numbers would be worse than
// losing steps.
TEST_F(SnapshotTest, SkipsWhatIsCutShortOrAltered) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    for (const char* suffix : {".json", ".safetensors"}) {
        const fs::path path = file(20, 0, suffix);
        const std::string good = read_all(path);
        // Every byte of the manifest is tried, but only each 37th of the tensors, to save time. 37
        // is odd, so `at % 8` below still takes each value.
        const std::size_t stride = good.size() > 1000 ? 37 : 1;
        for (std::size_t at = 0; at < good.size(); at += stride) {
            // The manifest's last byte is a line end, whose loss changes nothing.
            if (at + 1 < good.size()) {
                write_all(path, good.substr(0, at));
                ASSERT_EQ(newest(1), 10) << suffix << " cut at " << at;
            }
            std::string altered = good;
            altered[at] = static_cast<char>(altered[at] ^ (1 << (at % 8)));
            warnings_.clear();
            write_all(path, altered);
            const std::int64_t step = newest(1);
            // White space between JSON's words may change without changing what it says.
            if (step == 20)
                EXPECT_TRUE(isspace(good[at])) << suffix << " byte " << at;
            else
                EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("is skipped")));
        }
        write_all(path, good);
        ASSERT_EQ(newest(1), 20);
    }
}

// A tensor file that is gone is damage like any other. When no valid snapshot is left, the job ends
// with an error: a silent new beginning would give up the work of weeks.
TEST_F(SnapshotTest, RefusesToBeginAnewWhenAllAreDamaged) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    fs::remove(file(10, 0, ".safetensors"));
    fs::remove(file(20, 0, ".safetensors"));
    auto snapshot = open(1).load_newest();
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().code(), ErrorCode::malformed);
    EXPECT_THAT(snapshot.error().sentence(),
                testing::HasSubstr("none of the 2 snapshots in " + folder_.path().string()));
    EXPECT_THAT(warnings_, testing::ElementsAre(
                               testing::HasSubstr("snapshot-000000000020-g0.json is skipped"),
                               testing::HasSubstr("snapshot-000000000010-g0.json is skipped")));
}

// A tensor file is gone and its manifest is left. The training goes back behind it, and saves the
// same step again.
TEST_F(SnapshotTest, SavesAgainAStepWhoseFileIsGone) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    fs::remove(file(20, 0, ".safetensors"));
    auto again = open(0);
    auto snapshot = again.load_newest();
    ASSERT_TRUE(snapshot && *snapshot && (*snapshot)->manifest.name.step == 10);
    save(again, 20);
    EXPECT_EQ(newest(0), 20);
}

// Only the newest K stay on disk, with all their files, so that the disk does not fill up.
TEST_F(SnapshotTest, KeepsTheNewest) {
    auto folder = open(0, 2);
    for (int step : {10, 20, 30, 40}) save(folder, step);
    EXPECT_THAT(files(), testing::UnorderedElementsAre("resume-000000000001.json",
                                                       "snapshot-000000000030-g0.json",
                                                       "snapshot-000000000030-g0.safetensors",
                                                       "snapshot-000000000040-g0.json",
                                                       "snapshot-000000000040-g0.safetensors"));
}

// A host is suspended and wakes up when generation 1 runs already. Its writer of generation 0
// writes a snapshot with more steps (90). No later generation may use it, because the training has
// gone on without it. Its temporary files are removed.
TEST_F(SnapshotTest, IgnoresAStaleWriter) {
    auto stale = open(0);
    save(stale, 10);
    auto current = open(1);
    ASSERT_TRUE(current.load_newest());
    save(current, 20);
    EXPECT_FALSE(try_to_save(stale, 90));
    // The worst case, made by hand: it had looked for a later loader just before, and writes its
    // manifest now.
    const SnapshotName late{90, Generation(0)};
    PageBuffer content;
    ASSERT_TRUE(lay_out({}, content, {}));
    auto tensors = stale.write_file(late.tensors(), content);
    ASSERT_TRUE(tensors);
    write_all(file(90, 0, ".json"), write_manifest({"test", 1, late, {*tensors}, {}, {}}));
    write_all(folder_.path() / "snapshot-000000000100-g0.safetensors.tmp", "half");
    EXPECT_EQ(newest(2), 20);
    EXPECT_FALSE(fs::exists(folder_.path() / "snapshot-000000000100-g0.safetensors.tmp"));
    // The next save removes what nobody may use.
    auto next = open(3);
    ASSERT_TRUE(next.load_newest());
    save(next, 30);
    EXPECT_FALSE(fs::exists(file(90, 0, ".json")));
}

// A stale writer saves once more and keeps only one snapshot. It must not remove the one from which
// the later generation has resumed. It gets an error, so that its job can end.
TEST_F(SnapshotTest, LosesNothingToAStaleWriter) {
    auto stale = open(0, 1);
    save(stale, 10);
    auto current = open(1, 1);
    ASSERT_TRUE(current.load_newest());
    auto done = try_to_save(stale, 90);
    EXPECT_EQ(newest(2), 10);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(), testing::HasSubstr("generation 1 of run \"test\""));
}

// A loader of generation 1 wakes up after generation 2 has begun, and takes the folder over. It
// must not make the writes of generation 0 valid. Generation 2 gets an error at its next save
// instead of going on beside it, and its snapshot stays.
TEST_F(SnapshotTest, KeepsTheFenceWhenAStaleLoaderComes) {
    auto zero = open(0);
    save(zero, 10);
    auto stale = open(1), current = open(2);
    ASSERT_TRUE(current.load_newest());
    save(current, 20);
    ASSERT_TRUE(stale.load_newest());
    (void)try_to_save(zero, 90);
    EXPECT_FALSE(try_to_save(current, 30));
    EXPECT_EQ(newest(3), 20);
}

// A program opens the folder twice under one name. The sentence does not say that it must make room
// for itself.
TEST_F(SnapshotTest, SaysThatALoaderOfTheSameNameHasCome) {
    auto first = open(0), second = open(0);
    save(first, 10);
    ASSERT_TRUE(second.load_newest());
    const auto done = try_to_save(first, 20);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::closed);
    EXPECT_THAT(done.error().sentence(),
                testing::HasSubstr("has been taken over by generation 0 of run \"test\" (loader 2, "
                                   "this one is 1), of the same name; does the program open the "
                                   "folder twice, or has the job been started twice?"));
}

// Four jobs use one folder by mistake, each keeping one snapshot, and take it from each other again
// and again. Whoever loads finds a whole snapshot, and no job goes back behind what it has loaded
// before. The file system has no locks here: otherwise all but one are refused.
TEST_F(SnapshotTest, IsNeverEmptyWhereSeveralJobsMeet) {
    fs::create_directory(folder_.path() / "in-use");
    auto first = open(0, 1);
    save(first, 1);
    auto ends = test::run_ranks(4, [&](const Context&) {
        std::int64_t seen = 1;
        for (int turn = 0; turn < 30; ++turn) {
            auto folder = open(0, 1);
            auto snapshot = folder.load_newest();
            // `closed`: another job came while this one was loading. That is right, and the next
            // turn tries again.
            if (!snapshot && snapshot.error().code() == ErrorCode::closed) continue;
            if (!snapshot || !*snapshot) return 1;
            std::int64_t step = (*snapshot)->manifest.name.step;
            if (step < seen) return 2;
            // Up to three saves; they fail as soon as another job has taken the folder.
            for (seen = step; step < seen + 3 && try_to_save(folder, step + 1);) ++step;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
    EXPECT_GT(newest(0), 1);
}

// A step is saved once more, and this fails half-way. The snapshot that was whole stands: its files
// are not overwritten.
TEST_F(SnapshotTest, StandsWhenTheSameStepIsSavedAgain) {
    auto folder = open(0, 1);
    save(folder, 10);
    const std::vector<float> values{1};
    const auto view = tensor_view("w", {1}, std::span<const float>(values));
    // Two tensors of one name cannot be saved.
    ASSERT_FALSE(folder.save(10, {view, view}, {}));
    EXPECT_EQ(newest(1), 10);
    // A save that succeeds replaces it, and the old files go.
    auto again = open(0, 1);
    save(again, 10);
    EXPECT_EQ(newest(1), 10);
    EXPECT_EQ(tensor_files(), 1);
}

// The newest (20) is damaged, and training goes on from 10. What is saved then (15) is kept,
// although the damaged one has more steps and only one is kept.
TEST_F(SnapshotTest, DoesNotCountADamagedOneAmongThoseKept) {
    auto folder = open(0, 2);
    save(folder, 10);
    save(folder, 20);
    write_all(file(20, 0, ".safetensors"), "damaged");
    auto next = open(1, 1);
    ASSERT_TRUE(next.load_newest());
    save(next, 15);
    EXPECT_EQ(newest(2), 15);
}

// A restart would resume from step 20, so a snapshot of step 15 would be lost work. Nothing is
// written or removed, whether the job has resumed or forgotten to.
TEST_F(SnapshotTest, RefusesAStepBehindANewerOne) {
    auto folder = open(0, 1);
    save(folder, 20);
    auto forgetful = open(1, 1);
    for (SnapshotFolder* each : {&folder, &forgetful}) {
        const auto before = tensor_files();
        const auto done = try_to_save(*each, 15);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code(), ErrorCode::refused);
        EXPECT_THAT(done.error().sentence(),
                    testing::HasSubstr("step 15 lies behind snapshot-000000000020-g0 in " +
                                       folder_.path().string()));
        EXPECT_EQ(tensor_files(), before);
    }
    // The same step and later ones are not behind it.
    save(forgetful, 20);
    save(forgetful, 21);
    EXPECT_EQ(newest(2), 21);
}

// The newest is damaged, and the job that saves has not tried to load it.
TEST_F(SnapshotTest, SavesBehindADamagedOne) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    write_all(file(20, 0, ".safetensors"), "damaged");
    auto next = open(1);
    save(next, 15);
    EXPECT_EQ(newest(2), 15);
}

// Somebody goes back to step 10 on purpose. What came after it is given up, so a restart resumes
// from what is saved from now on.
TEST_F(SnapshotTest, GoesBackToAnOlderStepOnPurpose) {
    auto folder = open(0);
    for (int step : {10, 20, 30}) save(folder, step);
    auto next = open(1);
    ASSERT_TRUE(next.give_up_after(10));
    EXPECT_EQ(tensor_files(), 1);
    auto snapshot = next.load_newest();
    ASSERT_TRUE(snapshot && *snapshot);
    EXPECT_EQ((*snapshot)->manifest.name.step, 10);
    save(next, 15);
    EXPECT_EQ(newest(2), 15);
    // The earlier job has lost the folder.
    EXPECT_EQ(try_to_save(folder, 40).error().code(), ErrorCode::closed);
    EXPECT_EQ(folder.give_up_after(0).error().code(), ErrorCode::closed);
}

// A job is started again by hand: same folder, same name, and generations begin at 0. The records
// of its earlier life, with higher generations, must not lock it out.
TEST_F(SnapshotTest, StartsAnewInTheSameFolder) {
    auto first = open(0);
    save(first, 10);
    auto later = open(3);
    ASSERT_TRUE(later.load_newest());
    save(later, 20);
    EXPECT_EQ(newest(0), 20);
    auto again = open(0);
    ASSERT_TRUE(again.load_newest());
    save(again, 30);
    EXPECT_EQ(newest(1), 30);
}

// What is no snapshot has the names of newer ones, or of a later loader: a pipe into which nobody
// writes, a folder, a file larger than the memory, nested lists without end, zeros, a turn after
// which there is none. The job resumes from what is good, and saves on.
TEST_F(SnapshotTest, IsNotStoppedByWhatAStrangerHasPutThere) {
    auto folder = open(0);
    save(folder, 10);
    ASSERT_EQ(mkfifo(file(20, 0, ".json").c_str(), 0600), 0);
    fs::create_directory(file(30, 0, ".json"));
    write_all(file(40, 0, ".json"), "");
    fs::resize_file(file(40, 0, ".json"), std::uintmax_t{1} << 40);
    write_all(file(50, 0, ".json"), R"({"checksum":"","files":)" + std::string(300'000, '[') +
                                        std::string(300'000, ']') + "}");
    write_all(file(60, 0, ".json"), std::string(500, '\0'));
    fs::create_symlink("snapshot-000000000070-g0.json", file(70, 0, ".json"));
    write_all(folder_.path() / "resume-9223372036854775807.json", "");
    EXPECT_EQ(newest(1), 10);
    EXPECT_EQ(warnings_.size(), 6u);
    auto next = open(2);
    ASSERT_TRUE(next.load_newest());
    save(next, 15);
    EXPECT_EQ(newest(3), 15);
}

// A folder below a plain file cannot be made. The error names it, so the user sees the wrong path.
TEST_F(SnapshotTest, NamesTheFolderThatCannotBe) {
    write_all(folder_.path() / "plain", "a file");
    auto folder =
        SnapshotFolder::open(Context(), (folder_.path() / "plain" / "below").string(), 1, {});
    ASSERT_FALSE(folder);
    EXPECT_THAT(folder.error().sentence(), testing::HasSubstr("plain/below"));
}

// Fills a small file system with one file.
void fill(const fs::path& path) {
    std::ofstream file(path);
    while (file << std::string(1000, 'x') << std::flush) {
    }
}

// A child's own mount namespace, with a small file system over the folder.
bool mount_small(const fs::path& folder) {
    return !unshare(CLONE_NEWNS) && !mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) &&
           !mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=200k");
}

// The disk is full, and the job is restarted: it resumes, says once that nothing can be saved, and
// saves fail with the reason until there is room. What a dead writer has left is no reason.
TEST_F(SnapshotTest, ResumesFromAFullDisk) {
    if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    auto ends = test::run_ranks(1, [&](const Context&) {
        if (!mount_small(folder_.path())) return 77;
        auto folder = open(0);
        if (!try_to_save(folder, 10)) return 1;
        fill(folder_.path() / "snapshot-000000000020-g0.safetensors.0123.tmp");
        if (newest(1) != 10 || !warnings_.empty()) return 2;
        fill(folder_.path() / "filler");
        auto next = open(2);
        auto snapshot = next.load_newest();
        if (!snapshot || !*snapshot || (*snapshot)->manifest.name.step != 10) return 3;
        if (warnings_.size() != 1 || warnings_[0].find("No space left") == std::string::npos ||
            warnings_[0].find("goes on from what is there") == std::string::npos)
            return 4;
        const auto done = try_to_save(next, 30);
        if (done || done.error().sentence().find("No space left") == std::string::npos) return 5;
        if (newest(3) != 10) return 6;
        // The last to come saves on as soon as it can, and no earlier one.
        auto last = open(4);
        if (!last.load_newest()) return 7;
        fs::remove(folder_.path() / "filler");
        if (try_to_save(next, 30) || !try_to_save(last, 40)) return 8;
        // With the record that it owed: the fifth to come has chosen from step 10.
        const auto record = parse_record(read_all(folder_.path() / record_name(5)));
        if (!record || record->manifests.size() != 1) return 9;
        return newest(5) == 40 ? 0 : 10;
    });
    if (ends == Ends({77})) GTEST_SKIP() << "mounting is not allowed here";
    EXPECT_EQ(ends, Ends({0}));
}

// The same in a folder that may only be read, for all ranks.
TEST_F(SnapshotTest, ResumesFromAFolderThatMayOnlyBeRead) {
    if (geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    auto ends = test::run_ranks(2, [&](const Context& context) {
        if (!mount_small(folder_.path())) return 77;
        if (auto folder = open(0); !try_to_save(folder, 10)) return 1;
        const auto remount = [&](unsigned long flags) {
            return !mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT | flags,
                          "size=200k");
        };
        if (!remount(MS_RDONLY)) return 2;
        auto store = connect_store(context, std::chrono::seconds(10)).value();
        auto next = open(1);
        auto snapshot = resume(context, *store, next, std::chrono::seconds(10));
        if (!snapshot || !*snapshot || (*snapshot)->manifest.name.step != 10) return 3;
        if (context.rank.value == 1) return warnings_.empty() ? 0 : 4;
        if (warnings_.size() != 1 || warnings_[0].find("Read-only") == std::string::npos) return 5;
        const auto done = try_to_save(next, 20);
        if (done || done.error().sentence().find("Read-only") == std::string::npos) return 6;
        if (!remount(0) || !try_to_save(next, 20)) return 7;
        return newest(2) == 20 ? 0 : 8;
    });
    if (ends == Ends({77, 77})) GTEST_SKIP() << "mounting is not allowed here";
    EXPECT_EQ(ends, Ends({0, 0}));
}

// All ranks resume from the one that rank 0 has verified, also when a newer one is damaged. Ranks
// that resume from different steps would train nonsense. (Each rank exits with the step.)
TEST_F(SnapshotTest, IsAgreedByAllRanks) {
    {
        auto folder = open(0);
        save(folder, 10);
        save(folder, 20);
    }
    write_all(file(20, 0, ".safetensors"), "damaged");
    auto ends = test::run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, std::chrono::seconds(10));
        auto mine = SnapshotFolder::open(context, folder_, 3, {});
        auto snapshot = resume(context, **store, *mine, std::chrono::seconds(10));
        return snapshot && *snapshot ? static_cast<int>((*snapshot)->manifest.name.step) : 1;
    });
    EXPECT_THAT(ends, testing::ElementsAre(10, 10, 10));
}

// A rank that does not resume, or resumes by the other call, is missed in words that a user knows,
// whichever rank waits. (Each rank exits with 0 if it got them.)
TEST_F(SnapshotTest, NamesTheCallThatARankDoesNotMake) {
    {
        auto folder = open(0);
        save(folder, 10);
    }
    auto misses = [](const Result<std::optional<Snapshot>>& resumed, const std::string& what) {
        const bool told = !resumed && resumed.error().code() == ErrorCode::timed_out &&
                          resumed.error().sentence().find(
                              what +
                              " within 500 ms in resume() number 1; all ranks must call "
                              "resume() and resume_into()") != std::string::npos;
        if (!told && !resumed) std::fprintf(stderr, "%s\n", resumed.error().sentence().c_str());
        return told ? 0 : 1;
    };
    auto ends = [&](int who, const std::string& what) {
        return test::run_ranks(2, [&](const Context& context) {
            auto store = connect_store(context, std::chrono::seconds(10));
            if (context.rank.value != who) {
                (void)(*store)->get("over", std::chrono::seconds(20));
                return 0;
            }
            auto mine = SnapshotFolder::open(context, folder_, 3, {});
            const int end =
                misses(resume(context, **store, *mine, std::chrono::milliseconds(500)), what);
            (void)(*store)->set("over", "");
            return end;
        });
    };
    EXPECT_THAT(ends(1, "rank 0 named no snapshot"), testing::ElementsAre(0, 0));
    EXPECT_THAT(ends(0, "rank 1 did not say whether it could load"), testing::ElementsAre(0, 0));
}

}  // namespace
}  // namespace ddprun::trainer
