// The names of snapshot files, and the rules on them: which snapshots may be used, and which are
// removed. Pure: names are texts, no file exists.
#include "trainer/snapshot/format/snapshot_name.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SnapshotName name(std::int64_t step, std::int64_t generation) {
    return {step, Generation(generation)};
}

// A name is written and read in one spelling only. A second one ("snapshot-100-g3.json") would
// stand for files that have other names.
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
    EXPECT_EQ(record_name(12), "resume-000000000012.json");
    EXPECT_EQ(parse_record_name("resume-000000000012.json"), 12);
    for (const char* other : {"resume-12.json", "resume-.json", "resume-g12.json",
                              "resume-000000000000.json", "resume-000000000012.json.tmp"})
        EXPECT_EQ(parse_record_name(other), std::nullopt) << other;
    EXPECT_EQ(last_turn({"resume-000000000002.json", "resume-000000000011.json", "a"}), 11);
    EXPECT_EQ(last_turn({}), 0);
}

// Each file of a snapshot leads back to it and tells its edition, also a temporary one. What is not
// recognized is never removed, and would fill the disk.
TEST(SnapshotName, KnowsItsFiles) {
    const SnapshotName it = name(7, 3);
    EXPECT_EQ(it.tensors(), "snapshot-000000000007-g3.safetensors");
    EXPECT_EQ(it.tensors(1, 3), "snapshot-000000000007-g3-00002-of-00003.safetensors");
    EXPECT_EQ(it.tensors(0, 1, 1), "snapshot-000000000007-g3.2.safetensors");
    EXPECT_EQ(it.tensors(1, 3, 9), "snapshot-000000000007-g3.10-00002-of-00003.safetensors");
    for (const auto& file : {it.manifest(), it.tensors(), it.tensors(1, 3), it.tensors(0, 1, 1),
                             it.tensors(1, 3, 9), it.tensors() + ".0a1b.tmp"})
        EXPECT_EQ(snapshot_of(file), it) << file;
    EXPECT_EQ(snapshot_of("resume-000000000003.json"), std::nullopt);
    for (int edition : {0, 1, 9}) {
        EXPECT_EQ(edition_of(it.tensors(0, 1, edition)), edition);
        EXPECT_EQ(edition_of(it.tensors(1, 3, edition) + ".0a1b.tmp"), edition);
    }
}

TEST(SnapshotName, KnowsFilesOfSlices) {
    const SnapshotName it = name(7, 3);
    EXPECT_EQ(it.slices(1, 4), "snapshot-000000000007-g3-slices-00002-of-00004.safetensors");
    EXPECT_EQ(it.slices(1, 4, 1), "snapshot-000000000007-g3.2-slices-00002-of-00004.safetensors");
    EXPECT_EQ(it.index(), "snapshot-000000000007-g3.safetensors.index.json");
    EXPECT_EQ(it.index(1), "snapshot-000000000007-g3.2.safetensors.index.json");
    for (int edition : {0, 1, 9}) {
        EXPECT_EQ(parse_slices_name(it.slices(3, 4, edition)),
                  (std::pair<std::size_t, std::size_t>(3, 4)));
        for (const auto& file : {it.slices(3, 4, edition), it.index(edition)}) {
            EXPECT_EQ(snapshot_of(file), it) << file;
            EXPECT_EQ(edition_of(file), edition) << file;
            EXPECT_FALSE(parse_manifest_name(file)) << file;
            EXPECT_EQ(next_edition(it, {file}), edition + 1) << file;
            EXPECT_THAT(leftovers({file}), ElementsAre(file));
            EXPECT_THAT(leftovers({file, it.manifest()}), ElementsAre());
        }
    }
    for (const char* file :
         {"snapshot-000000000007-g3-slices-00005-of-00004.safetensors",
          "snapshot-000000000007-g3-slices-00000-of-00004.safetensors",
          "snapshot-000000000007-g3-slices-2-of-4.safetensors",
          "snapshot-000000000007-g3-slices-of-.safetensors",
          "snapshot-000000000007-g3-00002-of-00004.safetensors", "snapshot-000000000007-g3-slices",
          "-slices-00002-of-00004.safetensors"})
        EXPECT_FALSE(parse_slices_name(file)) << file;
}

