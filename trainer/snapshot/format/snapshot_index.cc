// Composes the index as JSON.
#include "trainer/snapshot/format/snapshot_index.h"

#include <nlohmann/json.hpp>

namespace ddprun::trainer {

using Json = nlohmann::json;

void SnapshotIndex::add(const std::string& tensor, std::uint64_t bytes, const std::string& file) {
    bytes_ += bytes;
    entries_.push_back({tensor, file, std::nullopt});
}

void SnapshotIndex::add(const SliceEntry& slice, const std::string& file) {
    bytes_ += elements_of(slice.part.shape).value_or(0) * size_of(slice.type);
    entries_.push_back({slice.file_key(), file, slice});
}

std::string SnapshotIndex::text() const {
    Json map = Json::object(), slices = Json::object();
    for (const auto& [key, file, slice] : entries_) {
        map[key] = file;
        if (slice && slice->part.shape != slice->whole)
            slices[key] = {
                {"tensor", slice->tensor}, {"whole", slice->whole}, {"offset", slice->part.offset}};
    }
    const Json json{{"metadata", {{"total_size", bytes_}, {"slices", slices}}},
                    {"weight_map", map}};
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::trainer
