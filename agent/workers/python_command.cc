// Finds the end of the interpreter's options.
#include "agent/workers/python_command.h"

#include <algorithm>
#include <string_view>

namespace ddprun::agent {
namespace {

// "python", "python3", "python3.11", also with a folder before it. Others, such as pypy, have
// another life behind fork().
bool is_python(std::string_view program) {
    program.remove_prefix(program.rfind('/') == program.npos ? 0 : program.rfind('/') + 1);
    if (!program.starts_with("python")) return false;
    program.remove_prefix(6);
    return std::ranges::all_of(program, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

// Options that change nothing between site initialisation and the script.
constexpr std::string_view kPlain = "bBdOPqRsu";
// With these the interpreter does not read the bootstrap.
constexpr std::string_view kNoSite = "EIS";
constexpr std::string_view kWithText = "WX";

Error refused(std::string reason) { return {ErrorCode::refused, std::move(reason)}; }

}  // namespace

Result<PythonCommand> python_command(const std::vector<std::string>& argv) {
    PythonCommand command;
    if (argv.empty() || !is_python(argv.front()))
        return refused("the command is not a Python interpreter with a script");
    command.interpreter.push_back(argv.front());
    for (std::size_t i = 1; i < argv.size(); ++i) {
        const std::string& word = argv[i];
        if (word == "-") return refused("the script comes from standard input");
        if (!word.starts_with('-')) {
            command.script = word;
            return command;
        }
        if (word.starts_with("--")) return refused("Python is called with " + word);
        for (std::size_t at = 1; at < word.size(); ++at) {
            const char letter = word[at];
            if (letter == 'm' || letter == 'c') {
                // What stands before it in the same word are options, too.
                if (at > 1) command.interpreter.push_back(word.substr(0, at));
                if (letter == 'm') command.module = word.substr(at + 1);
                if (letter == 'm' && command.module.empty() && i + 1 < argv.size())
                    command.module = argv[i + 1];
                return command;
            }
            if (kNoSite.find(letter) != kNoSite.npos)
                return refused(std::string("Python is called with -") + letter);
            if (kWithText.find(letter) != kWithText.npos) {
                command.interpreter.push_back(word);
                if (at + 1 == word.size() && ++i < argv.size())
                    command.interpreter.push_back(argv[i]);
                break;
            }
            if (kPlain.find(letter) == kPlain.npos)
                return refused(std::string("Python is called with -") + letter);
            if (at + 1 == word.size()) command.interpreter.push_back(word);
        }
    }
    return refused("there is no script");
}

}  // namespace ddprun::agent
