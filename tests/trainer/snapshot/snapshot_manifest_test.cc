// The manifest of a snapshot: what earlier versions wrote is read, and what is written now comes
// back.
#include "trainer/snapshot/snapshot_manifest.h"

#include <gmock/gmock.h>

namespace ddprun::trainer {
namespace {

// Written before there were metadata of ranks. Such a manifest must be read for ever, and is still
// written to the byte where a program gives no metadata of ranks: the result does not depend on the
// number of ranks then.
constexpr char kEarlier[] = R"({
 "checksum": "b23da26df949040f",
 "files": [
  {
   "bytes": 4180,
   "name": "snapshot-000000000192-g0.2.safetensors",
   "xxh3_64": "528a63572b062cfe"
  }
 ],
 "format": 3,
 "generation": 0,
 "metadata": {
  "consumed": "0",
  "epoch": "3"
 },
 "run_id": "none",
 "step": 192,
 "turn": 2
}
)";

TEST(SnapshotManifest, IsReadAsEarlierVersionsWroteIt) {
    const auto manifest = parse_manifest(kEarlier);
    ASSERT_TRUE(manifest) << manifest.error();
    EXPECT_EQ(manifest->name.step, 192);
    EXPECT_EQ(manifest->metadata.at("epoch"), "3");
    EXPECT_TRUE(manifest->ranks.empty());
    EXPECT_EQ(write_manifest(*manifest), kEarlier);
    EXPECT_FALSE(metadata_of_rank(*manifest, Rank(0)));
}

TEST(SnapshotManifest, HasTheMetadataOfEachRank) {
    Manifest manifest = parse_manifest(kEarlier).value();
    manifest.ranks = {{{"random", "00ff"}}, {}, {{"random", "01ff"}}};
    const auto again = parse_manifest(write_manifest(manifest));
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->ranks, manifest.ranks);
    EXPECT_TRUE(metadata_of_rank(*again, Rank(1)).value().empty());
}

// A number of the metadata that is missing or wrong is named with the snapshot, as a mistake of the
// user: it is a snapshot of another program.
TEST(SnapshotManifest, NamesItselfInErrorsAboutItsMetadata) {
    const Manifest manifest = parse_manifest(kEarlier).value();
    EXPECT_EQ(value_of<int>(manifest, "epoch").value(), 3);
    const auto seed = value_of<int>(manifest, "seed");
    ASSERT_FALSE(seed);
    EXPECT_EQ(seed.error().code(), ErrorCode::usage);
    EXPECT_THAT(seed.error().sentence(),
                testing::HasSubstr("snapshot snapshot-000000000192-g0: the metadata have no "
                                   "\"seed\""));
}

// Metadata travel through the store as one line, also with signs that JSON has words for.
TEST(SnapshotManifest, SendsMetadataAsOneLine) {
    const Metadata metadata{{"a", "1"}, {"line", "x\ny \"z\""}, {"", ""}};
    const std::string line = write_metadata(metadata);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(parse_metadata(line).value(), metadata);
    for (const char* text : {"", "[]", "{\"a\": 1}", "{\"a\"", "7"})
        EXPECT_FALSE(parse_metadata(text)) << text;
}

}  // namespace
}  // namespace ddprun::trainer
