// Writes and parses manifests and records, and computes checksums.
#include "trainer/snapshot/snapshot_manifest.h"

// Compiles xxHash into this file, so there is no library to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/hexadecimal.h"

namespace ddprun::trainer {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 3;  // raised with each incompatible change of the fields

// The text whose checksum is taken. The keys are sorted and the numbers are integers, so equal
// values give equal text on every machine.
std::string dump(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string checksum_of_text(const std::string& text) {
    return checksum_of(std::as_bytes(std::span(text)));
}

// Adds format and checksum. The checksum covers everything else.
std::string sealed(Json json) {
    json["format"] = kFormat;
    json["checksum"] = checksum_of_text(dump(json));
    return dump(json) + "\n";
}

// Checks what sealed() added. `what` is the subject of the messages.
Result<Json> unsealed(const std::string& text, const char* what) {
    // Without exceptions: a text that is no JSON gives a value that is no object.
    Json json = Json::parse(text, nullptr, false);
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
    if (json.value("format", Json()) != kFormat) {
        return Error(ErrorCode::malformed,
                     std::string(what) + " has a format that this program does not know");
    }
    return json;
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_files(const std::vector<TensorView>& tensors,
                                                 std::uint64_t limit) {
    // By name, so that the plan does not depend on the order in which a program lists its tensors.
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
    // At least one file, also if there are no tensors: a manifest names at least one.
    std::vector<std::vector<std::size_t>> files(1);
    std::uint64_t bytes = 0;
    for (std::size_t index : order) {
        // A tensor that is larger than the limit gets a file of its own, and is not divided.
        if (!files.back().empty() && bytes + tensors[index].data.size() > limit) {
            files.emplace_back();
            bytes = 0;
        }
        files.back().push_back(index);
        bytes += tensors[index].data.size();
    }
    return files;
}

std::string write_manifest(const Manifest& manifest) {
    Json files = Json::array();
    for (const auto& file : manifest.files)
        files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_64", file.checksum}});
    Json json{{"run_id", manifest.run_id},
              {"turn", manifest.turn},
              {"generation", manifest.name.generation.value},
              {"step", manifest.name.step},
              {"files", files},
              {"metadata", manifest.metadata}};
    if (!manifest.ranks.empty()) json["ranks"] = manifest.ranks;
    return sealed(std::move(json));
}

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
                                      file.at("xxh3_64").get<std::string>()});
        }
        manifest.metadata = json->at("metadata").get<Metadata>();
        manifest.ranks = json->value("ranks", std::vector<Metadata>());
        const auto& files = manifest.files;
        const int edition = files.empty() ? 0 : edition_of(files[0].name);
        for (std::size_t i = 0; i < files.size(); ++i) {
            if (files[i].name != manifest.name.tensors(i, files.size(), edition))
                return Error(
                    ErrorCode::malformed,
                    "the manifest names a file that is not part of its snapshot: " + files[i].name);
        }
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

Checksum::Checksum() : state_(XXH3_createState()) {
    XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_));
}

Checksum::~Checksum() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }

void Checksum::add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

std::string Checksum::text() const {
    return hexadecimal(XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_)));
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksum_of(std::span<const std::byte> bytes) { return hexadecimal(hash_of(bytes)); }

}  // namespace ddprun::trainer
