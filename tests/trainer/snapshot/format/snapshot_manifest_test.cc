// The manifest of a snapshot: what earlier versions wrote is read, and what is written now comes
// back.
#include "trainer/snapshot/format/snapshot_manifest.h"

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

// Files of slices have checksums of their blocks, and a format of their own: a version that does
// not know them would load the other half. Only names of the snapshot's own are believed.
TEST(SnapshotManifest, HasTheBlocksOfFilesOfSlices) {
    Manifest manifest = parse_manifest(kEarlier).value();
    const auto slices = [&](std::size_t rank, std::uint64_t bytes) {
        return SnapshotFile{manifest.name.slices(rank, 4, 1), bytes, "0011223344556677", {"a"}};
    };
    manifest.files.push_back(slices(0, kChecksumBlock));
    manifest.files.push_back(slices(2, kChecksumBlock + 1));
    manifest.files.back().blocks = {"a", "b"};
    const std::string text = write_manifest(manifest);
    EXPECT_NE(text.find("\"format\": 4"), std::string::npos);
    const auto again = parse_manifest(text);
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->files, manifest.files);
    const auto refused = [&](const SnapshotFile& file) {
        Manifest strange = manifest;
        strange.files.back() = file;
        return !parse_manifest(write_manifest(strange));
    };
    SnapshotFile other = slices(2, 1);
    EXPECT_FALSE(refused(other));
    other.name = "../" + other.name;
    EXPECT_TRUE(refused(other));
    other.name = SnapshotName{193, Generation(0)}.slices(2, 4, 1);
    EXPECT_TRUE(refused(other));
    other.name = manifest.name.slices(2, 4, 0);  // of another edition
    EXPECT_TRUE(refused(other));
    other.name = manifest.name.slices(2, 5, 1);  // of another number of ranks
    EXPECT_TRUE(refused(other));
    EXPECT_TRUE(refused(slices(0, 1)));                   // twice
    EXPECT_TRUE(refused(slices(2, kChecksumBlock + 1)));  // a block too few
    EXPECT_TRUE(refused(slices(2, 0)));                   // a block too many
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

TEST(SnapshotManifest, ChecksumsAreTheSameInPiecesAndAtOnce) {
    std::vector<std::byte> bytes(kChecksumBlock + 5);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
    for (const std::size_t size :
         {0UL, 1UL, 16UL, 129UL, 240UL, 241UL, 1024UL, 4099UL, bytes.size()}) {
        const std::span<const std::byte> part(bytes.data(), size);
        Checksum pieces;
        pieces.add(part.first(size / 3));
        pieces.add(part.subspan(size / 3));
        EXPECT_EQ(checksum_of(part), pieces.text()) << size;
    }
}

// A file ends at its limit of bytes, and before its names are too many for a reader.
TEST(SnapshotManifest, PlansFilesThatCanBeRead) {
    const std::vector<std::byte> data(60);
    const auto named = [&](char first, std::size_t letters) {
        return TensorView{std::string(letters, first), DataType::uint8, {60}, data};
    };
    using Plan = std::vector<std::vector<std::size_t>>;
    EXPECT_EQ(plan_files({named('a', 1), named('b', 1), named('c', 1)}, 120), Plan({{0, 1}, {2}}));
    constexpr std::size_t kLong = 20'000'000;
    EXPECT_EQ(plan_files({named('a', kLong), named('b', kLong), named('c', kLong)}, 1000),
              Plan({{0, 1}, {2}}));
}

}  // namespace
}  // namespace ddprun::trainer
