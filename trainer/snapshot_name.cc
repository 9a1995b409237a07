#include "trainer/snapshot_name.h"

#include <algorithm>
#include <charconv>

namespace ddprun::trainer {
namespace {

constexpr std::string_view kSnapshot = "snapshot-";
constexpr std::string_view kRecord = "resume-g";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kTemporary = ".tmp";
constexpr std::size_t kStepDigits = 12;

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || stop != text.data() + text.size() || value < 0)
        return std::nullopt;
    return value;
}

// "<digits>-g<digits>" → its two numbers.
std::optional<SnapshotName> parse_numbers(std::string_view text) {
    const auto middle = text.find("-g");
    if (middle == std::string_view::npos) return std::nullopt;
    auto step = whole_number(text.substr(0, middle));
    auto generation = whole_number(text.substr(middle + 2));
    if (!step || !generation) return std::nullopt;
    return SnapshotName{*step, Generation(*generation)};
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::string SnapshotName::stem() const {
    std::string digits = std::to_string(step);
    if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
    return std::string(kSnapshot) + digits + "-g" + std::to_string(generation.value);
}

// HuggingFace's way of naming parts.
std::string SnapshotName::tensors(std::size_t index, std::size_t files) const {
    if (files == 1) return stem() + ".safetensors";
    auto five = [](std::size_t n) {
        const std::string digits = std::to_string(n);
        return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    };
    return stem() + "-" + five(index + 1) + "-of-" + five(files) + ".safetensors";
}

std::optional<SnapshotName> snapshot_of(std::string_view file) {
    if (!file.starts_with(kSnapshot)) return std::nullopt;
    file.remove_prefix(kSnapshot.size());
    // Behind the generation's digits comes the extension, or the number of a part.
    const auto middle = file.find("-g");
    if (middle == std::string_view::npos) return std::nullopt;
    return parse_numbers(file.substr(0, file.find_first_of(".-", middle + 2)));
}

std::optional<SnapshotName> parse_manifest_name(std::string_view file) {
    if (!file.starts_with(kSnapshot) || !file.ends_with(kJson)) return std::nullopt;
    auto name =
        parse_numbers(file.substr(kSnapshot.size(), file.size() - kSnapshot.size() - kJson.size()));
    // Only the one spelling that we write: "snapshot-7-g0.json" would name files that are not
    // there.
    if (!name || name->manifest() != file) return std::nullopt;
    return name;
}

std::string record_name(Generation generation) {
    return std::string(kRecord) + std::to_string(generation.value) + std::string(kJson);
}

std::optional<Generation> parse_record_name(std::string_view file) {
    if (!file.starts_with(kRecord) || !file.ends_with(kJson)) return std::nullopt;
    auto number =
        whole_number(file.substr(kRecord.size(), file.size() - kRecord.size() - kJson.size()));
    if (!number) return std::nullopt;
    return Generation(*number);
}

bool is_stale_temporary(std::string_view file, Generation generation) {
    if (!file.ends_with(kTemporary)) return false;
    file.remove_suffix(kTemporary.size());
    if (auto record = parse_record_name(file)) return *record < generation;
    auto name = snapshot_of(file);
    return name && name->generation < generation;
}

bool is_orphan(std::string_view file, Generation generation,
               const std::vector<SnapshotName>& names) {
    if (!file.ends_with(".safetensors")) return false;
    auto name = snapshot_of(file);
    return name && name->generation < generation &&
           std::find(names.begin(), names.end(), *name) == names.end();
}

bool is_admissible(const SnapshotName& name, const std::vector<ResumeRecord>& records) {
    const std::string file = name.manifest();
    return std::all_of(records.begin(), records.end(), [&](const ResumeRecord& record) {
        return record.generation <= name.generation || contains(record.manifests, file);
    });
}

std::vector<SnapshotName> candidates(std::vector<SnapshotName> names,
                                     const std::vector<ResumeRecord>& records) {
    std::erase_if(names, [&](const SnapshotName& name) { return !is_admissible(name, records); });
    std::sort(names.begin(), names.end(), std::greater<>());
    return names;
}

std::vector<SnapshotName> surplus(const std::vector<SnapshotName>& names,
                                  const std::vector<ResumeRecord>& records, std::size_t keep) {
    std::vector<SnapshotName> kept = candidates(names, records);
    if (kept.size() > keep) kept.resize(keep);
    std::vector<SnapshotName> rest;
    for (const auto& name : names) {
        if (std::find(kept.begin(), kept.end(), name) == kept.end()) rest.push_back(name);
    }
    return rest;
}

}  // namespace ddprun::trainer
