#include "trainer/snapshot_name.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SnapshotName name(std::int64_t step, std::int64_t generation) {
    return {step, Generation(generation)};
}

// A name is written and read in one spelling only.
TEST(SnapshotName, HasOneSpelling) {
    EXPECT_EQ(name(100, 3).manifest(), "snapshot-000000000100-g3.json");
    EXPECT_EQ(parse_manifest_name("snapshot-000000000100-g3.json"), name(100, 3));
    EXPECT_EQ(parse_manifest_name("snapshot-1234567890123-g0.json"), name(1234567890123, 0));
    for (const char* other :
         {"snapshot-100-g3.json", "snapshot-000000000100-g3.json.tmp", "snapshot--g.json", "",
          "snapshot-000000000100-g3.safetensors", "snapshot-000000000100-g03.json",
          "snapshot-00000000010x-g3.json", "snapshot-.json", "resume-g3.json"}) {
        EXPECT_EQ(parse_manifest_name(other), std::nullopt) << other;
    }
    EXPECT_EQ(parse_record_name("resume-g12.json"), Generation(12));
    EXPECT_EQ(parse_record_name("resume-g.json"), std::nullopt);
}

// Every file of a snapshot leads back to it; what has no manifest and is of an earlier generation
// is nobody's.
TEST(SnapshotName, KnowsItsFiles) {
    const SnapshotName it = name(7, 3);
    EXPECT_EQ(it.tensors(), "snapshot-000000000007-g3.safetensors");
    EXPECT_EQ(it.tensors(1, 3), "snapshot-000000000007-g3-00002-of-00003.safetensors");
    for (const auto& file : {it.manifest(), it.tensors(), it.tensors(1, 3), it.tensors() + ".tmp"})
        EXPECT_EQ(snapshot_of(file), it) << file;
    EXPECT_EQ(snapshot_of("resume-g3.json"), std::nullopt);
    EXPECT_TRUE(is_orphan(it.tensors(0, 2), Generation(4), {name(7, 31)}));
    EXPECT_FALSE(is_orphan(it.tensors(0, 2), Generation(4), {it}));
    EXPECT_FALSE(is_orphan(it.tensors(0, 2), Generation(3), {}));
    EXPECT_FALSE(is_orphan(it.manifest(), Generation(4), {}));
}

// The newest is the one with the most steps; of two with as many, that of the later generation.
TEST(SnapshotName, OrdersByStepThenGeneration) {
    EXPECT_THAT(candidates({name(10, 0), name(30, 0), name(20, 1), name(30, 1)}, {}),
                ElementsAre(name(30, 1), name(30, 0), name(20, 1), name(10, 0)));
}

// What a stale generation writes after a later one began is in nobody's record and is never used.
TEST(SnapshotName, LeavesOutWhatAStaleWriterAdded) {
    const std::vector<ResumeRecord> records{{Generation(1), {name(10, 0).manifest()}}};
    EXPECT_THAT(candidates({name(10, 0), name(99, 0), name(20, 1)}, records),
                ElementsAre(name(20, 1), name(10, 0)));
}

// Of the admissible ones the newest stay; what a stale writer added goes whatever its step.
TEST(SnapshotName, KeepsTheNewest) {
    const std::vector<ResumeRecord> records{{Generation(1), {name(10, 0).manifest()}}};
    EXPECT_THAT(surplus({name(10, 0), name(99, 0), name(20, 1), name(30, 1)}, records, 2),
                ElementsAre(name(10, 0), name(99, 0)));
    EXPECT_THAT(surplus({name(1, 0), name(2, 0)}, {}, 5), IsEmpty());
}

// Only temporaries of earlier generations are rubbish; those of our own are being written.
TEST(SnapshotName, KnowsStaleTemporaries) {
    EXPECT_TRUE(is_stale_temporary("snapshot-000000000100-g3.safetensors.tmp", Generation(4)));
    EXPECT_TRUE(is_stale_temporary("resume-g3.json.tmp", Generation(4)));
    EXPECT_FALSE(is_stale_temporary("snapshot-000000000100-g4.json.tmp", Generation(4)));
    EXPECT_FALSE(is_stale_temporary("snapshot-000000000100-g3.json", Generation(4)));
    EXPECT_FALSE(is_stale_temporary("thesis.tmp", Generation(4)));
}

}  // namespace
}  // namespace ddprun::trainer
