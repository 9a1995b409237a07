// Reads the site's delay, and decides whether a shorter one may take its place.
#include "slurm/requeue_begin.h"

#include <charconv>
#include <optional>

namespace ddprun::slurm {
namespace {

using std::chrono::seconds;

// How long a credential of Slurm is valid by default. A requeued job waits one second longer.
constexpr seconds kCredential{120};

// The value of the line "KEY   = value".
std::string_view setting(std::string_view config, std::string_view key) {
    while (!config.empty()) {
        const std::size_t end = config.find('\n');
        std::string_view line = config.substr(0, end);
        config.remove_prefix(end == std::string_view::npos ? config.size() : end + 1);
        if (!line.starts_with(key)) continue;
        line.remove_prefix(key.size());
        const std::size_t value = line.find_first_not_of(' ');
        if (value != std::string_view::npos && line[value] == '=') return line.substr(value + 1);
    }
    return {};
}

// The number in "a,NAME=7,b".
std::optional<seconds> number_in(std::string_view list, std::string_view name) {
    while (!list.empty()) {
        const std::size_t end = list.find(',');
        std::string_view word = list.substr(0, end);
        list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
        word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
        if (!word.starts_with(name) || !word.substr(name.size()).starts_with('=')) continue;
        word.remove_prefix(name.size() + 1);
        int number = 0;
        const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error == std::errc() && number >= 0) return seconds(number);
    }
    return std::nullopt;
}

}  // namespace

// Slurm 25.11 and later have a parameter of its own for the delay.
seconds requeue_delay(std::string_view config) {
    if (const auto own = number_in(setting(config, "SchedulerParameters"), "requeue_delay"))
        return *own;
    return number_in(setting(config, "AuthInfo"), "cred_expire").value_or(kCredential) + seconds(1);
}

std::string brakes(const Life& life, seconds delay) {
    if (life.lasted < delay)
        return "this run lasted only " + std::to_string(life.lasted.count()) + " s";
    return life.progressed ? "" : "its workers made no progress";
}

std::string is_kept(const ShownJob& requeued, seconds now) {
    if (requeued.held) return "it is held";
    if (requeued.depends) return "it waits for another job";
    return requeued.eligible > now ? "its begin is set to a later time" : "";
}

}  // namespace ddprun::slurm
