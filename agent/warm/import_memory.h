// What the last job of this script has found out about its imports, in a file of the user's
// (known_imports.h): below XDG_CACHE_HOME, else below ~/.cache, in ddprun/imports.
//
// The home folder may be on a file system that hangs, so the file has a thread of its own, and
// nobody waits for it longer than kPatience. A file that cannot be read or written is as good as
// none. It is the user's own, and what it names is imported by the user's own interpreter: nothing
// is believed but that these modules exist.
//
// Thread: the loop's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/warm/known_imports.h"
#include "base/loop/file_thread.h"

namespace ddprun::agent::warm {

// What is in the file now. Blocks.
std::optional<KnownImports> recall_imports(const PythonCommand& command,
                                           const std::map<std::string, std::string>& environment);

class ImportMemory {
  public:
    ImportMemory(boost::asio::io_context& loop, const PythonCommand& command,
                 const std::map<std::string, std::string>& environment);

    // `done` comes from the loop, and within kPatience.
    using Done = std::function<void(std::optional<KnownImports>)>;
    void read(Done done);
    // Also removes the oldest files of other scripts, if there are too many.
    void write(const KnownImports& known);
    // It was wrong.
    void forget();
    // The loop is about to end: nobody wants an answer any more.
    void close() { files_.abandon(); }

  private:
    std::string folder_, path_;  // empty: nothing is remembered
    FileThread files_;
};

}  // namespace ddprun::agent::warm
