// Writes -h, --help and the manual page from the option table and the manual's sections.
#include "launcher/options/option_text.h"

#include "base/command_line/text_parts.h"
#include "launcher/options/manual_sections.h"
#include "launcher/options/option_table.h"

namespace ddprun::launcher {
namespace {

constexpr const char* kUsage =
    "Usage: srun ddprun [OPTIONS] PROGRAM [ARGUMENTS]\n"
    "       ddprun --standalone [OPTIONS] PROGRAM [ARGUMENTS]\n";
constexpr const char* kInBrief =
    "Starts one worker for each GPU on every node, and restarts all workers when one fails. "
    "PROGRAM "
    "is a Python script or any other program; everything after it is passed to it.";
constexpr const char* kMoreThanBrief =
    "\nMore:\n"
    "  ddprun --help                     these options in full, exit codes\n"
    "  ddprun --help-all                 all options; torchrun's work as well\n"
    "  ddprun --print-man | man -l -     also files, environment variables and signals\n";
constexpr const char* kMoreThanShort =
    "\n--help-all has all options. The manual page, ddprun --print-man | man -l -, also has "
    "files,\n"
    "environment variables and signals.\n";
constexpr std::size_t kBriefExamples = 3;

// The two paragraphs at the top of --help and of the manual page.
constexpr const char* kWhat =
    "Starts one worker for each GPU on every node, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR "
    "and MASTER_PORT. When one worker fails, all are started again. A PROGRAM whose name ends in "
    ".py is run with Python. Options end at PROGRAM: everything after it goes to the program.";
constexpr const char* kSpelling =
    "ddprun takes torchrun's options and has some more. In names, _ and - are the same. An option "
    "may be abbreviated as long as the abbreviation fits one option only. PET_NNODES=2 means "
    "--nnodes=2, and so on. If you do not set OMP_NUM_THREADS, it is each worker's share of the "
    "CPUs; torchrun's is 1, which leaves the other CPUs idle. Called by the name torchrun (a "
    "link), ddprun has torchrun's defaults for --nproc-per-node, --max-restarts and "
    "OMP_NUM_THREADS, and runs every program with Python unless --no-python is given.";

}  // namespace

std::string brief_help() {
    std::string text = kUsage;
    append_wrapped(text, kInBrief, 0, kColumns);
    text += "\n\nOptions:\n";
    for (const OptionRow& row : option_table())
        if (!row.brief.empty()) append_brief_option(text, row);
    const ManualSection& examples = manual_sections().front();
    text += "\nExamples:\n";
    for (const ManualRow& row : examples.rows.first(kBriefExamples)) append_manual_row(text, row);
    return text + kMoreThanBrief;
}

std::string help_text(HelpLength length) {
    std::string text = kUsage;
    const bool all = length == HelpLength::all;
    append_wrapped(text, kWhat, 0, kColumns);
    if (all) append_wrapped(text, kSpelling, 0, kColumns);
    text += '\n';
    for (const OptionGroup& group : option_groups()) {
        std::string rows;
        for (const OptionRow& row : group.rows)
            if (all || !row.brief.empty()) append_option(rows, row);
        if (!rows.empty()) text += "\n" + std::string(group.title) + ":\n" + rows;
    }
    for (const ManualSection& section : manual_sections()) {
        if (!all && !section.in_short_help) continue;
        text += "\n" + std::string(section.title) + ":\n";
        for (const ManualRow& row : section.rows) append_manual_row(text, row);
    }
    return all ? text : text + kMoreThanShort;
}

std::string man_page(std::string_view version) {
    std::string text =
        ".TH DDPRUN 1 \"\" \"ddprun " + std::string(version) +
        "\" \"User Commands\"\n.SH NAME\nddprun \\- start the workers of a training job on all "
        "nodes, and again when one fails\n.SH SYNOPSIS\n"
        ".B srun ddprun\n[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n.br\n"
        ".B ddprun \\-\\-standalone\n[\\fIOPTIONS\\fR] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n.SH "
        "DESCRIPTION\n" +
        roff(kWhat) + "\n.PP\n" + roff(kSpelling) + "\n.SH OPTIONS\n";
    for (const OptionGroup& group : option_groups()) {
        text += ".SS " + std::string(group.title) + "\n";
        for (const OptionRow& row : group.rows) text += man_option(row);
    }
    for (const ManualSection& section : manual_sections()) {
        text += ".SH " + std::string(section.heading) + "\n";
        for (const ManualRow& row : section.rows) text += man_row(row);
    }
    return text;
}

}  // namespace ddprun::launcher
