// Reads the lines of PMI-1.
#include "agent/pmi/pmi_request.h"

#include <charconv>

#include "base/printable.h"

namespace ddprun::agent::pmi {
namespace {

Error malformed(const std::string& what, std::string_view line) {
    return Error(ErrorCode::malformed, what + ": \"" + printable(line.substr(0, 80)) + "\"");
}

}  // namespace

Result<Request> Request::parse(std::string_view line) {
    Request request;
    for (std::string_view rest = line; !rest.empty();) {
        const std::size_t end = rest.find(' ');
        const std::string_view word = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (word.empty()) continue;
        const std::size_t equals = word.find('=');
        if (equals == 0) return malformed("a word has no key", line);
        // Words without a value are flags.
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
        request.words_.insert_or_assign(std::string(word.substr(0, equals)), std::string(value));
    }
    request.several_ = request.words_.contains("mcmd");
    request.command_ = request.word(request.several_ ? "mcmd" : "cmd");
    if (request.command_.empty()) return malformed("no line of PMI-1 (cmd=…)", line);
    return request;
}

std::string_view Request::word(const std::string& key) const {
    const auto found = words_.find(key);
    return found == words_.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<int> Request::number(const std::string& key) const {
    const std::string_view text = word(key);
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace ddprun::agent::pmi
