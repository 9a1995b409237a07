// Snapshots of which each rank brings its own slices: real processes, a real store, real files.
// What was saved by some ranks is loaded by others, cut otherwise, and only what fits together is
// saved at all.
#include <gmock/gmock.h>

#include "tests/trainer/snapshot/part.h"
#include "trainer/snapshot/load/load_slices.h"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using test::Ends;
using test::expect_error;
using test::open;
using test::Part;
using test::run_ranks;
using test::writer;
using testing::HasSubstr;

// Four ranks, 2 × 2: "w" in quarters of unequal size; "b", which all have; "d", which only rank 3
// has. Saves the steps 1 to 3.
Ends save_on_four(const std::string& folder) {
    return run_ranks(4, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        const std::uint64_t row = rank / 2 ? 7 : 0, column = rank % 2 ? 4 : 0;
        Part w("w", {12, 6}, {row, column}, {rank / 2 ? 5u : 7u, rank % 2 ? 2u : 4u});
        std::vector<float> b(3), d(2);
        std::vector<Tensor> state{w.tensor, tensor("b", {3}, std::span(b))};
        if (rank == 3) state.push_back(only_here("d", {2}, std::span(d)));
        saver->prepare(views_of(state));
        for (std::int64_t step = 1; step <= 3; ++step) {
            w.fill(step);
            b.assign(3, static_cast<float>(step));
            d.assign(2, static_cast<float>(-step));
            if (!saver->save(step, views_of(state), {{"epoch", "5"}})) return 1;
        }
        auto done = saver->wait();
        if (!done) std::fprintf(stderr, "%s\n", done.error().sentence().c_str());
        return done ? 0 : 2;
    });
}

// Three ranks with rows in threes load what four ranks with quarters have saved.
TEST(ShardedSnapshot, IsLoadedByAnotherNumberOfRanksCutOtherwise) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_on_four(folder), Ends({0, 0, 0, 0}));
    const auto ends = run_ranks(3, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        auto place = open(context, folder);
        Part w("w", {12, 6}, {4 * rank, 0}, {4, 6});
        std::vector<float> b(3), d(2);
        const std::vector<Tensor> state{w.tensor, tensor("b", {3}, std::span(b)),
                                        tensor("d", {2}, std::span(d))};
        auto loaded = resume_into(context, *store, place, state, seconds(10));
        if (!loaded) return expect_error(loaded.error(), "-");
        if (!*loaded || (*loaded)->manifest.name.step != 3) return 1;
        if ((*loaded)->manifest.metadata.at("epoch") != "5") return 2;
        if (!w.has(3)) return 3;
        return b == std::vector<float>(3, 3) && d == std::vector<float>(2, -3) ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// The same from a snapshot that is in memory as a whole, also all of a tensor.
TEST(ShardedSnapshot, IsPutTogetherInMemory) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_on_four(folder), Ends({0, 0, 0, 0}));
    const auto snapshot = SnapshotFolder::newest_in(folder, {});
    ASSERT_TRUE(snapshot) << snapshot.error();
    Part w("w", {12, 6}, {0, 0}, {12, 6}), middle("w", {12, 6}, {5, 2}, {4, 3});
    ASSERT_TRUE(load_into(*snapshot, {w.tensor, middle.tensor}, {Rest::ignored}));
    EXPECT_TRUE(w.has(3));
    EXPECT_TRUE(middle.has(3));
    EXPECT_EQ(snapshot->content.find("w"), nullptr);
    EXPECT_NE(snapshot->content.find("d"), nullptr);
    Part other("w", {12, 7}, {0, 0}, {1, 7});
    EXPECT_THAT(load_into(*snapshot, {other.tensor}, {Rest::ignored}).error().sentence(),
                HasSubstr("tensor \"w\" is F32 [12, 6] in snapshot snapshot-000000000003-g0, and "
                          "F32 [12, 7] in this program"));
}

// One file of slices for each rank that has some, and an index; what is older goes with its index.
TEST(ShardedSnapshot, HasAFileOfEachRankAndAnIndex) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_on_four(folder), Ends({0, 0, 0, 0}));
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path()))
        if (entry.path().filename().string().find("000003-g0") != std::string::npos)
            names.push_back(entry.path().filename());
        else
            EXPECT_THAT(entry.path().filename().string(),
                        testing::AnyOf(HasSubstr("000002-g0"), HasSubstr("resume-"), "in-use"));
    const std::string stem = "snapshot-000000000003-g0";
    EXPECT_THAT(names, testing::UnorderedElementsAre(stem + ".json", stem + ".safetensors",
                                                     stem + ".safetensors.index.json",
                                                     stem + "-slices-00001-of-00004.safetensors",
                                                     stem + "-slices-00002-of-00004.safetensors",
                                                     stem + "-slices-00003-of-00004.safetensors",
                                                     stem + "-slices-00004-of-00004.safetensors"));
    const std::string index = test::read_all(folder.path() / (stem + ".safetensors.index.json"));
    EXPECT_THAT(index,
                HasSubstr("\"w[7:12, 4:6]\": \"" + stem + "-slices-00004-of-00004.safetensors\""));
    EXPECT_THAT(index, HasSubstr("\"b\": \"" + stem + ".safetensors\""));
    EXPECT_THAT(test::read_all(folder.path() / (stem + ".json")), HasSubstr("\"format\": 4"));
}

constexpr std::uint64_t kRows = 4096, kColumns = 512;  // 2 MiB a quarter of the rows

// Rows in quarters, from four ranks; nothing but slices, so there is no other file.
Ends save_rows(const std::string& folder, std::int64_t step) {
    return run_ranks(4, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        Part w("w", {kRows, kColumns}, {rank * kRows / 4, 0}, {kRows / 4, kColumns});
        w.fill(step);
        return saver->save(step, views_of({w.tensor}), {}) && saver->wait() ? 0 : 1;
    });
}

TEST(ShardedSnapshot, ReadsOnlyTheBlocksThatARankNeeds) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_rows(folder, 1), Ends({0, 0, 0, 0}));
    constexpr std::uint64_t kMiB = 1 << 20;
    const SnapshotName name{1, Generation(0)};
    // A header a file (one block each, which the data of it share), and the slice.
    Part few("w", {kRows, kColumns}, {100, 0}, {10, kColumns});
    auto loaded = load_slices(folder, name, {few.tensor});
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_TRUE(few.has(1));
    EXPECT_EQ(loaded->bytes_read, 4 * kMiB);
    Part third("w", {kRows, kColumns}, {0, 0}, {kRows / 4, kColumns});
    loaded = load_slices(folder, name, {third.tensor});
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_TRUE(third.has(1));
    // 2 MiB and a header of 4096 bytes.
    EXPECT_EQ(loaded->bytes_read, 5 * kMiB + 4096);
    // A column touches every block.
    Part column("w", {kRows, kColumns}, {0, 7}, {kRows, 1});
    loaded = load_slices(folder, name, {column.tensor});
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_TRUE(column.has(1));
    EXPECT_EQ(loaded->bytes_read, 4 * (2 * kMiB + 4096));
}

// What ranks of a grid bring, two parts and two replicas: halves of "w" and "m", and "n" whole.
// Saves the steps from 1 to `last`; exits with 1 if that fails. On rank 1 `copy` takes the place of
// memcpy.
Ends save_replicas(const std::string& folder, std::int64_t last, const CopyTensor& copy = {}) {
    return run_ranks(4, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        WriterOptions options;
        options.timeout = seconds(10);
        if (rank == 1) options.copy = copy;
        auto saver = SnapshotWriter::make(context, *store, open(context, folder), options).value();
        Part w("w", {8, 6}, {0, rank % 2 * 3}, {8, 3}), m("m", {8, 6}, {0, rank % 2 * 3}, {8, 3});
        std::vector<float> n(5);
        const std::vector<Tensor> state{w.tensor, m.tensor, only_here("n", {5}, std::span(n))};
        saver->prepare(views_of(state));
        for (std::int64_t step = 1; step <= last; ++step) {
            w.fill(step);
            m.fill(step + 10);
            n.assign(5, static_cast<float>(step));
            (void)saver->save(step, views_of(state), {});
        }
        return saver->wait() ? 0 : 1;
    });
}

