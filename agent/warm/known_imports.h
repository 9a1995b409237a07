// What a job knows about the imports of its script, as a text that the next job reads. Pure.
//
// The text has one line for each module, behind a first line with the form's number:
//
//   ddprun imports 1
//   leave NAME            a server must not import it
//   import NAME\tFILE     the workers have imported it; in this order
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/warm/import_list.h"
#include "agent/warm/python_command.h"

namespace ddprun::agent::warm {

struct KnownImports {
    std::vector<Import> imports;
    std::vector<std::string> left_out;
    bool operator==(const KnownImports&) const = default;
};

std::string known_imports_text(const KnownImports& known);
// None: the text has not this form, or another number.
std::optional<KnownImports> read_known_imports(std::string_view text);

// The name of the file for this script: what runs, and a hash of all that decides which modules it
// finds (the interpreter, the script's path, and variables such as PATH). Empty where a script
// cannot be known again, for its text is in the command line. `folder` is the working directory.
std::string imports_file_name(const PythonCommand& command, const std::string& folder,
                              const std::map<std::string, std::string>& environment);

// The folder for such files: below XDG_CACHE_HOME or HOME. Empty: neither is set.
std::string imports_folder(const std::map<std::string, std::string>& environment);

}  // namespace ddprun::agent::warm
