// Files that are either whole on disk or not there: temporary, fsync, rename, fsync of the folder.
//
// Blocking; any thread. Several processes may write one path: each writes a temporary of its own, and
// the last one's file stays, whole. Errors: unavailable, not_found, each with the path and the
// system's word.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/snapshot/page_buffer.h"

namespace ddprun::trainer {

// What is to become of a file that has the name already: it is replaced, or it stays and the error is
// `exists`. (Where the file system has no hard links it is replaced in any case.)
enum class Old { replaced, kept };

// Writes the pieces behind each other. On failure the temporary (`path`.SOMETHING.tmp) is removed; an
// old `path` stays as it was, unless it is the folder that could not be synced.
Result<void> write_durably(const std::string& path,
                           const std::vector<std::span<const std::byte>>& pieces,
                           Old old = Old::replaced);
Result<void> write_durably(const std::string& path, const std::string& text,
                           Old old = Old::replaced);

// The same past the system's cache where the file system allows it: for what is large and will not
// be read soon.
Result<void> write_durably(const std::string& path, const PageBuffer& buffer,
                           Old old = Old::replaced);

// An empty file that was not there, for those who live: it need not survive a crash. Errors: exists,
// of all but the first who asks.
Result<void> make_first(const std::string& path);

// A whole file, see PageBuffer::map.
Result<PageBuffer> read_pages(const std::string& path);

Result<std::string> read_text(const std::string& path);

// Makes names that were added to or taken from the folder survive a crash.
Result<void> sync_folder(const std::string& folder);

// Makes the folder and its parents where they are missing.
Result<void> make_folder(const std::string& folder);

// Names of the plain entries, sorted.
Result<std::vector<std::string>> list_folder(const std::string& folder);

// Takes a file away; one that is gone already is no error.
Result<void> remove_file(const std::string& path);

}  // namespace ddprun::trainer
