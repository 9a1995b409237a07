// Looks for the program in PATH and checks that the file can be executed or read.
#include "launcher/job/program_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/command_line/nearest.h"
#include "base/default_path.h"
#include "base/system/wait_in_time.h"

namespace ddprun::launcher {
namespace {

bool is_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Whether a program was called by its path, in an environment of venv or conda to which PATH does
// not lead. Where PATH leads to it, its python3 is what the user wants. (srun calls every program
// by its path.)
bool calls_environment(const std::filesystem::path& called_as,
                       const std::optional<std::string>& path) {
    const std::filesystem::path root = called_as.parent_path().parent_path();
    std::error_code ignored;
    return (std::filesystem::exists(root / "pyvenv.cfg", ignored) ||
            std::filesystem::exists(root / "conda-meta", ignored)) &&
           std::filesystem::path(find_in_path(called_as.filename(), path)).lexically_normal() !=
               called_as.lexically_normal();
}

// A script in the same folder with nearly this name; empty: there is none.
std::string meant_beside(const std::filesystem::path& script) {
    std::error_code ignored;
    std::vector<std::string> there;
    const auto folder = script.parent_path();
    for (const auto& file :
         std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored))
        if (file.path().extension() == ".py") there.push_back(file.path().filename());
    const std::vector<std::string_view> names(there.begin(), there.end());
    const std::string given = script.filename();
    const std::string_view meant = nearest(given, names);
    return meant.empty() ? "" : (folder / meant).string();
}

}  // namespace

std::string find_in_path(const std::string& program, const std::optional<std::string>& path) {
    std::istringstream folders(path.value_or(kDefaultPath));
    for (std::string folder; std::getline(folders, folder, ':');) {
        // An empty entry of PATH means the working directory.
        std::string file = (folder.empty() ? "." : folder) + "/" + program;
        if (is_file(file) && ::access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

std::string find_silent_place(const std::map<std::string, std::string>& environment,
                              std::chrono::nanoseconds limit) {
    const auto value = [&](const char* name, const char* or_else = "") {
        const auto found = environment.find(name);
        return found == environment.end() ? std::string(or_else) : found->second;
    };
    std::vector<std::string> places{value("PYTHON_EXEC"), value("VIRTUAL_ENV")};
    std::istringstream folders(value("PATH", kDefaultPath));
    for (std::string folder; std::getline(folders, folder, ':');) places.push_back(folder);
    const auto at = std::make_shared<std::atomic<std::size_t>>(0);
    const auto looked = wait_in_time(limit, [places, at] {
        for (; *at < places.size(); ++*at) (void)is_file(places[*at] + "/python3");
        return true;
    });
    return looked ? std::string() : places[std::min(at->load(), places.size() - 1)];
}

std::optional<std::string> find_python(const std::map<std::string, std::string>& environment,
                                       const std::filesystem::path& called_as, bool as_torchrun) {
    const auto named = environment.find("PYTHON_EXEC"), venv = environment.find("VIRTUAL_ENV"),
               path = environment.find("PATH");
    if (named != environment.end() && !named->second.empty()) return named->second;
    const bool active = venv != environment.end() && !venv->second.empty();
    const bool beside =
        as_torchrun ||
        (called_as.has_parent_path() &&
         calls_environment(called_as, path == environment.end()
                                          ? std::nullopt
                                          : std::optional<std::string>(path->second)));
    for (const std::string& folder : {active ? venv->second + "/bin" : "",
                                      beside ? called_as.parent_path().string() : std::string()})
        if (!folder.empty() && ::access((folder + "/python3").c_str(), X_OK) == 0)
            return folder + "/python3";
    return std::nullopt;
}

// Each sentence ends in what to write instead, as far as that can be guessed from the name.
Result<> check_program(const std::string& program, const std::optional<std::string>& path,
                       const std::string& or_else) {
    if (program.find('/') == std::string::npos) {
        if (!find_in_path(program, path).empty()) return {};
        return usage_error("program " + program + ": not found in PATH" +
                           (path ? "" : std::string(" (which is not set: ") + kDefaultPath + ")") +
                           (is_file(program)
                                ? "; write ./" + program + " for the one in this folder"
                                : "; give its path"));
    }
    struct stat status {};
    if (::stat(program.c_str(), &status) != 0)
        return usage_error("program " + program + ": " + std::strerror(errno));
    if (!S_ISREG(status.st_mode)) return usage_error("program " + program + ": not a file");
    if (::access(program.c_str(), X_OK) != 0)
        return usage_error("program " + program + ": not executable; chmod +x it" + or_else);
    return {};
}

Result<> check_worker_program(const Plan& plan, const std::optional<std::string>& path) {
    const std::string& program = plan.workers.argv.front();
    const std::string or_else = program.ends_with(".py")
                                    ? ", or leave --no-python out"
                                    : ", or give a Python script a name that ends in .py";
    if (auto good = check_program(program, path, or_else); !good) return good;
    const std::string& script = plan.program.display;
    // A script needs only to be readable, since the interpreter is what is executed. A module (-m)
    // is found by Python itself, so nothing is checked.
    if (!plan.program.python || !script.ends_with(".py")) return {};
    if (::access(script.c_str(), R_OK) != 0) {
        const std::string why = std::strerror(errno);
        const std::string meant = errno == ENOENT ? meant_beside(script) : "";
        return usage_error("script " + script + ": " + why +
                           (meant.empty() ? "" : "; did you mean " + meant + "?"));
    }
    return {};
}

}  // namespace ddprun::launcher
