// Files that are either complete on disk or not there: written to a temporary file, synced,
// renamed, and the folder synced.
//
// Blocking; any thread. Several processes may write one path: each has its own temporary file, and
// the file of the last one stays, complete. Errors: unavailable, not_found, exists; the sentence
// has the path and the system's message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/unique_fd.h"
#include "trainer/snapshot/format/page_buffer.h"

namespace ddprun::trainer {

// What happens to a file that has the name already. `replaced`: the new file replaces it. `kept`:
// it stays, and the error is `exists`. (A file system without hard links replaces it in any case.)
enum class Old { replaced, kept };

// Writes the pieces one after the other. On a failure the temporary file (`path`.SOMETHING.tmp) is
// removed and an old file at `path` stays as it was. One exception: if only the folder could not be
// synced, the new file is in place already.
Result<void> write_durably(const std::string& path,
                           const std::vector<std::span<const std::byte>>& pieces,
                           Old old = Old::replaced);
Result<void> write_durably(const std::string& path, const std::string& text,
                           Old old = Old::replaced);

// Writes past the page cache (O_DIRECT) if the file system allows it. For large content that will
// not be read soon.
Result<void> write_durably(const std::string& path, const PageBuffer& buffer,
                           Old old = Old::replaced);

// Creates an empty file. Only the first of all callers succeeds, the others get the error `exists`.
// The file is not synced: it is a sign for other running processes and does not have to survive a
// crash.
Result<void> make_first(const std::string& path);

// A file that is open for reading.
class ReadableFile {
  public:
    static Result<ReadableFile> open(const std::string& path);
    std::uint64_t bytes() const { return bytes_; }  // when it was opened
    // Reads exactly these bytes. The error is unavailable, also if the file has become shorter.
    Result<void> read(std::uint64_t offset, std::span<std::byte> to) const;
    // Asks the kernel to begin reading the whole file.
    void read_ahead() const;

  private:
    ReadableFile(UniqueFd file, std::string path, std::uint64_t bytes)
        : file_(std::move(file)), path_(std::move(path)), bytes_(bytes) {}
    UniqueFd file_;
    std::string path_;
    std::uint64_t bytes_;
};

// A whole file in memory.
Result<PageBuffer> read_pages(const std::string& path);

// How many bytes a file has. It is opened for that: over a network an open asks the server, and a
// look by name may answer from an old list.
Result<std::uint64_t> size_of_file(const std::string& path);

// A whole file as text, of at most kMostText bytes. Manifests and records are far smaller, also
// those of a snapshot of many terabytes. Something else may be larger than the memory.
inline constexpr std::uint64_t kMostText = std::uint64_t{1} << 30;
Result<std::string> read_text(const std::string& path);

// After this, names that were added to the folder or removed from it survive a crash.
Result<void> sync_folder(const std::string& folder);

// Creates the folder and its parents if they are missing. Errors: usage, if the path is empty.
Result<void> make_folder(const std::string& folder);

// The names of all entries, sorted.
Result<std::vector<std::string>> list_folder(const std::string& folder);

// Removes a file. It is no error if the file does not exist.
Result<void> remove_file(const std::string& path);

}  // namespace ddprun::trainer
