#include "launcher/failure_report.h"

namespace ddprun::launcher {

std::vector<std::string> failure_report(const rendezvous::Ending& ending, bool whole) {
    if (ending.verdict == rendezvous::Verdict::succeeded) return {};
    if (!ending.first_failure) return {ending.sentence};
    const rendezvous::WorkerOutcome& first = *ending.first_failure;
    std::vector<std::string> lines{"first failure: " + first.sentence + "; " + ending.sentence};
    if (!whole) return lines;
    if (!first.error.empty()) lines.push_back("its error: " + first.error);
    if (!first.tail.empty()) lines.push_back("its last lines:");
    for (const std::string& line : first.tail) lines.push_back("    " + line);
    if (!first.stack.empty()) lines.push_back("where the slowest are:");
    for (const std::string& line : first.stack) lines.push_back("    " + line);
    if (ending.consequences > 0)
        lines.push_back(std::to_string(ending.consequences) +
                        (ending.consequences == 1 ? " other worker" : " other workers") +
                        " failed after it, as a consequence");
    return lines;
}

}  // namespace ddprun::launcher
