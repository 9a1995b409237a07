// Which snapshots stay: never is the newest one that loads removed for one that does not. And a run
// that begins from the snapshot of another run.
#include <gmock/gmock.h>

#include "tests/trainer/ranks.h"
#include "tests/trainer/snapshot/state.h"
#include "trainer/snapshot/folder/snapshot.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using test::State;
using testing::HasSubstr;

class KeptSnapshots : public testing::Test {
  protected:
    SnapshotFolder open(const std::string& folder, std::size_t keep, const std::string& base = {}) {
        return SnapshotFolder::open({}, folder, keep, warn(), base).value();
    }
    Warn warn() {
        return [this](const std::string& text) { warnings_.push_back(text); };
    }
    static void save(SnapshotFolder& folder, std::int64_t step) {
        auto done = folder.save(step, State(step, 100).views(), {});
        ASSERT_TRUE(done) << done.error();
    }
    // The step of the newest snapshot that loads; -1 if there is none.
    std::int64_t newest(const std::string& folder) {
        auto snapshot = SnapshotFolder::newest_in(folder, warn());
        if (!snapshot) return -1;
        const std::int64_t step = snapshot->manifest.name.step;
        EXPECT_TRUE(State(step, 100).is_in(*snapshot));
        return step;
    }
    // The steps for which a manifest lies in the folder.
    std::vector<std::int64_t> steps() const {
        std::vector<std::int64_t> steps;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            if (auto name = parse_manifest_name(entry.path().filename().string()))
                steps.push_back(name->step);
        std::sort(steps.begin(), steps.end());
        return steps;
    }
    // Writes step `step` as several writers do, up to the commit. `damage` is done to the file when
    // it is written.
    struct Written {
        SnapshotName name;
        SnapshotFile file;
        bool read_back;
    };
    Written write(SnapshotFolder& folder, std::int64_t step,
                  const std::function<void(const fs::path&)>& damage) {
        const SnapshotName name{step, Generation(0)};
        const auto how = folder.begin(name).value();
        PageBuffer content;
        const State state(step, 100);
        EXPECT_TRUE(lay_out(state.views(), content, [](std::byte* to, const TensorView& from) {
            std::copy(from.data.begin(), from.data.end(), to);
            return Result<void>();
        }));
        const auto file = folder.write_file(name.tensors(0, 1, how.edition), content).value();
        damage(folder_.path() / file.name);
        return {name, file, how.read_back};
    }

    test::TemporaryFolder folder_;
    std::vector<std::string> warnings_;
};

void flip_a_bit(const fs::path& path) {
    std::string text = test::read_all(path);
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
    test::write_all(path, text);
}

// A file is gone, or was cut short, when the manifest is to be written. There is no manifest, and
// the snapshot before stays, although only one is kept.
TEST_F(KeptSnapshots, CommitsNothingWhoseFilesAreNotThere) {
    auto folder = open(folder_, 1);
    save(folder, 10);
    using Damage = std::function<void(const fs::path&)>;
    const std::pair<Damage, const char*> damages[] = {
        {[](const fs::path& path) { fs::remove(path); }, "has no such file here"},
        {[](const fs::path& path) { fs::resize_file(path, 77); }, "has 77 bytes here"}};
    std::int64_t step = 20;
    for (const auto& [damage, sentence] : damages) {
        const Written written = write(folder, step++, damage);
        const auto done = folder.commit(written.name, {written.file}, {});
        ASSERT_FALSE(done);
        EXPECT_THAT(done.error().sentence(), HasSubstr(sentence));
        EXPECT_EQ(newest(folder_), 10);
    }
    EXPECT_EQ(steps(), std::vector<std::int64_t>{10});
    save(folder, 30);
    EXPECT_EQ(steps(), std::vector<std::int64_t>{30});
}

// A disk returns other bytes than were written. The size is right, so only reading finds it. This
// is asked for before the only snapshot that is known to load would go.
TEST_F(KeptSnapshots, ReadsBackBeforeTheLastGoodOneWouldGo) {
    auto folder = open(folder_, 1);
    save(folder, 10);
    const Written written = write(folder, 20, flip_a_bit);
    ASSERT_TRUE(written.read_back);
    const auto done = folder.read_back(written.file);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().sentence(), HasSubstr("reads back damaged"));
    EXPECT_EQ(newest(folder_), 10);
}

// Reading back costs time, so only each K-th snapshot of those that keep K is read back. Damage
// that nobody asked to find may be committed; then the one that is known to load stays.
TEST_F(KeptSnapshots, ReadsBackNoMoreThanItMust) {
    auto folder = open(folder_, 3);
    std::vector<std::int64_t> read_back;
    for (std::int64_t step = 1; step <= 12; ++step) {
        const Written written = write(folder, step, [](const fs::path&) {});
        if (written.read_back) {
            read_back.push_back(step);
            ASSERT_TRUE(folder.read_back(written.file));
        }
        ASSERT_TRUE(folder.commit(written.name, {written.file}, {}));
    }
    EXPECT_THAT(read_back, testing::ElementsAre(4, 7, 10));
    EXPECT_EQ(steps(), (std::vector<std::int64_t>{10, 11, 12}));
}