// Each slice is in one file, all ranks write some, and three ranks with other parts have it all.
TEST(ShardedSnapshot, WritesReplicasOnce) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_replicas(folder, 3), Ends({0, 0, 0, 0}));
    const auto snapshot = SnapshotFolder::newest_in(folder, {});
    ASSERT_TRUE(snapshot) << snapshot.error();
    std::size_t bytes = 0;
    for (const auto& tensor : snapshot->content.tensors) bytes += tensor.data.size();
    EXPECT_EQ(bytes, sizeof(float) * (2 * 8 * 6 + 5));
    EXPECT_EQ(snapshot->content.tensors.size(), 5u);
    EXPECT_EQ(snapshot->manifest.files.size(), 4u);
    const auto ends = run_ranks(3, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        auto place = open(context, folder);
        Part w("w", {8, 6}, {0, 2 * rank}, {8, 2}), m("m", {8, 6}, {2 * rank, 0}, {4, 6});
        std::vector<float> n(5);
        const std::vector<Tensor> state{w.tensor, m.tensor, tensor("n", {5}, std::span(n))};
        auto loaded = resume_into(context, *store, place, state, seconds(10));
        if (!loaded) return expect_error(loaded.error(), "-");
        return w.has(3) && m.has(13) && n == std::vector<float>(5, 3) ? 0 : 1;
    });
    EXPECT_EQ(ends, Ends({0, 0, 0}));
}

// Rank 1 cannot copy what rank 3 has, too. The snapshot fails all the same: all ranks hear one
// result.
TEST(ShardedSnapshot, FailsForAllIfAReplicaCannotBeCopied) {
    test::TemporaryFolder folder;
    const auto fails = [](std::byte*, const TensorView& tensor) -> Result<void> {
        return Error(ErrorCode::unavailable, "no copy of " + tensor.name);
    };
    EXPECT_EQ(save_replicas(folder, 1, fails), Ends({1, 1, 1, 1}));
    for (const auto& entry : fs::directory_iterator(folder.path()))
        EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("snapshot-")));
}

// Changes one byte of a file.
void damage(const fs::path& file, std::size_t at) {
    std::string text = test::read_all(file);
    text[at] = static_cast<char>(text[at] ^ 1);
    test::write_all(file, text);
}

