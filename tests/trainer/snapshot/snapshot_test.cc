#include "trainer/snapshot/snapshot.h"

#include <gmock/gmock.h>

#include "tests/trainer/ranks.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using test::Ends;
using test::read_all;
using test::write_all;

class SnapshotTest : public testing::Test {
  protected:
    SnapshotFolder open(std::int64_t generation, std::size_t keep = 3) {
        Context context;
        context.generation = Generation(generation);
        context.run_id = "test";
        return std::move(
            *SnapshotFolder::open(context, folder_, keep,
                                  [this](const std::string& text) { warnings_.push_back(text); }));
    }
    Result<void> try_to_save(SnapshotFolder& folder, std::int64_t step) {
        const std::vector<float> values{static_cast<float>(step), 2, 3};
        return folder.save(step, {tensor_view("w", {3}, std::span<const float>(values))},
                           {{"seed", "7"}});
    }
    void save(SnapshotFolder& folder, std::int64_t step) {
        auto done = try_to_save(folder, step);
        ASSERT_TRUE(done) << done.error();
    }
    // The step of what a fresh loader of the generation takes; -1: none.
    std::int64_t newest(std::int64_t generation) {
        auto snapshot = open(generation).load_newest();
        EXPECT_TRUE(snapshot) << snapshot.error();
        return snapshot && *snapshot ? (*snapshot)->manifest.name.step : -1;
    }
    fs::path file(std::int64_t step, std::int64_t generation, const char* suffix) const {
        return folder_.path() / (SnapshotName{step, Generation(generation)}.stem() + suffix);
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            names.push_back(entry.path().filename());
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

// What was saved comes back, with its metadata, and no temporary stays.
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

// Cut short at any byte, or with any bit turned over, a snapshot is skipped with a warning and the
// one before is used.
TEST_F(SnapshotTest, SkipsWhatIsCutShortOrAltered) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    for (const char* suffix : {".json", ".safetensors"}) {
        const fs::path path = file(20, 0, suffix);
        const std::string good = read_all(path);
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

// A tensor file that is gone is damage like any other; when nothing valid is left, training does not
// begin anew in silence.
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

// Only the newest K stay on disk, whole.
TEST_F(SnapshotTest, KeepsTheNewest) {
    auto folder = open(0, 2);
    for (int step : {10, 20, 30, 40}) save(folder, step);
    EXPECT_THAT(files(), testing::UnorderedElementsAre("resume-000000000001.json",
                                                       "snapshot-000000000030-g0.json",
                                                       "snapshot-000000000030-g0.safetensors",
                                                       "snapshot-000000000040-g0.json",
                                                       "snapshot-000000000040-g0.safetensors"));
}

// A writer of generation 0 that wakes up after generation 1 began has no say in generation 2; its
// temporaries go.
TEST_F(SnapshotTest, IgnoresAStaleWriter) {
    auto stale = open(0);
    save(stale, 10);
    auto current = open(1);
    ASSERT_TRUE(current.load_newest());
    save(current, 20);
    EXPECT_FALSE(try_to_save(stale, 90));
    // It was at the last act already when generation 1 began.
    const SnapshotName late{90, Generation(0)};
    PageBuffer content;
    ASSERT_TRUE(lay_out({}, content, {}));
    auto tensors = stale.write_file(late.tensors(), content);
    ASSERT_TRUE(tensors);
    write_all(file(90, 0, ".json"), write_manifest({"test", 1, late, {*tensors}, {}}));
    write_all(folder_.path() / "snapshot-000000000100-g0.safetensors.tmp", "half");
    EXPECT_EQ(newest(2), 20);
    EXPECT_FALSE(fs::exists(folder_.path() / "snapshot-000000000100-g0.safetensors.tmp"));
    auto next = open(3);
    ASSERT_TRUE(next.load_newest());
    save(next, 30);
    EXPECT_FALSE(fs::exists(file(90, 0, ".json")));
}

// A stale writer saves once more: what the later generation lives on stays, whatever is kept, and
// the writer is told.
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

// A loader of generation 1 that wakes up after generation 2 began: what generation 0 may write is
// not decided anew by it, and generation 2 learns of it instead of going on beside it.
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

// Several jobs that use one folder by mistake, each keeping one snapshot: whoever loads finds one
// that is whole, however they meet, and none goes back behind what it has loaded before.
TEST_F(SnapshotTest, IsNeverEmptyWhereSeveralJobsMeet) {
    auto first = open(0, 1);
    save(first, 1);
    auto ends = test::run_ranks(4, [&](const Context&) {
        std::int64_t seen = 1;
        for (int turn = 0; turn < 30; ++turn) {
            auto folder = open(0, 1);
            auto snapshot = folder.load_newest();
            if (!snapshot && snapshot.error().code() == ErrorCode::closed) continue;
            if (!snapshot || !*snapshot) return 1;
            std::int64_t step = (*snapshot)->manifest.name.step;
            if (step < seen) return 2;
            for (seen = step; step < seen + 3 && try_to_save(folder, step + 1);) ++step;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0, 0}));
    EXPECT_GT(newest(0), 1);
}

// A step is saved once more, and that fails half-way: the one that was whole stands.
TEST_F(SnapshotTest, StandsWhenTheSameStepIsSavedAgain) {
    auto folder = open(0, 1);
    save(folder, 10);
    const std::vector<float> values{1};
    const auto view = tensor_view("w", {1}, std::span<const float>(values));
    ASSERT_FALSE(folder.save(10, {view, view}, {}));
    EXPECT_EQ(newest(1), 10);
    auto again = open(0, 1);
    save(again, 10);
    EXPECT_EQ(newest(1), 10);
    EXPECT_EQ(tensor_files(), 1);
}

// The newest is damaged, training goes on from the one before: what is saved then is kept, though
// the damaged one has more steps.
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

// A job that is started again from generation 0 under the same name is not bound by the records of
// its earlier life.
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

// A folder that cannot be written gives an error that names it, and leaves nothing behind.
TEST_F(SnapshotTest, NamesTheFolderThatCannotBe) {
    write_all(folder_.path() / "plain", "a file");
    auto folder =
        SnapshotFolder::open(Context(), (folder_.path() / "plain" / "below").string(), 1, {});
    ASSERT_FALSE(folder);
    EXPECT_THAT(folder.error().sentence(), testing::HasSubstr("plain/below"));
}

// All ranks resume from the one that rank 0 verified, also when a newer one is damaged.
TEST_F(SnapshotTest, IsAgreedByAllRanks) {
    auto folder = open(0);
    save(folder, 10);
    save(folder, 20);
    write_all(file(20, 0, ".safetensors"), "damaged");
    auto ends = test::run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, std::chrono::seconds(10));
        auto mine = SnapshotFolder::open(context, folder_, 3, {});
        auto snapshot = resume(context, **store, *mine, std::chrono::seconds(10));
        return snapshot && *snapshot ? static_cast<int>((*snapshot)->manifest.name.step) : 1;
    });
    EXPECT_THAT(ends, testing::ElementsAre(10, 10, 10));
}

}  // namespace
}  // namespace ddprun::trainer