// A disk damages every file from now on, and three snapshots are kept. Two damaged ones are
// committed, since nobody reads them back. The next one is read back and refused, again and again:
// the last good one is still there.
TEST_F(KeptSnapshots, KeepsTheGoodOneOnADiskThatDamagesAllFiles) {
    auto folder = open(folder_, 3);
    save(folder, 1);
    for (std::int64_t step = 2; step <= 9; ++step) {
        const Written written = write(folder, step, flip_a_bit);
        if (written.read_back)
            EXPECT_FALSE(folder.read_back(written.file));
        else
            ASSERT_TRUE(folder.commit(written.name, {written.file}, {}));
        EXPECT_EQ(newest(folder_), 1) << step;
    }
    EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3}));
}

// What was loaded at the start is known to load, so it is not removed either before another is.
TEST_F(KeptSnapshots, KnowsThatWhatItLoadedLoads) {
    {
        auto folder = open(folder_, 2);
        save(folder, 1);
    }
    auto folder = open(folder_, 2);
    ASSERT_TRUE(folder.load_newest());
    EXPECT_FALSE(write(folder, 2, [](const fs::path&) {}).read_back);
    save(folder, 2);
    EXPECT_TRUE(write(folder, 3, [](const fs::path&) {}).read_back);
}

// The newest of a folder is looked at without taking it from its job, which saves on.
TEST_F(KeptSnapshots, LooksWithoutTakingTheFolder) {
    EXPECT_EQ(newest(folder_), -1);
    auto folder = open(folder_, 2);
    save(folder, 1);
    EXPECT_EQ(newest(folder_), 1);
    save(folder, 2);
    flip_a_bit(folder_.path() / SnapshotName{2, Generation(0)}.tensors());
    EXPECT_EQ(newest(folder_), 1);
    EXPECT_THAT(warnings_, testing::ElementsAre(HasSubstr("snapshot-000000000002-g0.json is "
                                                          "skipped")));
    save(folder, 3);
    EXPECT_EQ(newest(folder_), 3);
}

// A run of its own begins from a base model: from the newest snapshot of the base as long as it has
// none itself, then from its own. The base is never changed, also if the disk would allow it.
TEST_F(KeptSnapshots, BeginsFromABase) {
    const fs::path base = folder_.path() / "base", own = folder_.path() / "own";
    {
        auto folder = open(base, 2);
        save(folder, 500);
    }
    auto listed = [&] {
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator(base)) names.insert(entry.path());
        return names;
    };
    const auto before = listed();
    auto ends = test::run_ranks(2, [&](const Context& context) {
        auto store = connect_store(context, std::chrono::seconds(10)).value();
        auto folder = SnapshotFolder::open(context, own, 2, {}, base).value();
        auto snapshot = resume(context, *store, folder, std::chrono::seconds(10));
        if (!snapshot || !*snapshot || !(*snapshot)->from_base) return 1;
        return State(500, 100).is_in(**snapshot) ? 0 : 2;
    });
    EXPECT_EQ(ends, test::Ends({0, 0}));
    {
        auto folder = open(own, 2, base);
        save(folder, 1);
    }
    ends = test::run_ranks(2, [&](const Context& context) {
        auto store = connect_store(context, std::chrono::seconds(10)).value();
        auto again = SnapshotFolder::open(context, own, 2, {}, base).value();
        auto snapshot = resume(context, *store, again, std::chrono::seconds(10));
        if (!snapshot || !*snapshot || (*snapshot)->from_base) return 1;
        return State(1, 100).is_in(**snapshot) ? 0 : 2;
    });
    EXPECT_EQ(ends, test::Ends({0, 0}));
    EXPECT_EQ(listed(), before);
}

// A base that does not exist, or has no snapshot, is a mistake: to begin from random numbers would
// hide it.
TEST_F(KeptSnapshots, RefusesABaseWithoutSnapshots) {
    const fs::path empty = folder_.path() / "empty", own = folder_.path() / "own";
    fs::create_directory(empty);
    auto folder = open(own, 2, empty);
    auto snapshot = folder.load_newest();
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().code(), ErrorCode::not_found);
    EXPECT_THAT(snapshot.error().sentence(), HasSubstr("empty has no snapshot"));
    EXPECT_FALSE(open(own, 2, folder_.path() / "absent").load_newest());
}

}  // namespace
}  // namespace ddprun::trainer
