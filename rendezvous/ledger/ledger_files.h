// Opens a ledger folder, and reads and writes the files in it, so that a file is whole or absent.
// What the files are is in ledger_folder.h and ledger_allocation.h.
//
// Thread: each call blocks as long as the file system does, so only the FileThread may call.
// Possible errors: those of ledger_folder.h.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ddprun::rendezvous {

inline constexpr const char* kTemporary = ".writing-";  // begins the names of temporary files

// A descriptor that closes itself; close() also reports the error.
class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const { return descriptor_; }
    // Checked, because a network file system may report "disk full" only at close().
    bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

    int release() { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_;
};

// An open folder. Files are opened relative to it, so all of them lie in this very folder, even if
// it is moved and another job's folder takes its name.
struct OpenFolder {
    std::string path;  // where it was when it was opened; for sentences
    File file;
};

// The error of a system call in the folder, with what the user can do. ENOENT becomes not_found.
Error folder_error(const std::string& folder, const char* advice, int code);
Error cannot_use(const std::string& folder, int code);

// Only our own folder is opened.
Result<OpenFolder> open_folder(const std::string& path);
Result<std::string> read_file(const OpenFolder& folder, const std::string& name);
// The names of all files in it.
Result<std::vector<std::string>> list_files(const OpenFolder& folder);

// Writes the text to a new temporary file and flushes it to the disk. On an error no file is left.
Result<std::string> write_temporary(const OpenFolder& folder, const std::string& text);
// Gives the file a second name. Returns 0 or the errno. link() is atomic also on NFS, and never
// replaces a file.
int add_name(const OpenFolder& folder, const std::string& name, const std::string& second);
// Creates a file with this text under its final name. Returns 0 or the errno; EEXIST means that
// another text stands there.
Result<int> create_file(const OpenFolder& folder, const std::string& name, const std::string& text);
// Writes the text into the file at this place, and flushes it. The file is made if it is missing.
// What stands elsewhere in it stays.
Result<> write_into(const OpenFolder& folder, const std::string& name, const std::string& text,
                    std::int64_t at);

}  // namespace ddprun::rendezvous
