// Two forms: for people and for collectors of logs (log_line.h).
#include "base/log_line.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/utc_text.h"

namespace ddprun {
namespace {

const char* name_of(Note::Level level) {
    switch (level) {
        case Note::Level::debug:
            return "debug";
        case Note::Level::info:
            return "info";
        case Note::Level::warn:
            return "warning";
        case Note::Level::error:
            return "error";
    }
    return "error";
}

// Only what an operator should act on is marked.
std::string mark_of(Note::Level level) {
    return level >= Note::Level::warn ? name_of(level) + std::string(": ") : "";
}

}  // namespace

std::string log_line(const LogStyle& style, Duration since_1970, const Note& note,
                     const std::string& report) {
    const std::string time = style.times || style.json ? utc_text(since_1970) : "";
    if (!style.json)
        return (time.empty() ? "" : time + " ") + style.name + ": " + mark_of(note.level) +
               printable(note.sentence) + "\n";
    nlohmann::ordered_json line = {{"time", time},
                                   {"level", name_of(note.level)},
                                   {"node", style.node},
                                   {"message", note.sentence}};
    if (!report.empty())
        line["report"] = nlohmann::ordered_json::parse(report, nullptr, /*allow_exceptions=*/false);
    // Sentences may quote bytes that are no UTF-8.
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddprun
