// Composes and parses the names of snapshot files.
#include "trainer/snapshot/format/snapshot_name.h"

#include <algorithm>
#include <charconv>

namespace ddprun::trainer {
namespace {

constexpr std::string_view kSnapshot = "snapshot-";
constexpr std::string_view kRecord = "resume-";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kTensors = ".safetensors";
constexpr std::string_view kSlices = "-slices";
constexpr std::string_view kIndex = ".safetensors.index.json";
constexpr std::string_view kTemporary = ".tmp";
// Leading zeros make `ls` list snapshots in the order of their steps.
constexpr std::size_t kStepDigits = 12;
constexpr std::int64_t kMostTurns = 999'999'999'999;

// A number without sign and without anything behind it.
std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || stop != text.data() + text.size() || value < 0)
        return std::nullopt;
    return value;
}

// "<digits>-g<digits>" as two numbers.
std::optional<SnapshotName> parse_numbers(std::string_view text) {
    const auto middle = text.find("-g");
    if (middle == std::string_view::npos) return std::nullopt;
    auto step = whole_number(text.substr(0, middle));
    auto generation = whole_number(text.substr(middle + 2));
    if (!step || !generation) return std::nullopt;
    return SnapshotName{*step, Generation(*generation)};
}

template <class T>
bool contains(const std::vector<T>& list, const T& what) {
    return std::find(list.begin(), list.end(), what) != list.end();
}

std::string padded(std::int64_t number, std::size_t width) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < width ? width - digits.size() : 0, '0') + digits;
}

}  // namespace

std::string SnapshotName::stem() const {
    return std::string(kSnapshot) + padded(step, kStepDigits) + "-g" +
           std::to_string(generation.value);
}

namespace {

// "-00002-of-00003", as Hugging Face names the parts of a model.
std::string numbered(std::size_t index, std::size_t files) {
    return "-" + padded(static_cast<std::int64_t>(index + 1), 5) + "-of-" +
           padded(static_cast<std::int64_t>(files), 5);
}

std::string in_edition(std::string stem, int edition) {
    return edition ? stem + "." + std::to_string(edition + 1) : stem;
}

}  // namespace

// The parts are named as Hugging Face names them, so that Python's tools recognize them.
std::string SnapshotName::tensors(std::size_t index, std::size_t files, int edition) const {
    std::string name = in_edition(stem(), edition);
    if (files > 1) name += numbered(index, files);
    return name.append(kTensors);
}

std::string SnapshotName::slices(std::size_t rank, std::size_t world, int edition) const {
    return in_edition(stem(), edition)
        .append(kSlices)
        .append(numbered(rank, world))
        .append(kTensors);
}

std::string SnapshotName::index(int edition) const {
    return in_edition(stem(), edition).append(kIndex);
}

std::optional<std::pair<std::size_t, std::size_t>> parse_slices_name(std::string_view file) {
    const auto snapshot = snapshot_of(file);
    const auto words = file.find(kSlices);
    if (!snapshot || words == std::string_view::npos) return std::nullopt;
    std::string_view rest = file.substr(words + kSlices.size());
    const auto of = rest.find("-of-");
    if (of == std::string_view::npos || of == 0 || !rest.ends_with(kTensors)) return std::nullopt;
    const auto part = whole_number(rest.substr(1, of - 1));
    rest.remove_suffix(kTensors.size());
    const auto world = whole_number(rest.substr(of + 4));
    if (!part || !world || *part < 1 || *part > *world) return std::nullopt;
    const std::pair found{static_cast<std::size_t>(*part - 1), static_cast<std::size_t>(*world)};
    if (snapshot->slices(found.first, found.second, edition_of(file)) != file) return std::nullopt;
    return found;
}

std::optional<SnapshotName> snapshot_of(std::string_view file) {
    if (!file.starts_with(kSnapshot)) return std::nullopt;
    file.remove_prefix(kSnapshot.size());
    const auto middle = file.find("-g");
    if (middle == std::string_view::npos) return std::nullopt;
    // After the digits of the generation comes the extension, an edition, or the number of a part.
    return parse_numbers(file.substr(0, file.find_first_of(".-", middle + 2)));
}

