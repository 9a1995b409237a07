#include "trainer/snapshot.h"

#include <algorithm>

#include "trainer/durable_file.h"

namespace ddprun::trainer {
namespace {

Result<std::string> read_text(const std::string& path) {
    auto bytes = read_bytes(path);
    if (!bytes) return bytes.error();
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace

SnapshotFolder::SnapshotFolder(const Context& context, std::string folder, std::size_t keep,
                               Warn warn)
    : run_id_(context.run_id),
      generation_(context.generation),
      folder_(std::move(folder)),
      keep_(std::max<std::size_t>(keep, 1)),
      warn_(warn ? std::move(warn) : [](const std::string&) {}) {}

Result<SnapshotFolder> SnapshotFolder::open(const Context& context, std::string folder,
                                            std::size_t keep, Warn warn) {
    if (auto done = make_folder(folder); !done) return done.error();
    return SnapshotFolder(context, std::move(folder), keep, std::move(warn));
}

Result<void> SnapshotFolder::save(std::int64_t step, const std::vector<TensorView>& tensors,
                                  const Metadata& metadata) {
    const SnapshotName name{step, generation_};
    auto head = safetensors_head(tensors, {{"format", "pt"}});
    if (!head) return head.error();
    std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(*head))};
    for (auto index : data_order(tensors)) pieces.push_back(tensors[index].data);
    Manifest manifest{run_id_, name, 0, "", metadata};
    Checksum checksum;
    for (auto piece : pieces) {
        checksum.add(piece);
        manifest.bytes += piece.size();
    }
    manifest.checksum = checksum.text();
    // A manifest of an earlier life under the same name would vouch for tensors that are no longer
    // there.
    if (auto done = remove_file(path(name.manifest())); !done) return done;
    if (auto done = write_durably(path(name.tensors()), pieces); !done) return done;
    if (auto done = write_durably(path(name.manifest()), write_manifest(manifest)); !done)
        return done;
    let_go();
    return {};
}

Result<Snapshot> SnapshotFolder::load(const SnapshotName& name) const {
    auto text = read_text(path(name.manifest()));
    if (!text) return text.error();
    auto manifest = parse_manifest(*text);
    if (!manifest) return manifest.error();
    if (manifest->name != name)
        return Error(ErrorCode::malformed, "the manifest is that of " + manifest->name.stem());
    auto bytes = read_bytes(path(name.tensors()));
    if (!bytes) return bytes.error();
    if (bytes->size() != manifest->bytes) {
        return Error(ErrorCode::malformed,
                     name.tensors() + " has " + std::to_string(bytes->size()) +
                         " bytes, the manifest says " + std::to_string(manifest->bytes));
    }
    if (checksum_of(*bytes) != manifest->checksum) {
        return Error(ErrorCode::malformed, name.tensors() + " does not match its checksum");
    }
    Snapshot snapshot;
    snapshot.bytes = std::move(*bytes);
    auto content = parse_safetensors(snapshot.bytes);
    if (!content) return content.error();
    snapshot.manifest = std::move(*manifest);
    snapshot.content = std::move(*content);
    return snapshot;
}

Result<std::optional<Snapshot>> SnapshotFolder::load_newest() {
    remove_temporaries();
    if (auto done = read_records(); !done) return done.error();
    auto all = names();
    if (!all) return all.error();
    // The record comes before the choice: what appears from now on, under an older generation, is a
    // stale writer's.
    if (auto done = record_choice(*all); !done) return done.error();
    for (const auto& name : candidates(*all, records_)) {
        auto snapshot = load(name);
        if (snapshot) return std::optional<Snapshot>(std::move(*snapshot));
        warn_("snapshot " + path(name.manifest()) + " is skipped: " + snapshot.error().sentence());
    }
    return std::optional<Snapshot>();
}

Result<std::vector<SnapshotName>> SnapshotFolder::names() const {
    auto files = list_folder(folder_);
    if (!files) return files.error();
    std::vector<SnapshotName> found;
    for (const auto& file : *files) {
        if (auto name = parse_manifest_name(file)) found.push_back(*name);
    }
    return found;
}

// Records of our generation or later ones are from an earlier life under the same run id (a job
// that was started again from 0): they bind nobody and go.
Result<void> SnapshotFolder::read_records() {
    records_.clear();
    auto files = list_folder(folder_);
    if (!files) return files.error();
    for (const auto& file : *files) {
        auto generation = parse_record_name(file);
        if (!generation) continue;
        auto text = read_text(path(file));
        std::string run_id;
        auto record = text ? parse_record(*text, run_id) : Result<ResumeRecord>(text.error());
        if (!record) {
            warn_("record " + path(file) + " is skipped: " + record.error().sentence());
        } else if (run_id != run_id_ || record->generation >= generation_) {
            if (auto done = remove_file(path(file)); !done) return done;
        } else {
            records_.push_back(std::move(*record));
        }
    }
    return {};
}

Result<void> SnapshotFolder::record_choice(const std::vector<SnapshotName>& names) {
    ResumeRecord record{generation_, {}};
    for (const auto& name : candidates(names, records_))
        record.manifests.push_back(name.manifest());
    auto done = write_durably(path(record_name(generation_)), write_record(run_id_, record));
    if (done) records_.push_back(std::move(record));
    return done;
}

void SnapshotFolder::remove_temporaries() {
    auto files = list_folder(folder_);
    if (!files) return;
    for (const auto& file : *files) {
        if (is_stale_temporary(file, generation_)) (void)remove_file(path(file));
    }
}

// Failing to tidy must not fail the training; the next save tries again.
void SnapshotFolder::let_go() {
    auto all = names();
    if (!all) return warn_("cannot tidy " + folder_ + ": " + all.error().sentence());
    for (const auto& name : surplus(*all, records_, keep_)) remove(name);
}

// The manifest first: what has none is no snapshot.
void SnapshotFolder::remove(const SnapshotName& name) {
    for (const auto& file : {name.manifest(), name.tensors()}) {
        if (auto done = remove_file(path(file)); !done) warn_(done.error().sentence());
    }
}

namespace {

constexpr char kChosen[] = "snapshot/chosen";

std::string describe_choice(const Result<std::optional<Snapshot>>& chosen) {
    if (!chosen) return "error " + chosen.error().sentence();
    return chosen->has_value() ? (*chosen)->manifest.name.manifest() : "none";
}

}  // namespace

Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout) {
    if (context.is_first()) {
        auto chosen = folder.load_newest();
        if (auto done = store.set(kChosen, describe_choice(chosen)); !done) return done.error();
        return chosen;
    }
    auto word = store.get(kChosen, timeout);
    if (!word) return word.error();
    if (*word == "none") return std::optional<Snapshot>();
    auto name = parse_manifest_name(*word);
    if (!name) return Error(ErrorCode::unavailable, "rank 0 could not choose a snapshot: " + *word);
    auto snapshot = folder.load(*name);
    if (!snapshot) {
        return Error(ErrorCode::unavailable,
                     "rank " + std::to_string(context.rank.value) + " cannot load " + *word +
                         ", which rank 0 chose: " + snapshot.error().sentence() +
                         "; is the folder shared by all nodes?");
    }
    return std::optional<Snapshot>(std::move(*snapshot));
}

}  // namespace ddprun::trainer
