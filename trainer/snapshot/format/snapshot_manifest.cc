// Writes and parses manifests and records.
#include "trainer/snapshot/format/snapshot_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hexadecimal.h"

namespace ddprun::trainer {
namespace {

using Json = nlohmann::json;

// Raised with each incompatible change of the fields.
constexpr int kFormat = 3;
constexpr int kDepth = 8;       // of objects and lists in each other; ours have four
constexpr int kWithSlices = 4;  // the same, and files of slices: readers of 3 would miss them

// The text whose checksum is taken. The keys are sorted and the numbers are integers, so equal
// values give equal text on every machine.
std::string dump(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string checksum_of_text(const std::string& text) {
    return checksum_of(std::as_bytes(std::span(text)));
}

// Adds format and checksum. The checksum covers everything else.
std::string sealed(Json json, int format = kFormat) {
    json["format"] = format;
    json["checksum"] = checksum_of_text(dump(json));
    return dump(json) + "\n";
}

// Checks what sealed() added. `what` is the subject of the messages.
Result<Json> unsealed(const std::string& text, const char* what) {
    // Without exceptions: a text that is no JSON gives a value that is no object. What is nested
    // deeper than ours is dropped: dump() would need a stack as deep.
    const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth < kDepth; };
    Json json = Json::parse(text, shallow, false);
    if (!json.is_object() || !json.contains("checksum") || !json["checksum"].is_string()) {
        return Error(ErrorCode::malformed, std::string(what) + " is not complete");
    }
    const std::string checksum = json["checksum"].get<std::string>();
    // The checksum was computed without this field, and is compared in the same way.
    json.erase("checksum");
    if (checksum_of_text(dump(json)) != checksum) {
        return Error(ErrorCode::malformed, std::string(what) + " does not match its own checksum");
    }
    // After the checksum: of a damaged text nothing is believed, not even the format.
    const Json format = json.value("format", Json());
    if (format != kFormat && format != kWithSlices) {
        return Error(ErrorCode::malformed,
                     std::string(what) + " has a format that this program does not know");
    }
    return json;
}

// Of names and shapes in one file, whose readers take 100,000,000 bytes of them.
constexpr std::uint64_t kHeaderBytes = 90'000'000;

// In JSON a letter takes two bytes at most, and a number 20 digits.
std::uint64_t most_of_header(const TensorView& tensor) {
    return 2 * tensor.name.size() + 21 * tensor.shape.size() + 100;
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_files(const std::vector<TensorView>& tensors,
                                                 std::uint64_t limit) {
    // By name, so that the plan does not depend on the order in which a program lists its tensors.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (!tensors[i].place) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
    // At least one file, also if there are no tensors: a manifest names at least one.
    std::vector<std::vector<std::size_t>> files(1);
    std::uint64_t bytes = 0, header = 0;
    for (std::size_t index : order) {
        const std::uint64_t own_bytes = tensors[index].data.size();
        const std::uint64_t own_header = most_of_header(tensors[index]);
        // A tensor that is larger than a limit gets a file of its own, and is not divided.
        if (!files.back().empty() &&
            (bytes + own_bytes > limit || header + own_header > kHeaderBytes)) {
            files.emplace_back();
            bytes = header = 0;
        }
        files.back().push_back(index);
        bytes += own_bytes;
        header += own_header;
    }
    return files;
}

std::string write_manifest(const Manifest& manifest) {
    Json files = Json::array();
    int format = kFormat;
    for (const auto& file : manifest.files) {
        files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_64", file.checksum}});
        if (file.blocks.empty()) continue;
        files.back()["blocks"] = file.blocks;
        format = kWithSlices;
    }
    Json json{{"run_id", manifest.run_id},
              {"turn", manifest.turn},
              {"generation", manifest.name.generation.value},
              {"step", manifest.name.step},
              {"files", files},
              {"metadata", manifest.metadata}};
    if (!manifest.ranks.empty()) json["ranks"] = manifest.ranks;
    return sealed(std::move(json), format);
}

namespace {

// Files of tensors first, numbered as its name says; then those of slices, in the order of the
// ranks.
std::optional<std::string> strange_file(const Manifest& manifest) {
    const auto& files = manifest.files;
    const int edition = files.empty() ? 0 : edition_of(files[0].name);
    const auto slices = std::find_if(files.begin(), files.end(),
                                     [](const SnapshotFile& file) { return !file.blocks.empty(); });
    const auto plain = static_cast<std::size_t>(slices - files.begin());
    std::size_t next = 0, world = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (i < plain) {
            if (files[i].name != manifest.name.tensors(i, plain, edition)) return files[i].name;
            continue;
        }
        const auto part = parse_slices_name(files[i].name);
        const bool ours =
            part && files[i].name == manifest.name.slices(part->first, part->second, edition);
        const auto blocks = (files[i].bytes + kChecksumBlock - 1) / kChecksumBlock;
        if (!ours || part->first < next || (world && part->second != world) ||
            files[i].blocks.size() != blocks)
            return files[i].name;
        next = part->first + 1;
        world = part->second;
    }
    return std::nullopt;
}

}  // namespace

// A correct checksum shows that the text is complete, not that this library wrote it. So a field of
// a wrong type is handled too, and the names of the files must be those that the snapshot's own
// name gives: another name could lead out of the folder.
Result<Manifest> parse_manifest(const std::string& text) {
    auto json = unsealed(text, "the manifest");
    if (!json) return json.error();
    try {
        Manifest manifest;
        manifest.run_id = json->at("run_id").get<std::string>();
        manifest.turn = json->at("turn").get<std::int64_t>();
        manifest.name.generation = Generation(json->at("generation").get<std::int64_t>());
        manifest.name.step = json->at("step").get<std::int64_t>();
        for (const auto& file : json->at("files")) {
            manifest.files.push_back({file.at("name").get<std::string>(),
                                      file.at("bytes").get<std::uint64_t>(),
                                      file.at("xxh3_64").get<std::string>(),
                                      file.value("blocks", std::vector<std::string>())});
        }
        manifest.metadata = json->at("metadata").get<Metadata>();
        manifest.ranks = json->value("ranks", std::vector<Metadata>());
        if (const auto file = strange_file(manifest))
            return Error(ErrorCode::malformed,
                         "the manifest names a file that is not part of its snapshot: " + *file);
        return manifest;
    } catch (const Json::exception&) {
        return Error(ErrorCode::malformed, "the manifest lacks a field");
    }
}

Result<Metadata> metadata_of_rank(const Manifest& manifest, Rank rank) {
    const auto index = static_cast<std::size_t>(rank.value);
    if (index < manifest.ranks.size()) return manifest.ranks[index];
    return Error(ErrorCode::not_found,
                 "snapshot " + manifest.name.stem() + " has metadata of " +
                     std::to_string(manifest.ranks.size()) + " ranks, and none of rank " +
                     std::to_string(rank.value) +
                     "; seed its random generators anew where the number of ranks has changed");
}

std::string write_metadata(const Metadata& metadata) {
    return Json(metadata).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Metadata> parse_metadata(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    const bool texts = json.is_object() && std::all_of(json.begin(), json.end(),
                                                       [](const Json& v) { return v.is_string(); });
    if (!texts) return Error(ErrorCode::malformed, "metadata that are no object of texts");
    return json.get<Metadata>();
}

std::string write_record(const ResumeRecord& record) {
    return sealed({{"run_id", record.run_id},
                   {"turn", record.turn},
                   {"generation", record.generation.value},
                   {"manifests", record.manifests}});
}

Result<ResumeRecord> parse_record(const std::string& text) {
    auto json = unsealed(text, "the record");
    if (!json) return json.error();
    try {
        return ResumeRecord{json->at("turn").get<std::int64_t>(),
                            json->at("run_id").get<std::string>(),
                            Generation(json->at("generation").get<std::int64_t>()),
                            json->at("manifests").get<std::vector<std::string>>()};
    } catch (const Json::exception&) {
        return Error(ErrorCode::malformed, "the record lacks a field");
    }
}

std::vector<std::string> checksums_of_blocks(std::span<const std::byte> file) {
    std::vector<std::string> checksums;
    for (std::size_t at = 0; at < file.size(); at += kChecksumBlock)
        checksums.push_back(
            checksum_of(file.subspan(at, std::min(kChecksumBlock, file.size() - at))));
    return checksums;
}

}  // namespace ddprun::trainer
