// Looks through /proc for the srun of this step.
#include "launcher/in_slurm/srun_here.h"

#include <filesystem>
#include <set>

#include "base/system/small_file.h"
#include "slurm/no_kill.h"

namespace ddprun::launcher {
namespace {

namespace fs = std::filesystem;

// The words in a file such as /proc/PID/cmdline: each ends with a NUL byte.
std::vector<std::string> words_in(const fs::path& file) {
    const std::string text = read_small_file(file);
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\0', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

std::optional<std::string> variable(const std::vector<std::string>& environment,
                                    const std::string& name) {
    for (const std::string& entry : environment)
        if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    return std::nullopt;
}

// What this process answers; nothing if it is not an srun of this job that starts `command`. Other
// users' processes are skipped as well: their environ cannot be read.
std::optional<bool> survives_loss(const fs::path& process, const std::string& job_id,
                                  const std::vector<std::string>& command) {
    // The cheapest question first: nearly all processes are not srun.
    if (read_small_file(process / "comm") != "srun\n") return std::nullopt;
    const std::vector<std::string> environment = words_in(process / "environ");
    if (variable(environment, "SLURM_JOB_ID") != job_id) return std::nullopt;
    std::vector<std::string> words = slurm::words_of_srun(words_in(process / "cmdline"), command);
    if (words.empty()) return std::nullopt;
    words.erase(words.begin());
    return slurm::asks_no_kill(words, variable(environment, "SLURM_NO_KILL"));
}

}  // namespace

std::optional<bool> srun_survives_loss(const std::string& job_id, const std::string& processes) {
    const std::vector<std::string> command = words_in(fs::path(processes) / "self/cmdline");
    std::set<bool> answers;  // a set, because srun runs as two processes with the same words
    std::error_code ended;
    // Processes end while /proc is read. An error of the iteration ends the search, not the
    // program.
    for (fs::directory_iterator each(processes, ended), last; !ended && each != last;
         each.increment(ended))
        if (const auto answer = survives_loss(each->path(), job_id, command))
            answers.insert(*answer);
    return answers.size() == 1 ? std::optional(*answers.begin()) : std::nullopt;
}

}  // namespace ddprun::launcher
