// Opens the files of a snapshot, and reads what a program's tensors need of them.
#include "trainer/snapshot/load/load_slices.h"

#include <algorithm>

#include "trainer/snapshot/folder/resume_meeting.h"
#include "trainer/snapshot/format/durable_file.h"
#include "trainer/snapshot/load/fill_tensors.h"
#include "trainer/snapshot/load/part_reader.h"

namespace ddprun::trainer {
namespace {

// The open files of a snapshot, in the order of the manifest.
struct OpenFiles {
    std::vector<PartReader> readers;
    std::vector<TensorView> tensors;  // of all files
};

Result<OpenFiles> open_files(const std::string& folder, const Manifest& manifest) {
    OpenFiles files;
    for (const auto& file : manifest.files) {
        auto reader = PartReader::open(folder, file);
        if (!reader) return reader.error();
        auto content = reader->header();
        if (!content)
            return Error(content.error().code(), file.name + ": " + content.error().sentence());
        for (auto& tensor : content->tensors) files.tensors.push_back(std::move(tensor));
        files.readers.push_back(std::move(*reader));
    }
    return files;
}

// A header that is damaged may look like one of another model. Then the snapshot is damaged, and
// not the program wrong.
Error reason_of(const Error& error, OpenFiles& files) {
    if (error.code() != ErrorCode::usage) return error;
    for (auto& reader : files.readers) {
        if (auto whole = reader.check_all(); !whole) return whole.error();
        reader.rest();
    }
    return error;
}

}  // namespace

Result<LoadedSlices> load_slices(const std::string& folder, const SnapshotName& name,
                                 const std::vector<Tensor>& tensors, const LoadOptions& options) {
    auto manifest = read_manifest(folder, name);
    if (!manifest) return manifest.error();
    LoadedSlices loaded{std::move(*manifest)};
    auto files = open_files(folder, loaded.manifest);
    if (!files) return files.error();
    auto last = files->readers.end();
    const auto gather = [&](std::byte* to, std::span<const std::byte> from) -> Result<void> {
        if (from.empty()) return {};
        const auto reader =
            std::find_if(files->readers.begin(), files->readers.end(),
                         [&](const PartReader& file) { return file.has(from.data()); });
        if (last != reader && last != files->readers.end()) last->rest();
        last = reader;
        return reader->copy(to, from);
    };
    auto done = fill_tensors("snapshot " + name.stem(), files->tensors, tensors, options, gather);
    if (!done) return reason_of(done.error(), *files);
    for (const auto& reader : files->readers) loaded.bytes_read += reader.bytes_read();
    return loaded;
}

Result<std::optional<LoadedSlices>> resume_into(const Context& context, Store& store,
                                                SnapshotFolder& folder,
                                                const std::vector<Tensor>& tensors,
                                                std::chrono::milliseconds timeout,
                                                const LoadOptions& options) {
    std::optional<LoadedSlices> loaded;
    const auto load = [&](const Candidate& candidate) -> Result<void> {
        auto made = load_slices(candidate.from_base ? folder.base() : folder.folder(),
                                candidate.name, tensors, options);
        if (!made) return made.error();
        made->from_base = candidate.from_base;
        loaded = std::move(*made);
        return {};
    };
    const auto taken = resume_together(context, store, folder, "resume_into", timeout, load);
    if (!taken) return taken.error();
    if (!*taken) loaded.reset();
    return loaded;
}

}  // namespace ddprun::trainer
