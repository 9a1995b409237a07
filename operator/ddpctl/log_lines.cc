// Cuts text into lines, and prints them in three forms (log_lines.h).
#include "operator/ddpctl/log_lines.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"

namespace ddprun::launcher {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

// A \r at the very end may belong to a \n that has not come yet.
std::vector<LogLine> LogLines::take(bool is_err, std::string_view bytes) {
    std::vector<LogLine> lines;
    std::string& open = open_[is_err];
    open += bytes;
    std::size_t begin = 0;
    for (std::size_t at; (at = open.find_first_of("\r\n", begin)) != open.npos;) {
        if (open[at] == '\r' && at + 1 == open.size()) break;
        const std::size_t size = open[at] == '\r' && open[at + 1] == '\n' ? 2 : 1;
        lines.push_back({is_err, open.substr(begin, at - begin), open.substr(at, size)});
        begin = at + size;
    }
    open.erase(0, begin);
    while (open.size() > kLongest) {
        lines.push_back({is_err, open.substr(0, kLongest), ""});
        open.erase(0, kLongest);
    }
    return lines;
}

std::vector<LogLine> LogLines::unfinished() {
    std::vector<LogLine> lines;
    for (const bool is_err : {false, true}) {
        std::string& open = open_[is_err];
        const bool returns = open.ends_with('\r');
        std::string text = open.substr(0, open.size() - (returns ? 1 : 0));
        open = returns ? "\r" : "";
        if (!text.empty()) lines.push_back({is_err, std::move(text), ""});
    }
    return lines;
}

void LogPrinter::begin(const std::string& node, int rank, std::int64_t generation) {
    node_ = printable(node);
    rank_ = rank;
    generation_ = generation;
}

std::string LogPrinter::break_line() {
    const Stands stood = std::exchange(stands_, Stands::at_begin);
    if (form_ == LogForm::json || stood == Stands::at_begin) return {};
    return "\n";
}

// Where a bar stands, the line is cleared first: a shorter text must not end in the rest of the
// bar.
std::string LogPrinter::text(const LogLine& line) {
    if (form_ == LogForm::json) return json(line);
    std::string text;
    if (stands_ == Stands::in_line && is_err_ != line.is_err) text = break_line();
    const bool goes_on = stands_ == Stands::in_line;
    const bool clears = form_ == LogForm::terminal && stands_ == Stands::on_bar;
    is_err_ = line.is_err;
    stands_ = line.end.empty()   ? Stands::in_line
              : line.end == "\r" ? Stands::on_bar
                                 : Stands::at_begin;
    if (form_ == LogForm::plain) return text + line.text + line.end;
    if (clears) text += "\x1b[K";
    if (!goes_on) text += "[" + node_ + ":" + std::to_string(rank_) + "]:";
    return text + printable(line.text) + (line.end == "\r\n" ? "\n" : line.end);
}

std::string LogPrinter::json(const LogLine& line) const {
    Json json{{"rank", rank_},
              {"generation", generation_},
              {"node", node_},
              {"stream", line.is_err ? "stderr" : "stdout"},
              {"line", line.text}};
    if (line.end.empty()) json["unfinished"] = true;
    return line_of(json);
}

std::string LogPrinter::note(const std::string& event, const std::string& sentence,
                             std::int64_t lost_lines, std::int64_t lost_bytes) const {
    if (form_ != LogForm::json) return {};
    Json json{{"rank", rank_}, {"generation", generation_}, {"node", node_}, {"event", event}};
    if (lost_lines >= 0) json["lost_lines"] = lost_lines;
    if (lost_bytes >= 0) json["lost_bytes"] = lost_bytes;
    json["sentence"] = printable(sentence);
    return line_of(json);
}

}  // namespace ddprun::launcher