// Only rank 1 needs the damaged block. All ranks take the snapshot before, and rank 0 says why.
// Rank 1 alone would have trained on with other numbers than the rest.
TEST(ShardedSnapshot, IsSkippedByAllRanksIfItIsDamagedForOne) {
    test::TemporaryFolder folder;
    ASSERT_EQ(save_rows(folder, 1), Ends({0, 0, 0, 0}));
    ASSERT_EQ(save_rows(folder, 2), Ends({0, 0, 0, 0}));
    damage(folder.path() / "snapshot-000000000002-g0-slices-00004-of-00004.safetensors",
           std::size_t{2} << 20);
    const auto ends = run_ranks(2, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        std::string warned;
        auto place = open(context, folder, [&](const std::string& text) { warned += text; });
        Part w("w", {kRows, kColumns}, {rank * kRows / 2, 0}, {kRows / 2, kColumns});
        auto loaded = resume_into(context, *store, place, {w.tensor}, seconds(10));
        if (!loaded) return expect_error(loaded.error(), "-");
        if (!*loaded || (*loaded)->manifest.name.step != 1 || !w.has(1)) return 1;
        const bool said =
            warned.find("snapshot-000000000002-g0.json is skipped: rank 1: ") != std::string::npos;
        return said == (rank == 0) ? 0 : 2;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    // Who does not need the block may look at the newest.
    Part w("w", {kRows, kColumns}, {0, 0}, {1, kColumns});
    EXPECT_TRUE(load_slices(folder, {2, Generation(0)}, {w.tensor}));
}

// A damaged header is a damaged snapshot and no wrong program, in a file of slices and in another.
TEST(ShardedSnapshot, IsDamagedIfAHeaderIs) {
    for (const char* file : {"-slices-00002-of-00004.safetensors", ".safetensors"}) {
        test::TemporaryFolder folder;
        ASSERT_EQ(save_on_four(folder), Ends({0, 0, 0, 0}));
        const auto path = folder.path() / ("snapshot-000000000003-g0" + std::string(file));
        // The tensor gets another name: "w" → "v", "b" → "c".
        const std::string text = test::read_all(path);
        damage(path, text.find(file[0] == '-' ? "\"w[" : "\"b\"") + 1);
        Part w("w", {12, 6}, {0, 0}, {12, 6});
        std::vector<float> b(3), d(2);
        const auto loaded =
            load_slices(folder, {3, Generation(0)},
                        {w.tensor, tensor("b", {3}, std::span(b)), tensor("d", {2}, std::span(d))});
        ASSERT_FALSE(loaded);
        EXPECT_EQ(loaded.error().code(), ErrorCode::malformed) << loaded.error();
        EXPECT_THAT(loaded.error().sentence(), HasSubstr("does not match its checksum"));
    }
}

// Saves step 1 well and step 2 with what `change` makes of rank 1's slice of two.
void expect_refused(const std::function<Tensor(Part&)>& change, const std::string& sentence) {
    test::TemporaryFolder folder;
    const auto ends = run_ranks(2, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        auto saver = writer(context, *store, folder);
        Part w("w", {8, 4}, {4 * rank, 0}, {4, 4});
        w.fill(1);
        if (!saver->save(1, views_of({w.tensor}), {}) || !saver->wait()) return 1;
        (void)saver->save(2, views_of({rank ? change(w) : w.tensor}), {});
        if (int wrong = expect_error(saver->wait(), sentence)) return wrong;
        if (saver->newest().step != 1) return 2;
        // And it goes on.
        w.fill(3);
        return saver->save(3, views_of({w.tensor}), {}) && saver->wait() ? 0 : 3;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
    Part w("w", {8, 4}, {0, 0}, {8, 4});
    ASSERT_TRUE(load_slices(folder, {3, Generation(0)}, {w.tensor}));
    EXPECT_TRUE(w.has(3));
    for (const auto& entry : fs::directory_iterator(folder.path()))
        EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("000002")));
}

TEST(ShardedSnapshot, IsRefusedWithAGap) {
    expect_refused(
        [](Part& w) {
            return slice_of("w", {8, 4}, {5, 0}, {3, 4}, std::span(w.values).first(12));
        },
        "tensor \"w\": no rank brings the element [4, 0]: all slices together have 28 elements, "
        "and "
        "the whole (F32 [8, 4]) has 32");
}

TEST(ShardedSnapshot, IsRefusedWithAnOverlap) {
    expect_refused(
        [](Part& w) {
            return slice_of("w", {8, 4}, {3, 0}, {4, 4}, std::span(w.values));
        },
        "tensor \"w\": rank 0 has the slice [0:4, 0:4] and rank 1 the slice [3:7, 0:4], so "
        "[3:4, 0:4] would be saved twice");
}

