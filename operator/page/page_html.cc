// Puts the page together from its files (page_board.h).
#include <openssl/evp.h>

#include <array>
#include <string_view>

#include "operator/page/page_board.h"
#include "operator/page/page_files.h"

namespace ddprun::launcher {
namespace {

// As the policy names a script: 'sha256-…' of its bytes, in base64.
std::string digest(std::string_view text) {
    std::array<unsigned char, 32> sum{};
    DDPRUN_CHECK(EVP_Digest(text.data(), text.size(), sum.data(), nullptr, EVP_sha256(), nullptr),
                 "SHA-256 needs nothing");
    std::array<unsigned char, 45> base64{};
    EVP_EncodeBlock(base64.data(), sum.data(), static_cast<int>(sum.size()));
    return "'sha256-" + std::string(reinterpret_cast<const char*>(base64.data())) + "'";
}

// Inside <script> only "</script" and "<!--" mean something, and neither does without its "<".
std::string inside_script(const std::string& json) {
    std::string safe;
    safe.reserve(json.size());
    for (const char c : json) {
        if (c == '<')
            safe += "\\u003c";
        else
            safe += c;
    }
    return safe;
}

}  // namespace

std::string page_html(const std::string& status_json, const std::string& history_json) {
    std::string html;
    html.reserve(kPageHtml.size() + kPageStyle.size() + kPageScript.size() + status_json.size() +
                 history_json.size());
    // The file names each part once, in curly brackets.
    std::string_view rest = kPageHtml;
    while (!rest.empty()) {
        const std::size_t begin = rest.find("{{");
        html += rest.substr(0, begin);
        if (begin == std::string_view::npos) break;
        const std::size_t end = rest.find("}}", begin);
        const std::string_view name = rest.substr(begin + 2, end - begin - 2);
        if (name == "style")
            html += kPageStyle;
        else if (name == "script")
            html += kPageScript;
        else
            html += inside_script(name == "status" ? status_json : history_json);
        rest.remove_prefix(end + 2);
    }
    return html;
}

std::string page_policy() {
    return "default-src 'none'; style-src " + digest(kPageStyle) + "; script-src " +
           digest(kPageScript) +
           "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
}

}  // namespace ddprun::launcher
