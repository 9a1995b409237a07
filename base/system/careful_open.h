// The one place where files are opened in the folders of the workers: their error files, the stop
// file, the FIFO of timers, their log files. Whatever lies under the name (a FIFO, a link, a
// device, a folder), nothing here waits for it, follows it or writes into it.
//
// Sentences of open_…() continue one that starts with the file's name: "is not a regular file". The
// others say only why: "No space left on device". All calls may hang with their file system: use
// the file thread.
#pragma once

#include <string>

#include "base/error.h"
#include "base/system/unique_fd.h"

namespace ddprun {

// Opens a regular file for reading. Possible errors: not_found; refused (a link, or no regular
// file); unavailable.
Result<UniqueFd> open_to_read(const std::string& path);

// Opens a regular file for appending, and makes it if there is none. Possible errors: refused,
// unavailable.
Result<UniqueFd> open_to_append(const std::string& path);

// Opens a folder, for its lock or its names. Possible errors: not_found, refused, unavailable.
Result<UniqueFd> open_folder(const std::string& path);

// Makes a FIFO that replaces an older one of this name, and opens both of its ends, so that it
// never reports its end. Possible errors: refused (a file that is no FIFO has the name);
// unavailable.
Result<UniqueFd> make_fifo(const std::string& path);

// Replaces whatever has this name by a file with this text, in one step: a reader finds the old
// one or the whole new one. Possible errors: unavailable.
Result<> replace_file(const std::string& path, const std::string& text);

}  // namespace ddprun