std::optional<SnapshotName> parse_manifest_name(std::string_view file) {
    if (!file.starts_with(kSnapshot) || !file.ends_with(kJson)) return std::nullopt;
    auto name =
        parse_numbers(file.substr(kSnapshot.size(), file.size() - kSnapshot.size() - kJson.size()));
    // Only in the spelling that we write. "snapshot-7-g0.json" would stand for files with other
    // names.
    if (!name || name->manifest() != file) return std::nullopt;
    return name;
}

int edition_of(std::string_view file) {
    const auto name = snapshot_of(file);
    if (!name || !file.starts_with(name->stem() + ".")) return 0;
    file.remove_prefix(name->stem().size() + 1);
    const auto number = whole_number(file.substr(0, file.find_first_of(".-")));
    // The number in the name is edition + 1, so 2 is the least. The upper limit protects the int.
    return number && *number > 1 && *number < 1'000'000 ? static_cast<int>(*number) - 1 : 0;
}

// Files of an unfinished or discarded edition count too: their names are taken. So does a manifest
// whose files are gone: the further edition replaces it.
int next_edition(const SnapshotName& name, const std::vector<std::string>& files) {
    int next = 0;
    for (const auto& file : files) {
        if (snapshot_of(file) == name) next = std::max(next, edition_of(file) + 1);
    }
    return next;
}

std::vector<SnapshotName> manifests_in(const std::vector<std::string>& files) {
    std::vector<SnapshotName> names;
    for (const auto& file : files)
        if (auto name = parse_manifest_name(file)) names.push_back(*name);
    return names;
}

std::string record_name(std::int64_t turn) {
    return std::string(kRecord) + padded(turn, kStepDigits) + std::string(kJson);
}

std::optional<std::int64_t> parse_record_name(std::string_view file) {
    if (!file.starts_with(kRecord) || !file.ends_with(kJson)) return std::nullopt;
    auto turn =
        whole_number(file.substr(kRecord.size(), file.size() - kRecord.size() - kJson.size()));
    // As with manifests, only the spelling that we write; and there must be room for later turns.
    if (!turn || *turn < 1 || *turn > kMostTurns || record_name(*turn) != file) return std::nullopt;
    return turn;
}

std::int64_t last_turn(const std::vector<std::string>& files) {
    std::int64_t last = 0;
    for (const auto& file : files) last = std::max(last, parse_record_name(file).value_or(0));
    return last;
}

namespace {

// "NAME.ANYTHING.tmp", where NAME is one of our names. Other files in the folder are not ours to
// remove.
bool is_temporary(std::string_view file) {
    if (!file.ends_with(kTemporary)) return false;
    const auto json = file.find(kJson);
    return snapshot_of(file) || (json != std::string_view::npos &&
                                 parse_record_name(file.substr(0, json + kJson.size())));
}

}  // namespace

std::vector<std::string> leftovers(const std::vector<std::string>& files) {
    std::vector<std::string> found;
    for (const auto& file : files) {
        const auto name = snapshot_of(file);
        // Tensors or an index without a manifest.
        const bool orphan = name && (file.ends_with(kTensors) || file.ends_with(kIndex)) &&
                            !contains(files, name->manifest());
        if (orphan || is_temporary(file)) found.push_back(file);
    }
    return found;
}

bool is_admissible(const SnapshotName& name, std::int64_t turn, const ResumeRecord& last) {
    return turn >= last.turn || contains(last.manifests, name.manifest());
}

std::vector<SnapshotName> surplus(const std::vector<SnapshotName>& names,
                                  std::vector<SnapshotName> usable, const SnapshotName& saved,
                                  std::size_t keep) {
    // From the newest to the oldest, so that the count ends at the oldest one to keep.
    std::sort(usable.begin(), usable.end(), std::greater<>());
    std::vector<SnapshotName> kept{saved};
    std::size_t counted = 1;
    for (const auto& name : usable) {
        // A name without a manifest in the folder has been removed already.
        if (name == saved || !contains(names, name)) continue;
        if (name > saved || counted++ < keep) kept.push_back(name);
    }
    std::vector<SnapshotName> rest;
    for (const auto& name : names) {
        if (!contains(kept, name)) rest.push_back(name);
    }
    return rest;
}

bool must_prove(const std::vector<SnapshotName>& surplus, const std::optional<SnapshotName>& proven,
                const SnapshotName& next) {
    if (!proven) return !surplus.empty();
    return *proven == next || contains(surplus, *proven);
}

}  // namespace ddprun::trainer
