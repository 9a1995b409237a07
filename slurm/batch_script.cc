// Reads the output of `scontrol show job` and `squeue -s`.
#include "slurm/batch_script.h"

#include <algorithm>
#include <charconv>

#include "slurm/hostlist.h"

namespace ddprun::slurm {
namespace {

// Returns the first line, without its end, and removes it from `text`.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

// Returns the value of the first word "KEY=value". It skips the first line: this line holds the
// job's name, which the user chooses and which may look like such a word. Other text of the user
// comes after the fields that are read here.
std::string_view value_of(std::string_view shown, std::string_view key) {
    take_line(shown);
    while (!shown.empty()) {
        std::string_view line = take_line(shown);
        while (!line.empty()) {
            const std::size_t end = std::min(line.find(' '), line.size());
            const std::string_view word = line.substr(0, end);
            if (word.starts_with(key) && word.substr(key.size()).starts_with('='))
                return word.substr(key.size() + 1);
            line.remove_prefix(std::min(end + 1, line.size()));
        }
    }
    return {};
}

}  // namespace

BatchScript batch_script(std::string_view shown) {
    const std::string_view host = value_of(shown, "BatchHost");
    // A job that is pending, completing or requeued must not be ended by us. If a field is missing,
    // the answer is `none` too: a wrong `lost` would cancel a healthy job.
    if (value_of(shown, "JobState") != "RUNNING" || value_of(shown, "BatchFlag") != "1" ||
        host.empty())
        return BatchScript::none;
    const auto nodes = expand_hostlist(value_of(shown, "NodeList"));
    if (!nodes || nodes->empty()) return BatchScript::none;
    // When Slurm gives up on a node of a running job, it removes the node from NodeList but leaves
    // BatchHost as it was.
    return std::ranges::find(*nodes, host) == nodes->end() ? BatchScript::lost : BatchScript::there;
}

std::optional<int> restarts_of(std::string_view shown) {
    const std::string_view text = value_of(shown, "Restarts");
    int restarts = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), restarts);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return restarts;
}

// squeue also lists the batch script and the "extern" step. They are Slurm's own and do not count.
bool is_only_step(std::string_view steps, std::string_view own) {
    while (!steps.empty()) {
        const std::string_view step = take_line(steps);
        const std::string_view name = step.substr(step.find('.') + 1);
        if (!step.empty() && step != own && name != "batch" && name != "extern") return false;
    }
    return true;
}

}  // namespace ddprun::slurm
