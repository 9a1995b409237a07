// Ranks that disagree on what they save, and files that are not where they should be: the snapshot
// fails on all ranks with a sentence that says why, and the good one before stays, although only
// one is kept. Real processes, a real store, real files.
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

using Tensors = std::vector<TensorView>;

// What rank 1 of two does otherwise.
struct Deviation {
    std::int64_t step = 2;
    std::function<void(Tensors&)> change = [](Tensors&) {};
    std::string folder = {};  // empty: the same as rank 0's
    std::uint64_t file_bytes = 30'000;
};

// Both ranks save step 1 and agree. Then rank 0 saves step 2, and rank 1 what `deviation` says. All
// ranks must get an error with this sentence. Then both save step 4, which must succeed if rank 1
// uses the same folder.
void expect_refused(const Deviation& deviation, const std::string& sentence) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(2, [&](const Context& context) {
        const bool deviates = context.rank.value == 1;
        auto store = connect_store(context, seconds(10)).value();
        auto saver = [&](const std::string& where, std::uint64_t file_bytes) {
            WriterOptions options;
            options.file_bytes = file_bytes;
            options.timeout = seconds(10);
            auto opened = SnapshotFolder::open(context, where, 1, {});
            return SnapshotWriter::make(context, *store, std::move(*opened), options).value();
        };
        auto first = saver(folder, 30'000);
        if (!first->save(1, State(1).views(), {}) || !first->wait()) return 1;
        first.reset();
        const bool elsewhere = deviates && !deviation.folder.empty();
        auto second = saver(elsewhere ? folder.path() / deviation.folder : folder.path(),
                            deviates ? deviation.file_bytes : 30'000);
        const State state(2);
        auto tensors = state.views();
        if (deviates) deviation.change(tensors);
        (void)second->save(deviates ? deviation.step : 2, tensors, {});
        const auto done = second->wait();
        if (done) return 2;
        if (done.error().sentence().find(sentence) == std::string::npos) {
            std::fprintf(stderr, "%s\n", done.error().sentence().c_str());
            return 3;
        }
        if (second->newest().step != -1) return 4;
        second.reset();
        auto third = saver(folder, 30'000);
        auto good = SnapshotFolder::newest_in(folder, {});
        if (!good || good->manifest.name.step != 1 || !State(1).is_in(*good)) return 5;
        // Rank 0 saves step 4 only when rank 1 has looked.
        const std::string looked = "looked" + std::to_string(context.rank.value);
        if (!store->set(looked, "1") || !store->get("looked1", seconds(20)) ||
            !store->get("looked0", seconds(20)))
            return 6;
        return third->save(4, State(4).views(), {}) && third->wait() ? 0 : 7;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    auto snapshot = SnapshotFolder::newest_in(folder, {});
    ASSERT_TRUE(snapshot) << snapshot.error();
    EXPECT_TRUE(State(4).is_in(*snapshot));
}

// A name that no file can have, of a tensor that another rank would write. No rank writes anything.
TEST(SaveAgreement, RefusesANameBeforeAnythingIsWritten) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(2, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        WriterOptions options;
        options.file_bytes = 30'000;
        auto opened = SnapshotFolder::open(context, folder, 1, {});
        auto saver = SnapshotWriter::make(context, *store, std::move(*opened), options).value();
        const State state(2);
        for (const char* name : {"t\xff", "__metadata__", "t0[0:4]"}) {
            auto tensors = state.views();
            tensors.back().name = name;
            const auto done = saver->save(2, tensors, {});
            if (done || done.error().sentence().find("cannot be saved under this name") ==
                            std::string::npos)
                return 1;
            (void)saver->wait();
        }
        if (saver->save(2, state.views(), {{"random", "\xff"}})) return 2;
        (void)saver->wait();
        for (const auto& entry : fs::directory_iterator(folder.path()))
            if (entry.path().filename().string().starts_with("snapshot")) return 3;
        return saver->save(2, state.views(), {}) && saver->wait() ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

TEST(SaveAgreement, NamesTheRankWithAnotherStep) {
    expect_refused({3},
                   "rank 1 saves step 3, and rank 0 saves step 2; all ranks must save the same "
                   "steps");
}

TEST(SaveAgreement, NamesTheTensorOfAnotherShape) {
    expect_refused({2,
                    [](Tensors& tensors) {
                        tensors[3].shape = {3, 1001};
                    }},
                   "rank 1 saves \"t3\" as F32 [3, 1001], and rank 0 saves \"t3\" as F32 [3003]");
}

TEST(SaveAgreement, NamesTheTensorOfAnotherType) {
    expect_refused({2, [](Tensors& tensors) { tensors[3].type = DataType::int32; }},
                   "rank 1 saves \"t3\" as I32 [3003], and rank 0 saves \"t3\" as F32 [3003]");
}

TEST(SaveAgreement, NamesTheTensorThatOneRankLacks) {
    expect_refused({2, [](Tensors& tensors) { tensors.pop_back(); }},
                   "rank 1 saves no tensor \"t6\", and rank 0 saves it as F32 [3006]");
}

TEST(SaveAgreement, NamesTheTensorThatOnlyOneRankHas) {
    expect_refused(
        {2, [](Tensors& tensors) { tensors[0].name = "a name"; }},
        "rank 1 saves \"a name\" as F32 [3000], and rank 0 saves no tensor of this name");
}

TEST(SaveAgreement, NamesTheRankWithOtherFiles) {
    expect_refused({2, [](Tensors&) {}, {}, 60'000},
                   "rank 1 saves 2 files, and rank 0 saves 4 files; all ranks must save with the "
                   "same WriterOptions::file_bytes");
}

// Rank 1 writes to a folder of its own node (here: another folder), and says truly that its files
// are on disk. Rank 0 looks, and does not believe in a snapshot of which it sees the half.
TEST(SaveAgreement, LooksAtTheFilesBeforeItCommits) {
    expect_refused(
        {2, [](Tensors&) {}, "elsewhere"},
        "of rank 1: snapshot-000000000002-g0-00002-of-00004.safetensors was written with");
}

// Each rank's own metadata come back to the rank, beside those of all. Where the number of ranks
// has changed, a further rank is told that there are none for it.
TEST(SaveAgreement, KeepsWhatEachRankSaysOfItself) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        auto opened = SnapshotFolder::open(context, folder, 1, {});
        auto saver = SnapshotWriter::make(context, *store, std::move(*opened)).value();
        const std::byte state[] = {std::byte{0xFF}, std::byte(context.rank.value)};
        auto done = saver->save(1, State(1).views(), {{"epoch", text_of(7)}},
                                {{"random", text_of(std::span<const std::byte>(state))}});
        return done && saver->wait() ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
    auto snapshot = SnapshotFolder::newest_in(folder, {});
    ASSERT_TRUE(snapshot) << snapshot.error();
    EXPECT_EQ(*value_of<std::int64_t>(snapshot->manifest.metadata, "epoch"), 7);
    for (int rank = 0; rank < 3; ++rank) {
        auto own = metadata_of_rank(snapshot->manifest, Rank(rank));
        ASSERT_TRUE(own);
        EXPECT_THAT(*bytes_at(*own, "random"),
                    testing::ElementsAre(std::byte{0xFF}, std::byte(rank)));
    }
    auto fourth = metadata_of_rank(snapshot->manifest, Rank(3));
    ASSERT_FALSE(fourth);
    EXPECT_THAT(fourth.error().sentence(), HasSubstr("metadata of 3 ranks, and none of rank 3"));
}

// Tensors that all ranks should have alike: one of one rank differs in its last number. It was
// saved as that of whatever rank writes its file, in a mixture.
TEST(SaveAgreement, NamesTheTensorThatIsNotTheSameEverywhere) {
    State odd(2);
    odd.values[5].back() += 1;
    const Deviation deviation{.change = [&](Tensors& tensors) { tensors[5] = odd.views()[5]; }};
    expect_refused(deviation,
                   "tensor \"t5\" is not the same on rank 1 as on rank 0; make it equal");
}

// A program that wants it so turns the comparison off, on one rank or on all.
TEST(SaveAgreement, ComparesNothingIfToldSo) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(3, [&](const Context& context) {
        auto store = connect_store(context, seconds(10)).value();
        WriterOptions options;
        options.verify_replicas = context.rank.value == 2;
        auto opened = SnapshotFolder::open(context, folder, 1, {});
        auto saver = SnapshotWriter::make(context, *store, std::move(*opened), options).value();
        const State state(context.rank.value);
        return saver->save(1, state.views(), {}) && saver->wait() ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// The habit of other libraries: one rank alone saves. The third save() would wait for the first
// one, of which the other rank knows nothing.
TEST(SaveAgreement, NamesTheRankThatNeverSaves) {
    // Each takes ten seconds.
    for (int saves = 0; saves < (std::getenv("DDPRUN_LONG") ? 2 : 1); ++saves) {
        test::TemporaryFolder folder;
        const auto ends = run_ranks(2, [&](const Context& context) {
            std::vector<std::string> warnings;
            test::StoreRank me(context);
            auto opened = SnapshotFolder::open(
                context, folder, 1, [&](const std::string& text) { warnings.push_back(text); });
            auto saver = SnapshotWriter::make(context, *me.store, std::move(*opened)).value();
            if (context.rank.value != saves) return me.hear("over") ? 0 : 1;
            Result<void> done;
            for (std::int64_t step = 1; step <= 3 && done; ++step)
                done = saver->save(step, State(step).views(), {});
            if (warnings.size() != 1 || !me.say("over")) return 2;
            const std::string absent =
                "rank " + std::to_string(1 - saves) + " has not called save() for it";
            if (warnings[0].find(absent + ", 5 s after this rank") == std::string::npos) return 3;
            saver->training_failed();
            return test::expects_error(done, absent + ", and this rank is in its second save()");
        });
        EXPECT_EQ(ends, Ends({0, 0}));
    }
}

// A rank that ends its writer earlier than another one is named at once.
TEST(SaveAgreement, NamesTheRankThatHasEndedItsWriter) {
    for (const int saves : {0, 1}) {
        test::TemporaryFolder folder;
        const auto ends = run_ranks(2, [&](const Context& context) {
            auto store = connect_store(context, seconds(10)).value();
            auto opened = SnapshotFolder::open(context, folder, 1, {});
            auto saver = SnapshotWriter::make(context, *store, std::move(*opened)).value();
            if (!saver->save(1, State(1).views(), {}) || !saver->wait()) return 1;
            if (context.rank.value != saves) return 0;
            (void)saver->save(2, State(2).views(), {});
            return test::expects_error(saver->wait(), "rank " + std::to_string(1 - saves) +
                                                          " has destroyed its SnapshotWriter "
                                                          "(calls of save(): 1)");
        });
        EXPECT_EQ(ends, Ends({0, 0}));
    }
}

}  // namespace
}  // namespace ddprun::trainer