// A step that is saved once more gets names that no file has, not even a temporary one. So the
// files of the old snapshot stay valid until the new manifest is in place.
TEST(SnapshotName, FindsAFreeEdition) {
    const SnapshotName it = name(7, 3);
    EXPECT_EQ(next_edition(it, {name(8, 3).tensors(), name(7, 2).tensors()}), 0);
    EXPECT_EQ(next_edition(it, {it.manifest(), it.tensors()}), 1);
    // A manifest whose files are gone is replaced.
    EXPECT_EQ(next_edition(it, {it.manifest()}), 1);
    EXPECT_EQ(next_edition(it, {it.tensors(0, 2, 4) + ".ff.tmp", it.tensors()}), 5);
}

// A loader removes what a dead writer left: temporary files, and tensors without a manifest. A
// user's own files in the folder stay, even with our endings.
TEST(SnapshotName, KnowsLeftovers) {
    const std::string whole = name(7, 3).tensors(0, 2), lost = name(8, 3).tensors(1, 2),
                      half = name(9, 3).tensors() + ".01.tmp", record = record_name(4) + ".02.tmp";
    EXPECT_THAT(leftovers({name(7, 3).manifest(), whole, lost, half, record, record_name(4),
                           "thesis.tmp", "thesis.json.tmp", "thesis.safetensors"}),
                ElementsAre(lost, half, record));
}

// The last loader had turn 5. What was written under an earlier turn, and is not in its record,
// comes from a stale writer. Generations do not decide: they begin again at 0 when a job is started
// again.
TEST(SnapshotName, LeavesOutWhatAStaleWriterAdded) {
    const ResumeRecord last{5, "run", Generation(1), {name(10, 0).manifest()}};
    EXPECT_TRUE(is_admissible(name(10, 0), 2, last));
    EXPECT_FALSE(is_admissible(name(99, 3), 4, last));
    EXPECT_TRUE(is_admissible(name(20, 1), 5, last));
    EXPECT_TRUE(is_admissible(name(30, 0), 7, last));
    EXPECT_TRUE(is_admissible(name(30, 0), 0, ResumeRecord{}));
}

// The snapshot just written stays, and the newest ones before it, `keep` in all. What nobody may
// use (99) goes, whatever its step.
TEST(SnapshotName, KeepsTheNewest) {
    const std::vector<SnapshotName> all{name(10, 0), name(20, 1), name(30, 1), name(99, 0)};
    const std::vector<SnapshotName> usable{name(10, 0), name(20, 1), name(30, 1)};
    EXPECT_THAT(surplus(all, usable, name(30, 1), 2), ElementsAre(name(10, 0), name(99, 0)));
    EXPECT_THAT(surplus(all, usable, name(30, 1), 5), ElementsAre(name(99, 0)));
    EXPECT_THAT(surplus({name(1, 0), name(2, 0)}, {name(1, 0)}, name(2, 0), 5), IsEmpty());
    // One that is gone does not count.
    EXPECT_THAT(surplus({name(1, 0), name(3, 0)}, {name(1, 0), name(2, 0)}, name(3, 0), 2),
                IsEmpty());
}

// Training went on from 10, before the newest (20), because that one is damaged or because somebody
// decided so. Those with more steps neither count nor go until the training has overtaken them.
TEST(SnapshotName, LeavesSkippedOnesAlone) {
    const std::vector<SnapshotName> all{name(10, 0), name(15, 1), name(20, 0)};
    EXPECT_THAT(surplus(all, all, name(15, 1), 1), ElementsAre(name(10, 0)));
    EXPECT_THAT(surplus({name(20, 0), name(20, 1)}, {name(20, 0)}, name(20, 1), 1),
                ElementsAre(name(20, 0)));
}

}  // namespace
}  // namespace ddprun::trainer
