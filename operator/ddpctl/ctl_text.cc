// Writes help and manual page from the table of commands.
#include "operator/ddpctl/ctl_text.h"

#include "base/command_line/text_parts.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kWhat =
    "Shows the state of the jobs of ddprun, controls those that run, and removes the ledgers of "
    "those that have ended. It finds them by their ledgers below .ddprun in the working directory, "
    "or below --ledger. Where one job is meant, it is that of SLURM_JOB_ID, or the only one there "
    "is.";

std::string call_of(const Command& command) {
    return std::string(command.name) + (command.words.empty() ? "" : " ") +
           std::string(command.words);
}

void append_sections(std::string& text) {
    for (const ManualSection& section : ctl_sections()) {
        text += "\n" + std::string(section.title) + ":\n";
        for (const ManualRow& row : section.rows) append_manual_row(text, row);
    }
}

}  // namespace

std::string ctl_help() {
    std::string text = "Usage: ddpctl COMMAND [OPTIONS] [WORDS]\n";
    append_wrapped(text, kWhat, 0);
    text += "\n\nCommands (ddpctl COMMAND --help tells more):\n";
    for (const Command& command : commands())
        append_manual_row(text, {call_of(command), command.what});
    text += "\nOptions:\n";
    for (const OptionRow& row : rows_of_all()) append_option(text, row);
    for (const OptionRow& row : rows_without_command()) append_option(text, row);
    append_sections(text);
    return text;
}

std::string command_help(const Command& command) {
    std::string text = "Usage: ddpctl " + call_of(command) + " [OPTIONS]\n";
    append_wrapped(text, std::string(command.what) + ". " + std::string(command.help), 0);
    text += "\n\nOptions:\n";
    for (const OptionRow& row : command.rows) append_option(text, row);
    for (const OptionRow& row : rows_of_all()) append_option(text, row);
    return text;
}

std::string ctl_man_page(std::string_view version) {
    std::string text = ".TH DDPCTL 1 \"\" \"ddprun " + std::string(version) +
                       "\" \"User Commands\"\n.SH NAME\nddpctl \\- show and control the jobs of "
                       "ddprun\n.SH SYNOPSIS\n.B ddpctl\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
                       "[\\fIWORDS\\fR]\n.SH DESCRIPTION\n" +
                       roff(kWhat) + "\n.SH COMMANDS\n";
    for (const Command& command : commands()) {
        text += ".SS " + roff(call_of(command)) + "\n" + roff(command.what) + ".\n" +
                roff(command.help) + "\n";
        for (const OptionRow& row : command.rows) text += man_option(row);
    }
    text += ".SH OPTIONS\n";
    for (const OptionRow& row : rows_of_all()) text += man_option(row);
    for (const OptionRow& row : rows_without_command()) text += man_option(row);
    for (const ManualSection& section : ctl_sections()) {
        text += ".SH " + std::string(section.heading) + "\n";
        for (const ManualRow& row : section.rows) text += man_row(row);
    }
    return text;
}

std::optional<std::string> ctl_printed_text(const CtlCall& call, const Release& release) {
    if (call.has("help")) return call.command ? command_help(*call.command) : ctl_help();
    if (call.has("version")) return release_line("ddpctl", release);
    if (call.has("print-man")) return ctl_man_page(release.version);
    if (call.has("print-completion")) return ctl_completion(call.value("print-completion"));
    return std::nullopt;
}

}  // namespace ddprun::launcher