TEST(ShardedSnapshot, IsRefusedWithAnotherShapeOrType) {
    expect_refused(
        [](Part& w) {
            return slice_of("w", {9, 4}, {4, 0}, {4, 4}, std::span(w.values));
        },
        "tensor \"w\": rank 1 has a slice of F32 [9, 4], and rank 0 one of F32 [8, 4]");
    expect_refused(
        [](Part& w) {
            Tensor tensor = w.tensor;
            tensor.type = DataType::int32;
            return tensor;
        },
        "tensor \"w\": rank 1 has a slice of I32 [8, 4], and rank 0 one of F32 [8, 4]");
}

TEST(ShardedSnapshot, IsRefusedWithASliceOutside) {
    expect_refused(
        [](Part& w) {
            return slice_of("w", {8, 4}, {5, 0}, {4, 4}, std::span(w.values));
        },
        "rank 1 could not write its part: the slice [4, 4] of tensor \"w\" at [5, 0] does not lie "
        "in "
        "the whole [8, 4]");
}

// A snapshot without slices, as older versions write them, is cut while it is read; rank 1 lists
// another shape, which no rank may train on with.
TEST(ShardedSnapshot, IsAlsoReadFromWholeTensors) {
    test::TemporaryFolder folder;
    {
        Part w("w", {8, 4}, {0, 0}, {8, 4});
        w.fill(7);
        auto place = open({}, folder);
        ASSERT_TRUE(
            place.save(7, {tensor_view("w", {8, 4}, std::span<const float>(w.values))}, {}));
    }
    EXPECT_THAT(test::read_all(folder.path() / "snapshot-000000000007-g0.json"),
                HasSubstr("\"format\": 3"));
    const auto load = [&](std::uint64_t rows_on_one) {
        return run_ranks(2, [&, rows_on_one](const Context& context) {
            const auto rank = static_cast<std::uint64_t>(context.rank.value);
            auto store = connect_store(context, seconds(10)).value();
            auto place = open(context, folder);
            Part w("w", {rank ? rows_on_one : 8, 4}, {4 * rank, 1}, {4, 2});
            auto loaded = resume_into(context, *store, place, {w.tensor}, seconds(10));
            if (!loaded) return expect_error(loaded.error(), "rank 1: tensor \"w\" is F32 [8, 4]");
            return *loaded && w.has(7) ? 1 : 2;
        });
    };
    EXPECT_EQ(load(8), Ends({1, 1}));
    EXPECT_EQ(load(9), Ends({0, 0}));
}

// Nothing is there: the tensors stay. Then a base folder has something.
TEST(ShardedSnapshot, MayBeAbsentOrInTheBaseFolder) {
    test::TemporaryFolder folder, base;
    ASSERT_EQ(save_rows(base, 4), Ends({0, 0, 0, 0}));
    const auto ends = run_ranks(2, [&](const Context& context) {
        const auto rank = static_cast<std::uint64_t>(context.rank.value);
        auto store = connect_store(context, seconds(10)).value();
        Part w("w", {kRows, kColumns}, {rank * kRows / 2, 0}, {kRows / 2, kColumns});
        w.fill(9);
        auto place = open(context, folder);
        auto none = resume_into(context, *store, place, {w.tensor}, seconds(10));
        if (!none || *none || !w.has(9)) return 1;
        auto tuned = SnapshotFolder::open(context, folder, 2, {}, base).value();
        auto loaded = resume_into(context, *store, tuned, {w.tensor}, seconds(10));
        if (!loaded || !*loaded || !(*loaded)->from_base || !w.has(4)) return 2;
        // The same step again, in another edition of the files.
        auto saver = writer(context, *store, folder);
        for (std::int64_t step : {5, 6}) {
            w.fill(step);
            if (!saver->save(5, views_of({w.tensor}), {}) || !saver->wait()) return 3;
        }
        saver.reset();
        auto again = open(context, folder);
        loaded = resume_into(context, *store, again, {w.tensor}, seconds(10));
        return loaded && *loaded && w.has(6) ? 0 : 4;
    });
    EXPECT_EQ(ends, Ends({0, 0}));
}

}  // namespace
}  // namespace ddprun::trainer
