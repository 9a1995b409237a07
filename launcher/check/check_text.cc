// The report of a check as text and as JSON.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/check/check_report.h"
#include "slurm/hostlist.h"

namespace ddprun::launcher {
namespace {

constexpr std::size_t kMostLines = 20;  // findings of one row in the text; the JSON has all of them

const char* state_word(CheckRow::State state) {
    switch (state) {
        case CheckRow::State::good:
            return "good";
        case CheckRow::State::wrong:
            return "wrong";
        case CheckRow::State::skipped:
            return "skipped";
    }
    return "skipped";
}

// The text marks what is wrong in capitals, so that it is found in a long table. Programs get plain
// words.
const char* mark_of(CheckRow::State state) {
    switch (state) {
        case CheckRow::State::good:
            return "ok";
        case CheckRow::State::wrong:
            return "WRONG";
        case CheckRow::State::skipped:
            return "-";
    }
    return "-";
}

std::vector<std::string> names_of(const CheckedJob& job) {
    std::vector<std::string> names;
    for (const auto& node : job.nodes)
        if (node) names.push_back(node->name);
    return names;
}

}  // namespace

std::string check_text(const CheckReport& report) {
    // Large enough: names of rows and marks are constants.
    char line[64];
    std::snprintf(line, sizeof line, "%.1f s", report.job.seconds);
    std::size_t wrong = 0;
    std::string text =
        "ddprun has checked " + slurm::fold_hostlist(names_of(report.job)) + " in " + line + ":\n";
    for (const CheckRow& row : report.rows) {
        std::snprintf(line, sizeof line, "  %-8s %-5s  ", row.name.c_str(), mark_of(row.state));
        text += line + row.sentence + "\n";
        for (std::size_t i = 0; i < row.findings.size(); ++i) {
            if (i == kMostLines) {
                text += "                    and " + std::to_string(row.findings.size() - i) +
                        " more (--check=json has all)\n";
                break;
            }
            text += "                    " + row.findings[i] + "\n";
        }
        wrong += row.findings.size();
    }
    return text + (wrong == 0   ? "Nothing is wrong.\n"
                   : wrong == 1 ? "One thing is wrong.\n"
                                : std::to_string(wrong) + " things are wrong.\n");
}

std::string check_json(const CheckReport& report) {
    using Json = nlohmann::ordered_json;
    Json rows = Json::array();
    for (const CheckRow& row : report.rows)
        rows.push_back({{"name", row.name},
                        {"state", state_word(row.state)},
                        {"sentence", row.sentence},
                        {"findings", row.findings}});
    const Json all = {{"format", "ddprun check"},
                      {"version", kCheckJsonVersion},
                      {"good", report.good()},
                      {"run_id", report.job.run_id},
                      {"nodes_wanted", report.job.nodes_wanted},
                      {"nodes", names_of(report.job)},
                      {"seconds", report.job.seconds},
                      {"checks", std::move(rows)}};
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun::launcher
