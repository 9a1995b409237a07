// Two of anything in one job: writers, folders to resume from, process groups. Each has its own
// part of the store, so none sees the words of another. Real processes, a real store, real files.
#include <gmock/gmock.h>

#include "tests/trainer/group_rank.h"
#include "tests/trainer/snapshot/state.h"
#include "trainer/snapshot/save/snapshot_writer.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::Ends;
using test::run_ranks;
using test::State;
using testing::HasSubstr;

// Files of at most 30 KB: a state then has four of them, so that all ranks write.
WriterOptions small_files() {
    WriterOptions options;
    options.file_bytes = 30'000;
    options.timeout = seconds(10);
    return options;
}

Result<std::unique_ptr<SnapshotWriter>> writer(const Context& context, const Store& store,
                                               const fs::path& folder) {
    return SnapshotWriter::make(
        context, store, std::move(*SnapshotFolder::open(context, folder, 2, {})), small_files());
}

// The step of the newest snapshot of a folder, if it is the whole state of this step; else -1.
std::int64_t whole_step_in(const fs::path& folder) {
    auto snapshot = SnapshotFolder::newest_in(folder, {});
    if (!snapshot) return -1;
    const std::int64_t step = snapshot->manifest.name.step;
    return State(step).is_in(*snapshot) ? step : -1;
}

// The latest and the best snapshot of one training, each with a writer. Both folders hold what was
// saved there, whole, and both report success rightly. (With one part of the store for both, each
// would read the other's reports, and write manifests that name missing files.)
TEST(SeveralWriters, SaveSideBySide) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto latest = writer(context, *store, folder.path() / "latest").value();
        auto best = writer(context, *store, folder.path() / "best").value();
        for (std::int64_t step = 1; step <= 6; ++step) {
            if (!latest->save(step, State(step).views(), {})) return 1;
            if (step % 2 == 0 && !best->save(step, State(step).views(), {})) return 2;
        }
        return latest->wait() && best->wait() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
    EXPECT_EQ(whole_step_in(folder.path() / "latest"), 6);
    EXPECT_EQ(whole_step_in(folder.path() / "best"), 6);
}

// The second writer of one folder is refused on every rank, also under another name of the folder:
// each would remove what the other saved. When the first one is gone, another may come.
TEST(SeveralWriters, AreRefusedInOneFolder) {
    test::TemporaryFolder folder;
    fs::create_directory(folder.path() / "latest");
    fs::create_directory_symlink(folder.path() / "latest", folder.path() / "best");
    const auto ends = run_ranks(2, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto first = writer(context, *store, folder.path() / "latest").value();
        auto second = writer(context, *store, folder.path() / "best");
        if (second || second.error().code() != ErrorCode::usage) return 1;
        const std::string said = second.error().sentence();
        if (said.find("give each SnapshotWriter a folder of its own") == std::string::npos)
            return 2;
        if (!first->save(1, State(1).views(), {}) || !first->wait()) return 3;
        first.reset();
        auto third = writer(context, *store, folder.path() / "best").value();
        return third->save(2, State(2).views(), {}) && third->wait() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    EXPECT_EQ(whole_step_in(folder.path() / "latest"), 2);
}

// A job resumes from two folders, the second of which has no snapshot. Each answer is that of its
// own folder. (Each rank exits with the step.)
TEST(SeveralWriters, ResumeFromSeveralFolders) {
    test::TemporaryFolder folder;
    {
        auto one = SnapshotFolder::open({}, folder.path() / "one", 2, {}).value();
        ASSERT_TRUE(one.save(10, State(10).views(), {}));
    }
    const auto ends = run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto one = SnapshotFolder::open(context, folder.path() / "one", 2, {}).value();
        auto two = SnapshotFolder::open(context, folder.path() / "two", 2, {}).value();
        auto first = resume(context, *store, one, seconds(10));
        auto second = resume(context, *store, two, seconds(10));
        if (!first || !*first || !second || *second) return 1;
        return static_cast<int>((*first)->manifest.name.step);
    });
    EXPECT_EQ(ends, Ends({10, 10, 10}));
}

// Two jobs with one folder by mistake: the second one is refused as long as the first one runs. The
// next generation of the first one is not, although its predecessor still runs (a process that is
// stopped). Three processes, each rank 0 of its own job.
TEST(SeveralJobs, HaveNotOneFolder) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(3, [&](const Context& context) {
        test::StoreRank me(context);
        const int number = context.rank.value;
        Context own;
        own.run_id = number == 1 ? "second" : "first";
        own.generation = Generation(number == 2 ? 1 : 0);
        auto mine = SnapshotFolder::open(own, folder, 2, {});
        if (number == 0) {
            if (!mine->save(1, State(1).views(), {}) || !me.say("saved") || !me.hear("refused"))
                return 1;
            mine = SnapshotFolder::open(own, folder, 2, {});
            return me.say("ended") && me.hear("over") ? 0 : 2;
        }
        if (!me.hear("saved")) return 3;
        if (number == 2) {
            auto snapshot = mine->load_newest();
            return me.say("loaded") && snapshot && *snapshot ? 0 : 4;
        }
        const auto refused = mine->load_newest();
        if (refused || refused.error().code() != ErrorCode::refused || !me.hear("loaded")) return 5;
        if (refused.error().sentence().find("is in use by run \"first\", whose process ") ==
            std::string::npos)
            return 6;
        if (mine->save(2, State(2).views(), {})) return 7;
        if (!me.say("refused") || !me.hear("ended")) return 8;
        return mine->load_newest() && mine->save(2, State(2).views(), {}) && me.say("over") ? 0 : 9;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Two groups at the same time, made from one store and from a second connection to it. Each sums
// over its own calls, and the end of one leaves the other as it was.
TEST(SeveralGroups, WorkSideBySide) {
    const auto ends = run_ranks(3, [](const Context& context) {
        test::GroupRank me(context);
        auto again = connect_store(context, seconds(10)).value();
        auto other = make_process_group(context, *again, {Backend::gloo, seconds(10), {}});
        if (!other) return test::expects_error(other.error(), "no error");
        for (int round = 1; round <= 20; ++round) {
            float first[] = {static_cast<float>(context.rank.value)};
            double second[] = {static_cast<double>(round), 1, 1};
            auto work = me.group->begin(Operation::all_reduce(buffer_of(std::span<float>(first))));
            if (!(*other)->all_reduce(buffer_of(std::span<double>(second)))) return 1;
            if (!work.wait() || first[0] != 3.0f || second[0] != 3.0 * round) return 2;
        }
        (*other).reset();
        // Nobody makes the next call before all have left the second group.
        if (!me.group->barrier()) return 3;
        float value[] = {1};
        return me.group->all_reduce(buffer_of(std::span<float>(value))) && value[0] == 3.0f ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// The backend is agreed on for each group anew: the words of the first group are not those of the
// second one.
TEST(SeveralGroups, ChooseTheirBackendEach) {
    const auto ends = run_ranks(2, [](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        for (int group = 0; group < 3; ++group) {
            auto made = make_process_group(context, *store, {Backend::automatic, seconds(10), {}});
            if (!made) return test::expects_error(made.error(), "no error");
            double value[] = {1};
            if (!(*made)->all_reduce_values(value) || value[0] != 2) return 1;
        }
        return 0;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
