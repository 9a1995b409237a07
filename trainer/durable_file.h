// Files that are either whole on disk or not there: temporary, fsync, rename, fsync of the folder.
//
// Blocking; any thread, one writer a path. Errors: unavailable, not_found, each with the path and
// the system's word.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "proto/error.h"
#include "trainer/page_buffer.h"

namespace ddprun::trainer {

// Writes the pieces behind each other. On failure the temporary (`path`.tmp) is removed; an old
// `path` stays as it was.
Result<void> write_durably(const std::string& path,
                           const std::vector<std::span<const std::byte>>& pieces);
Result<void> write_durably(const std::string& path, const std::string& text);

// The same past the system's cache where the file system allows it: for what is large and will not
// be read soon.
Result<void> write_durably(const std::string& path, const PageBuffer& buffer);

// A whole file, see PageBuffer::map.
Result<PageBuffer> read_pages(const std::string& path);

Result<std::vector<std::byte>> read_bytes(const std::string& path);

// Makes names that were added to or taken from the folder survive a crash.
Result<void> sync_folder(const std::string& folder);

// Makes the folder and its parents where they are missing.
Result<void> make_folder(const std::string& folder);

// Names of the plain entries, sorted.
Result<std::vector<std::string>> list_folder(const std::string& folder);

// Takes a file away; one that is gone already is no error.
Result<void> remove_file(const std::string& path);

}  // namespace ddprun::trainer
