// Parses the command line and the PET_ variables, and checks what only makes sense together.
#include "launcher/options/options.h"

#include <algorithm>

#include "base/command_line/command_line.h"
#include "base/command_line/nearest.h"
#include "launcher/options/option_table.h"
#include "launcher/options/option_values.h"
#include "launcher/options/product_names.h"

namespace ddprun::launcher {
namespace {

// A product that this value needs and this ddprun lacks; empty: none.
std::string_view missing_for(const Options& options, const OptionRow& row,
                             const std::string& value) {
    for (const std::string_view product : options.missing)
        if (row.products.find(product) != row.products.npos && value != "off" &&
            value.starts_with(row.product_value))
            return product;
    return {};
}

// Applies one option. `given` is what the user wrote, for messages: "--nnodes" or "PET_NNODES".
MaybeError apply(Options& options, const OptionRow& row, const std::string& given,
                 const std::string& value) {
    if (const auto product = missing_for(options, row, value); !product.empty())
        return usage_error(given + ": this ddprun was built without " + std::string(product));
    // A flag from a PET_ variable comes here only if its number is not 0.
    if (row.kind == OptionKind::flag) return row.set(options, "");
    if (value.empty()) {
        if (row.may_be_empty) return std::nullopt;
        // In scripts an empty value nearly always comes from a variable that is not set.
        return usage_error(given + "=: the value is empty; is a variable in your script not set?");
    }
    auto error = row.closed ? check_choice(row, value) : std::nullopt;
    if (!error && row.set) error = row.set(options, value);
    if (error) return usage_error(given + "=" + value + ": " + error->sentence());
    if (row.kind == OptionKind::ignored && value != row.default_text)
        options.warnings.push_back(given + " has no effect here: " + std::string(row.help));
    return std::nullopt;
}

bool on_command_line(const SplitWords& words, const OptionRow& row) {
    return std::ranges::find(words.options, &row, &GivenOption::row) != words.options.end();
}

// The value of the option's PET_ variable; empty: none is set.
std::string variable_of(const Environment& environment, const OptionRow& row) {
    const auto variable = row.pet ? environment.find(pet_variable(row)) : environment.end();
    return variable == environment.end() ? "" : variable->second;
}

// Keeps where the option came from. Stronger sources come later and replace weaker ones.
void note_origin(Options& options, const OptionRow& row, const std::string& value,
                 OptionSource source, const std::string& where) {
    std::erase_if(options.origins, [&](const OptionOrigin& one) { return one.row == &row; });
    options.origins.push_back({&row, value, source, where});
}

void sort_origins(Options& options) {
    std::vector<OptionOrigin> sorted;
    for (const OptionRow& row : option_table())
        for (const OptionOrigin& one : options.origins)
            if (one.row == &row) sorted.push_back(one);
    options.origins = std::move(sorted);
}

// Variables of torchrun that have no effect here. As with options without effect, the user is
// always told.
struct IdleVariable {
    const char* name;
    const char* only;  // the value that would matter; null: any value
    const char* why;
};
constexpr IdleVariable kIdleVariables[] = {
    {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1", "each generation has its own store"},
    {"TORCH_ELASTIC_WORKER_IDENTICAL", "1",
     "ddprun assigns ranks without an exchange between nodes"},
    {"TORCHELASTIC_HEALTH_CHECK_PORT", nullptr, "nothing listens there, as with torchrun"},
    {"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT", nullptr, "all nodes end together"},
    {"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", nullptr,
     "--hang-timeout is for workers that hang, --unkillable-timeout for workers that cannot be "
     "killed"},
};

void note_idle_variables(Options& options, const Environment& environment) {
    for (const IdleVariable& idle : kIdleVariables) {
        const auto variable = environment.find(idle.name);
        if (variable == environment.end() || variable->second.empty()) continue;
        if (idle.only && variable->second != idle.only) continue;
        options.warnings.push_back(std::string(idle.name) + " has no effect here: " + idle.why);
    }
}

// Other programs use LOGLEVEL as well, so a word that is no level is a warning, never an error.
void apply_log_level(Options& options, const Environment& environment) {
    const auto level = environment.find("LOGLEVEL");
    if (level == environment.end() || level->second.empty()) return;
    if (const auto verbosity = verbosity_of(level->second))
        options.verbosity = *verbosity;
    else
        options.warnings.push_back(
            "LOGLEVEL=" + level->second +
            " has no effect: not a level; set it to DEBUG, INFO, WARNING, ERROR or CRITICAL");
}

// Applies the values of one file, except those that `hidden` says a stronger source has.
template <class Hidden>
MaybeError apply_file(Options& options, const std::vector<ConfigValue>& values, OptionSource source,
                      const Hidden& hidden) {
    for (const ConfigValue& given : values) {
        if (hidden(*given.row)) continue;
        const bool flag = given.row->placeholder.empty();
        if (flag && given.value == "0") continue;
        if (auto error = apply(options, *given.row, given.where + ": " + given.key, given.value))
            return error;
        note_origin(options, *given.row, flag ? "" : given.value, source, given.where);
    }
    return std::nullopt;
}

bool has_row(const std::vector<ConfigValue>& values, const OptionRow& row) {
    return std::ranges::find(values, &row, &ConfigValue::row) != values.end();
}

// Possible errors: usage: as read_config(), and a key that is no option in the user's file. In the
// site's file it may be an option of a newer ddprun than this one, and is a warning.
Result<std::vector<ConfigValue>> values_in(const std::optional<ConfigFile>& file, bool of_site,
                                           std::vector<std::string>& warnings) {
    if (!file) return std::vector<ConfigValue>();
    auto read = read_config(*file);
    if (!read) return read.error();
    for (const std::string& sentence : read->unknown) {
        if (!of_site) return usage_error(sentence);
        warnings.push_back(sentence + " (the site's file; the line has no effect)");
    }
    return std::move(read->values);
}

// Applies the site's file, then the user's. A source hides an option of a weaker one completely,
// even a wrong value.
MaybeError apply_files(Options& options, const SplitWords& words, const Environment& environment,
                       const ConfigFiles& files) {
    const auto pass_by = [](const Error& error) {
        return usage_error(error.sentence() + "; DDPRUN_SITE_CONFIG=none starts without this file");
    };
    const auto site = values_in(files.site, true, options.warnings);
    if (!site) return pass_by(site.error());
    const auto own = values_in(files.own, false, options.warnings);
    if (!own) return own.error();
    const auto stronger = [&](const OptionRow& row) {
        return on_command_line(words, row) || !variable_of(environment, row).empty();
    };
    if (auto error = apply_file(options, *site, OptionSource::site, [&](const OptionRow& row) {
            return stronger(row) || has_row(*own, row);
        }))
        return pass_by(*error);
    return apply_file(options, *own, OptionSource::file, stronger);
}

// Two variables of torchrun that are not called PET_… stand in for an option as well; the second
// one is weaker than its PET_ variable.
MaybeError apply_torchruns_variables(Options& options, const SplitWords& words,
                                     const Environment& environment) {
    for (const auto& [name, option] :
         {std::pair{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "log-line-prefix-template"},
          std::pair{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "shutdown-timeout"}}) {
        const auto variable = environment.find(name);
        if (variable == environment.end() || variable->second.empty()) continue;
        const OptionRow& row = option_row(option);
        if (auto error = apply(options, row, name, variable->second)) return error;
        if (!on_command_line(words, row))
            note_origin(options, row, variable->second, OptionSource::environment, name);
    }
    return std::nullopt;
}

// Applies the variables. It runs before the options of the command line are applied, so that these
// win. An empty variable counts as not set.
MaybeError apply_environment(Options& options, const SplitWords& words,
                             const Environment& environment) {
    note_idle_variables(options, environment);
    apply_log_level(options, environment);
    if (auto error = apply_torchruns_variables(options, words, environment)) return error;
    for (const OptionRow& row : option_table()) {
        // Options on the command line hide their variable completely, even one with a wrong value.
        const std::string value = variable_of(environment, row);
        if (value.empty() || on_command_line(words, row)) continue;
        const std::string name = pet_variable(row);
        if (row.kind == OptionKind::flag) {
            auto number = read_int(value, -1'000'000'000, 1'000'000'000);
            if (!number) return usage_error(name + "=" + value + ": not a number; give 1 or 0");
            if (*number == 0) continue;
        }
        if (auto error = apply(options, row, name, value)) return error;
        note_origin(options, row, row.placeholder.empty() ? "" : value, OptionSource::environment,
                    name);
    }
    return std::nullopt;
}

// Applies the command line, the strongest source.
MaybeError apply_words(Options& options, const SplitWords& words) {
    for (const GivenOption& given : words.options) {
        if (auto error = apply(options, *given.row, given.spelling, given.value)) return error;
        note_origin(options, *given.row, given.row->placeholder.empty() ? "" : given.value,
                    OptionSource::command_line, given.spelling);
    }
    return std::nullopt;
}

// Recognizes an IPv4 address where the program should be. It comes from a script that does not
// quote `hostname --ip-address`, which may print two addresses.
bool is_second_address(const std::string& program) {
    return std::ranges::count(program, '.') == 3 &&
           program.find_first_not_of("0123456789.:") == std::string::npos;
}

// Combinations that contradict each other are errors; those that only have no effect are warnings.
MaybeError check_together(Options& options) {
    if (options.check && options.dry_run)
        return usage_error("--check and --dry-run: give one of them");
    const RehearsalOptions& rehearsal = options.rehearsal;
    if (!rehearsal.faults.empty() && (options.check || options.dry_run))
        return usage_error("--rehearse: give it without --check and --dry-run");
    if (rehearsal.faults.empty() && !rehearsal.first_given.empty())
        return usage_error(rehearsal.first_given + ": give it together with --rehearse");
    if (options.program.empty() && !options.check && !options.print_sbatch)
        return usage_error(
            "no program is given; write ddprun [OPTIONS] PROGRAM [ARGUMENTS], see --help");
    // Otherwise the second address would be started as the program, with an error that does not
    // show the cause.
    if (options.rdzv_endpoint && is_second_address(options.program))
        return usage_error("--rdzv-endpoint has two addresses, and the second of them (" +
                           options.program +
                           ") would be started as the program; give only one, or under Slurm leave "
                           "the option out");
    if (options.module && options.no_python)
        return usage_error("--module and --no-python contradict each other; give one of them");
    if (options.standalone && options.nnodes && options.nnodes->min > 1)
        return usage_error("--standalone is for one node, but --nnodes asks for " +
                           std::to_string(options.nnodes->min) + "; leave one of them out");
    if (options.standalone && (options.rdzv_endpoint || options.master_addr || options.master_port))
        options.warnings.push_back("--standalone: the endpoint is ignored; leave one of them out");
    const bool is_static = options.rdzv_backend.value_or("static") == "static";
    // torchrun's back end is "static" unless another one is named.
    if (options.rdzv_conf.static_timeout && !is_static)
        options.warnings.push_back(
            "--rdzv-conf: the key timeout has an effect with the static rendezvous only; "
            "join_timeout sets how long to wait for the nodes");
    for (const std::string& warning : options.rdzv_conf.warnings)
        options.warnings.push_back(warning);
    return std::nullopt;
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& words, const Environment& environment,
                              const ConfigFiles& files,
                              const std::vector<std::string_view>& missing) {
    Options options;
    options.missing = missing;
    auto split = split_words(words, job_grammar());
    if (!split) return split.error();
    options.warnings = split->warnings;
    // Then neither the other options' values nor the variables are looked at, as in argparse.
    if (!split->options.empty() && only_prints(*split->options.back().row)) {
        const GivenOption& last = split->options.back();
        if (auto error = apply(options, *last.row, last.spelling, last.value)) return *error;
        options.brief_help = options.help && !last.spelling.starts_with("--");
        return options;
    }
    options.warnings.insert(options.warnings.end(), files.warnings.begin(), files.warnings.end());
    if (auto error = apply_files(options, *split, environment, files)) return *error;
    if (auto error = apply_environment(options, *split, environment)) return *error;
    if (auto error = apply_words(options, *split)) return *error;
    sort_origins(options);
    // An empty rest is no error here: check_together() decides, since --check needs no program.
    if (!split->the_rest.empty()) {
        options.program = split->the_rest.front();
        options.arguments.assign(split->the_rest.begin() + 1, split->the_rest.end());
    }
    if (auto error = check_together(options)) return *error;
    if (std::ranges::find(missing, kWarmStarts) != missing.end())
        options.warm = agent::warm::Mode::off;
    return options;
}

std::string config_named(const std::vector<std::string>& words, const Environment& environment) {
    const auto split = split_words(words, job_grammar());
    if (!split || (!split->options.empty() && only_prints(*split->options.back().row))) return "";
    std::string path;
    if (const auto variable = environment.find("DDPRUN_CONFIG"); variable != environment.end())
        path = variable->second;
    for (const GivenOption& given : split->options)
        if (given.row->name == "config") path = given.value;
    return path;
}

const char* to_string(OptionSource source) {
    switch (source) {
        case OptionSource::site:
            return "site";
        case OptionSource::file:
            return "file";
        case OptionSource::environment:
            return "environment";
        case OptionSource::command_line:
            return "command_line";
    }
    return "";
}

}  // namespace ddprun::launcher
