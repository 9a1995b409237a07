// Writes, commits, loads and removes snapshots.
#include "trainer/snapshot/folder/snapshot.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/system/start_thread.h"
#include "trainer/snapshot/format/durable_file.h"
#include "trainer/snapshot/format/savable.h"

namespace ddprun::trainer {

SnapshotFolder::SnapshotFolder(const Context& context, std::string folder, std::size_t keep,
                               Warn warn, std::string base)
    : run_id_(context.run_id),
      generation_(context.generation),
      folder_(std::move(folder)),
      keep_(std::max<std::size_t>(keep, 1)),
      warn_(warn ? std::move(warn) : [](const std::string&) {}),
      base_(std::move(base)) {}

Result<SnapshotFolder> SnapshotFolder::open(const Context& context, std::string folder,
                                            std::size_t keep, Warn warn, std::string base) {
    if (auto done = make_folder(folder); !done) return done.error();
    return SnapshotFolder(context, std::move(folder), keep, std::move(warn), std::move(base));
}

Result<void> copy_bytes(std::byte* to, const TensorView& tensor) {
    if (!tensor.data.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
    return {};
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

// A shorter list has no longer header, so no tensor moves to the right, over one that is to move.
Result<void> keep_slices(PageBuffer& file, const std::vector<SliceEntry>& slices) {
    auto all = parse_safetensors(file.bytes());
    if (!all) return all.error();
    std::set<std::string> keys;
    for (const auto& slice : slices) keys.insert(slice.file_key());
    std::erase_if(all->tensors,
                  [&](const TensorView& tensor) { return !keys.contains(key_of(tensor)); });
    auto head = safetensors_head(all->tensors, {{"format", "pt"}});
    if (!head) return head.error();
    std::byte* at = file.bytes().data() + head->size();
    for (const auto& tensor : all->tensors) {
        if (!tensor.data.empty()) std::memmove(at, tensor.data.data(), tensor.data.size());
        at += tensor.data.size();
    }
    std::memcpy(file.bytes().data(), head->data(), head->size());
    return file.resize(static_cast<std::size_t>(at - file.bytes().data()));
}

namespace {

// Reads a file of a snapshot and compares it. The size first: it finds a file that was cut short
// without reading it, and gives the better message. `to`: its content, or null, if only the
// comparison is wanted. In pieces, so that the checksum finds them in the core's own cache.
Result<void> read_checked(const std::string& path, const SnapshotFile& file, PageBuffer* to) {
    constexpr std::size_t kPiece = std::size_t{256} << 10;
    const auto open = ReadableFile::open(path);
    if (!open) return open.error();
    if (open->bytes() != file.bytes)
        return Error(ErrorCode::malformed, file.name + " has " + std::to_string(open->bytes()) +
                                               " bytes, the manifest says " +
                                               std::to_string(file.bytes));
    open->read_ahead();
    const auto bytes = static_cast<std::size_t>(file.bytes);
    PageBuffer own;
    if (auto done = to ? to->reserve(bytes) : own.resize(std::min(bytes, kPiece)); !done)
        return done;
    if (to) to->use_large_pages();
    Checksum checksum;
    for (std::size_t at = 0; at < bytes; at += kPiece) {
        const std::size_t count = std::min(kPiece, bytes - at);
        const auto piece = to ? to->bytes().subspan(at, count) : own.bytes().first(count);
        if (auto done = open->read(at, piece); !done) return done;
        checksum.add(piece);
    }
    if (checksum.text() == file.checksum) return {};
    return Error(ErrorCode::malformed, file.name + " does not match its checksum");
}

}  // namespace

// A job that starts without loading takes the folder over here.
Result<WritePlan> SnapshotFolder::begin(const SnapshotName& name) {
    if (auto ours = take_over_to_write(); !ours) return ours.error();
    auto files = list_folder(folder_);
    if (!files) return files.error();
    auto names = manifests_in(*files);
    if (auto good = check_order(name, names); !good) return good.error();
    names.push_back(name);
    reading_back_ = must_prove(surplus(names, usable_, name, keep_), proven_, name);
    return WritePlan{next_edition(name, *files), reading_back_};
}

Result<SnapshotFile> SnapshotFolder::write_file(const std::string& name,
                                                const PageBuffer& content) const {
    // What no reader takes is not written.
    if (auto readable = parse_safetensors(content.bytes()); !readable)
        return Error(ErrorCode::usage,
                     name + " could not be read again: " + readable.error().sentence());
    // Old::kept: another process may write a file of this name. Neither must replace the other's
    // file.
    if (auto done = write_durably(path(name), content, Old::kept); !done)
        return reason_of(done.error());
    return SnapshotFile{name, content.bytes().size(), checksum_of(content.bytes())};
}

Result<void> SnapshotFolder::write_index(const std::string& name, const std::string& text) const {
    auto done = write_durably(path(name), text, Old::kept);
    return done ? done : reason_of(done.error());
}

Result<void> SnapshotFolder::read_back(const SnapshotFile& file) const {
    const auto same = read_checked(path(file.name), file, nullptr);
    if (same) return {};
    if (same.error().code() != ErrorCode::malformed) return reason_of(same.error());
    return Error(ErrorCode::unavailable,
                 path(file.name) + " reads back damaged, just after it was written: " +
                     same.error().sentence() + "; is the disk or the file system at fault?");
}

Result<void> SnapshotFolder::look_at(const SnapshotFile& file) const {
    auto bytes = size_of_file(path(file.name));
    const std::string there = bytes ? std::to_string(*bytes) + " bytes"
                              : bytes.error().code() == ErrorCode::not_found
                                  ? std::string("no such file")
                                  : bytes.error().sentence();
    if (bytes && *bytes == file.bytes) return {};
    return Error(ErrorCode::unavailable,
                 file.name + " was written with " + std::to_string(file.bytes) + " bytes, but " +
                     folder_ + " has " + there +
                     " here; is it one folder for all ranks, on a file system of all nodes?");
}

Result<void> SnapshotFolder::commit(const SnapshotName& name, std::vector<SnapshotFile> files,
                                    const Metadata& metadata, std::vector<Metadata> ranks) {
    const Manifest manifest{run_id_, turn_, name, std::move(files), metadata, std::move(ranks)};
    if (auto ours = check_turn(); !ours) return ours;
    for (const auto& file : manifest.files)
        if (auto seen = look_at(file); !seen) return reason_of(seen.error());
    // Only a further edition has an older manifest of our own to replace. Otherwise a manifest of
    // this name is another process's, and stays.
    const Old old = edition_of(manifest.files[0].name) ? Old::replaced : Old::kept;
    const std::string text = write_manifest(manifest);
    if (text.size() > kMostText)
        return usage_error("the manifest of " + name.stem() + " would have " +
                           std::to_string(text.size()) + " bytes, and readers take at most " +
                           std::to_string(kMostText) + "; store fewer metadata");
    if (auto readable = parse_manifest(text); !readable) return readable.error();
    if (auto done = write_durably(path(name.manifest()), text, old); !done)
        return reason_of(done.error());
    // A further edition is in the list already.
    if (std::find(usable_.begin(), usable_.end(), name) == usable_.end()) usable_.push_back(name);
    if (reading_back_) proven_ = name;
    let_go(manifest);
    return {};
}

void SnapshotFolder::discard(const SnapshotName& name, const std::string& file) const {
    auto text = read_text(path(name.manifest()));
    // The manifest cannot be read now, so it may name the file.
    if (!text && text.error().code() != ErrorCode::not_found) return;
    auto manifest = text ? parse_manifest(*text) : Result<Manifest>(text.error());
    // An index goes with its snapshot.
    if (manifest && !manifest->files.empty() &&
        file == name.index(edition_of(manifest->files[0].name)))
        return;
    if (manifest && std::any_of(manifest->files.begin(), manifest->files.end(),
                                [&](const SnapshotFile& named) { return named.name == file; }))
        return;
    (void)remove_file(path(file));
}

// One process writes everything, with one buffer for all files.
Result<void> SnapshotFolder::save(std::int64_t step, const std::vector<TensorView>& tensors,
                                  const Metadata& metadata, std::uint64_t file_bytes) {
    const SnapshotName name{step, generation_};
    for (const auto& tensor : tensors)
        if (tensor.place)
            return usage_error("tensor \"" + tensor.name +
                               "\" is a slice; slices are saved with a SnapshotWriter");
    if (auto good = check_savable(tensors); !good) return good;
    if (auto good = check_savable(metadata); !good) return good;
    const auto plan = plan_files(tensors, file_bytes);
    std::vector<SnapshotFile> files;
    const auto how = begin(name);
    if (!how) return how.error();
    Result<void> done;
    PageBuffer content;
    for (std::size_t i = 0; done && i < plan.size(); ++i) {
        std::vector<TensorView> part;
        for (std::size_t index : plan[i]) part.push_back(tensors[index]);
        if (done = lay_out(part, content, copy_bytes); !done) break;
        auto file = write_file(name.tensors(i, plan.size(), how->edition), content);
        if (!file) {
            done = file.error();
            break;
        }
        if (how->read_back) done = read_back(*file);
        files.push_back(std::move(*file));
    }
    if (done) done = commit(name, files, metadata);
    if (!done) {
        // The files that were written before the failure.
        for (const auto& file : files) discard(name, file.name);
    }
    return done;
}

Result<Manifest> read_manifest(const std::string& folder, const SnapshotName& name) {
    auto text = read_text(folder + "/" + name.manifest());
    if (!text) return text.error();
    auto manifest = parse_manifest(*text);
    if (!manifest) return manifest.error();
    // A manifest that was copied or renamed.
    if (manifest->name != name)
        return Error(ErrorCode::malformed, "the manifest belongs to " + manifest->name.stem() +
                                               "; was the file renamed?");
    return manifest;
}

Result<Snapshot> SnapshotFolder::load(const SnapshotName& name) const {
    auto manifest = read_manifest(folder_, name);
    if (!manifest) return manifest.error();
    Snapshot snapshot;
    snapshot.files.resize(manifest->files.size());
    std::vector<Result<Safetensors>> tensors(manifest->files.size());
    // Reading keeps one core busy and so does verifying. A second thread takes every second file.
    auto read_from = [&](std::size_t first) {
        for (std::size_t i = first; i < manifest->files.size(); i += 2) {
            const auto& file = manifest->files[i];
            const auto read = read_checked(path(file.name), file, &snapshot.files[i]);
            tensors[i] = read ? parse_safetensors(snapshot.files[i].bytes())
                              : Result<Safetensors>(read.error());
        }
    };
    Result<Thread> other = Thread();
    if (manifest->files.size() > 1)
        other = start_thread("reading a snapshot", [&] { read_from(1); });
    read_from(0);
    if (!other) read_from(1);
    if (other && other->joinable()) other->join();
    for (auto& part : tensors) {
        if (!part) return part.error();
        snapshot.content.metadata.merge(part->metadata);
        // Views into the files in memory, which move with the snapshot and keep their addresses.
        for (auto& tensor : part->tensors) snapshot.content.tensors.push_back(std::move(tensor));
    }
    snapshot.manifest = std::move(*manifest);
    return snapshot;
}

// Removes snapshots beyond `keep`, and earlier editions of this one. A failure here must not end
// the training. It is only a warning, and the next save tries again.
void SnapshotFolder::let_go(const Manifest& saved) {
    auto files = list_folder(folder_);
    if (!files) return warn_("cannot tidy " + folder_ + ": " + files.error().sentence());
    // The look between manifest and removal (see snapshot.h): a later loader may have chosen a
    // snapshot that would be removed here.
    if (auto ours = check_turn(); !ours) return warn_(ours.error().sentence());
    for (const auto& name : surplus(manifests_in(*files), usable_, saved.name, keep_)) {
        // Asked for in begin(); the folder may have changed since.
        if (name == proven_) continue;
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

}  // namespace ddprun::trainer
