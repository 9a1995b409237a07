// Fuzz target: the HTTP door of ddpctl page under any request. Whoever has neither token nor cookie
// gets nothing, whatever else he sends; and no answer has more lines or bytes than it should.
//
// The input is a request as text: method and target in the first line, then a header a line. The
// words TOKEN, COOKIE and /PATH/ stand for the right ones, since no fuzzer would find them.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "operator/page/page_door.h"

namespace {

using namespace ddprun::launcher;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

void require(bool holds) {
    if (!holds) std::abort();
}

const PageDoor& door() {
    static const PageDoor one(kToken, "a start", {"127.0.0.1", "localhost"}, 8090,
                              "default-src 'none'");
    return one;
}

std::string header(const PageAnswer& answer, const std::string& name) {
    for (const auto& [one, value] : answer.headers)
        if (one == name) return value;
    return "";
}

// "ddpctl_page_8090=…", as the door sets it.
const std::string& cookie() {
    static const std::string one = [] {
        const std::string set = header(
            door().answer({"GET", std::string("/?token=") + kToken, {{"Host", "localhost"}}}),
            "Set-Cookie");
        return set.substr(0, set.find(';'));
    }();
    return one;
}

std::string replaced(std::string text, const std::string& word, const std::string& by) {
    for (std::size_t at = text.find(word); at != std::string::npos;
         at = text.find(word, at + by.size()))
        text.replace(at, word.size(), by);
    return text;
}

std::string next_line(std::string& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = text.substr(0, end);
    text.erase(0, std::min(end + 1, text.size()));
    return line;
}

std::string decoded(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size()) {
            plain += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
            i += 2;
        } else {
            plain += text[i];
        }
    }
    return plain;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    text = replaced(text, "/PATH/", door().path());
    text = replaced(text, "COOKIE", cookie());
    text = replaced(text, "TOKEN", kToken);
    const std::string whole = text;
    PageRequest request;
    const std::string first = next_line(text);
    const std::size_t blank = std::min(first.find(' '), first.size());
    request.method = first.substr(0, blank);
    request.target = first.substr(std::min(blank + 1, first.size()));
    while (!text.empty()) {
        const std::string line = next_line(text);
        const std::size_t colon = std::min(line.find(": "), line.size());
        request.headers.emplace_back(line.substr(0, colon),
                                     line.substr(std::min(colon + 2, line.size())));
    }

    const PageAnswer answer = door().answer(request);
    require(answer.content.has_value() == (answer.status == 200));
    require(answer.content.has_value() == answer.body.empty());
    require(answer.body.size() < 1000 && answer.body.find('\n') + 1 == answer.body.size());
    for (const auto& [name, value] : answer.headers)
        require((name + value).find_first_of("\r\n") == std::string::npos);
    require(header(answer, "X-Content-Type-Options") == "nosniff");
    require(header(answer, "Set-Cookie").empty() == (answer.status != 303));
    if (answer.status != 200 && answer.status != 303 && answer.status != 404 &&
        answer.status != 405 && answer.status != 413) {
        require(answer.status == 400 || answer.status == 401 || answer.status == 403 ||
                answer.status == 421);
        return 0;
    }
    // Only to who has shown one of the two.
    require(whole.find(cookie()) != std::string::npos || whole.find(kToken) != std::string::npos ||
            decoded(whole).find(kToken) != std::string::npos);
    if (answer.status != 200 && answer.status != 303) return 0;
    require(request.method == "GET");
    for (const auto& [name, value] : request.headers)
        if (name == "Origin") require(value.size() > 7 && value.find("evil") == std::string::npos);
    return 0;
}
