// Which option prints which text.
#include "launcher/options/printed_text.h"

#include "launcher/options/completion.h"
#include "launcher/options/option_text.h"
#include "launcher/options/sbatch_text.h"

namespace ddprun::launcher {

std::optional<std::string> printed_text(const Options& options, const Environment& environment,
                                        const Release& release, std::string_view name) {
    if (options.brief_help) return brief_help();
    if (options.help) return help_text(HelpLength::frequent);
    if (options.help_all) return help_text(HelpLength::all);
    if (options.version) return release_line("ddprun", release);
    if (options.print_man) return man_page(release.version);
    if (options.print_completion) return completion(*options.print_completion, name);
    if (options.print_sbatch) return sbatch_text(options, environment);
    return std::nullopt;
}

}  // namespace ddprun::launcher
