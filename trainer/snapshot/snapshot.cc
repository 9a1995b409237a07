// Writes, commits, loads and removes snapshots.
#include "trainer/snapshot/snapshot.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "trainer/snapshot/durable_file.h"

namespace ddprun::trainer {

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

Result<void> lay_out(const std::vector<TensorView>& tensors, PageBuffer& file,
                     const CopyTensor& copy) {
    // "pt" (PyTorch) is the value that Hugging Face's tools expect.
    auto head = safetensors_head(tensors, {{"format", "pt"}});
    if (!head) return head.error();
    std::size_t bytes = head->size();
    for (const auto& tensor : tensors) bytes += tensor.data.size();
    if (auto done = file.resize(bytes); !done) return done;
    std::byte* at = file.bytes().data();
    std::memcpy(at, head->data(), head->size());
    at += head->size();
    // The data must follow in the order that the header describes.
    for (std::size_t index : data_order(tensors)) {
        if (auto done = copy(at, tensors[index]); !done) return done;
        at += tensors[index].data.size();
    }
    return {};
}

// A job that starts without loading takes the folder over here.
Result<int> SnapshotFolder::begin(const SnapshotName& name) {
    if (!turn_)
        if (auto done = take_over(); !done) return done.error();
    if (auto ours = check_turn(); !ours) return ours.error();
    auto files = list_folder(folder_);
    if (!files) return files.error();
    return next_edition(name, *files);
}

Result<SnapshotFile> SnapshotFolder::write_file(const std::string& name,
                                                const PageBuffer& content) const {
    // Old::kept: another process may write a file of this name. Neither must replace the other's
    // file.
    if (auto done = write_durably(path(name), content, Old::kept); !done)
        return reason_of(done.error());
    return SnapshotFile{name, content.bytes().size(), checksum_of(content.bytes())};
}

Result<void> SnapshotFolder::commit(const SnapshotName& name, std::vector<SnapshotFile> files,
                                    const Metadata& metadata) {
    const Manifest manifest{run_id_, turn_, name, std::move(files), metadata};
    if (auto ours = check_turn(); !ours) return ours;
    // Only a further edition has an older manifest of our own to replace. Otherwise a manifest of
    // this name is another process's, and stays.
    const Old old = edition_of(manifest.files[0].name) ? Old::replaced : Old::kept;
    if (auto done = write_durably(path(name.manifest()), write_manifest(manifest), old); !done)
        return reason_of(done.error());
    // A further edition is in the list already.
    if (std::find(usable_.begin(), usable_.end(), name) == usable_.end()) usable_.push_back(name);
    let_go(manifest);
    return {};
}

void SnapshotFolder::discard(const SnapshotName& name, const std::string& file) const {
    auto text = read_text(path(name.manifest()));
    // The manifest cannot be read now, so it may name the file.
    if (!text && text.error().code() != ErrorCode::not_found) return;
    auto manifest = text ? parse_manifest(*text) : Result<Manifest>(text.error());
    if (manifest && std::any_of(manifest->files.begin(), manifest->files.end(),
                                [&](const SnapshotFile& named) { return named.name == file; }))
        return;
    (void)remove_file(path(file));
}

namespace {

Result<void> copy_bytes(std::byte* to, const TensorView& tensor) {
    if (!tensor.data.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
    return {};
}

}  // namespace

// One process writes everything, with one buffer for all files.
Result<void> SnapshotFolder::save(std::int64_t step, const std::vector<TensorView>& tensors,
                                  const Metadata& metadata, std::uint64_t file_bytes) {
    const SnapshotName name{step, generation_};
    const auto plan = plan_files(tensors, file_bytes);
    std::vector<SnapshotFile> files;
    const auto edition = begin(name);
    if (!edition) return edition.error();
    Result<void> done;
    PageBuffer content;
    for (std::size_t i = 0; done && i < plan.size(); ++i) {
        std::vector<TensorView> part;
        for (std::size_t index : plan[i]) part.push_back(tensors[index]);
        if (done = lay_out(part, content, copy_bytes); !done) break;
        auto file = write_file(name.tensors(i, plan.size(), *edition), content);
        if (file)
            files.push_back(std::move(*file));
        else
            done = file.error();
    }
    if (done) done = commit(name, files, metadata);
    if (!done) {
        // The files that were written before the failure.
        for (const auto& file : files) discard(name, file.name);
    }
    return done;
}

namespace {

// The size first: it finds a file that was cut short without reading it, and gives the better
// message.
Result<Safetensors> check_file(const SnapshotFile& file, const PageBuffer& content) {
    if (content.bytes().size() != file.bytes) {
        return Error(ErrorCode::malformed,
                     file.name + " has " + std::to_string(content.bytes().size()) +
                         " bytes, the manifest says " + std::to_string(file.bytes));
    }
    if (checksum_of(content.bytes()) != file.checksum)
        return Error(ErrorCode::malformed, file.name + " does not match its checksum");
    return parse_safetensors(content.bytes());
}

}  // namespace

Result<Snapshot> SnapshotFolder::load(const SnapshotName& name) const {
    auto text = read_text(path(name.manifest()));
    if (!text) return text.error();
    auto manifest = parse_manifest(*text);
    if (!manifest) return manifest.error();
    // A manifest that was copied or renamed.
    if (manifest->name != name)
        return Error(ErrorCode::malformed, "the manifest belongs to " + manifest->name.stem() +
                                               "; was the file renamed?");
    Snapshot snapshot;
    snapshot.files.resize(manifest->files.size());
    std::vector<Result<Safetensors>> tensors(manifest->files.size());
    // Reading keeps one core busy and so does verifying. A second thread takes every second file.
    auto read_from = [&](std::size_t first) {
        for (std::size_t i = first; i < manifest->files.size(); i += 2) {
            auto content = read_pages(path(manifest->files[i].name));
            if (!content) {
                tensors[i] = content.error();
                continue;
            }
            snapshot.files[i] = std::move(*content);
            tensors[i] = check_file(manifest->files[i], snapshot.files[i]);
        }
    };
    std::thread other;
    if (manifest->files.size() > 1) other = std::thread(read_from, 1);
    read_from(0);
    if (other.joinable()) other.join();
    for (auto& part : tensors) {
        if (!part) return part.error();
        snapshot.content.metadata.merge(part->metadata);
        // Views into the mapped files, which move with the snapshot and keep their addresses.
        for (auto& tensor : part->tensors) snapshot.content.tensors.push_back(std::move(tensor));
    }
    snapshot.manifest = std::move(*manifest);
    return snapshot;
}

// If all snapshots are damaged, the job ends with an error. Beginning anew would silently give up
// the work that they hold.
Result<std::optional<Snapshot>> SnapshotFolder::load_newest() {
    if (auto done = take_over(); !done) return done.error();
    for (const auto& name : usable_) {
        auto snapshot = load(name);
        if (snapshot) return std::optional<Snapshot>(std::move(*snapshot));
        // A later loader may have removed it. Then the folder is that loader's, and this process
        // must not resume.
        if (auto ours = check_turn(); !ours) return ours.error();
        warn_("snapshot " + path(name.manifest()) + " is skipped: " + snapshot.error().sentence());
    }
    if (usable_.empty()) return std::optional<Snapshot>();
    return Error(ErrorCode::malformed,
                 "none of the " + std::to_string(usable_.size()) + " snapshots in " + folder_ +
                     " can be read; to begin anew, use another folder or empty this one");
}

// Removes snapshots beyond `keep`, and earlier editions of this one. A failure here must not end
// the training. It is only a warning, and the next save tries again.
void SnapshotFolder::let_go(const Manifest& saved) {
    auto files = list_folder(folder_);
    if (!files) return warn_("cannot tidy " + folder_ + ": " + files.error().sentence());
    // The look between manifest and removal (see snapshot.h): a later loader may have chosen a
    // snapshot that would be removed here.
    if (auto ours = check_turn(); !ours) return warn_(ours.error().sentence());
    std::vector<SnapshotName> names;
    for (const auto& file : *files)
        if (auto name = parse_manifest_name(file)) names.push_back(*name);
    for (const auto& name : surplus(names, usable_, saved.name, keep_)) {
        remove(name, *files);
        std::erase(usable_, name);
    }
    // Files of earlier editions. The new manifest has replaced the one that named them.
    const int edition = edition_of(saved.files[0].name);
    for (const auto& file : *files) {
        if (snapshot_of(file) == saved.name && !parse_manifest_name(file) &&
            edition_of(file) < edition)
            (void)remove_file(path(file));
    }
}

// The manifest goes first. Without it the rest is no snapshot, so a crash in between leaves no
// broken one.
void SnapshotFolder::remove(const SnapshotName& name, const std::vector<std::string>& files) const {
    if (auto done = remove_file(path(name.manifest())); !done)
        return warn_(done.error().sentence());
    for (const auto& file : files) {
        if (snapshot_of(file) != name || file == name.manifest()) continue;
        if (auto done = remove_file(path(file)); !done) warn_(done.error().sentence());
    }
}

namespace {

// The key in the store: a manifest's file name, "none", or "error <sentence>".
constexpr char kChosen[] = "snapshot/chosen";

std::string describe_choice(const Result<std::optional<Snapshot>>& chosen) {
    if (!chosen) return "error " + chosen.error().sentence();
    return chosen->has_value() ? (*chosen)->manifest.name.manifest() : "none";
}

}  // namespace

Result<std::optional<Snapshot>> resume(const Context& context, Store& store, SnapshotFolder& folder,
                                       std::chrono::milliseconds timeout) {
    if (context.is_first()) {
        // An error is published too. The other ranks would otherwise wait for their whole timeout.
        auto chosen = folder.load_newest();
        if (auto done = store.set(kChosen, describe_choice(chosen)); !done) return done.error();
        return chosen;
    }
    auto word = store.get(kChosen, timeout);
    if (!word) return word.error();
    if (*word == "none") return std::optional<Snapshot>();
    auto name = parse_manifest_name(*word);
    if (!name) return Error(ErrorCode::unavailable, "rank 0 could not choose a snapshot: " + *word);
    // By name and not "the newest": a writer may have completed a newer one by now.
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
