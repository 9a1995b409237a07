// The checks of a request, one after the other (page_door.h).
#include "operator/page/page_door.h"

#include <algorithm>
#include <cctype>

#include "base/hexadecimal.h"
#include "base/printable.h"
#include "rendezvous/identity/mac.h"

namespace ddprun::launcher {
namespace {

constexpr std::size_t kQuoted = 100;  // bytes of a foreign text in a sentence
constexpr const char* kPlain = "text/plain; charset=utf-8";

struct Place {
    std::string_view path;
    PageContent content;
    const char* type;
};
constexpr Place kPlaces[] = {
    {"", PageContent::page, "text/html; charset=utf-8"},
    {"events", PageContent::events, "text/event-stream"},
    {"metrics", PageContent::metrics, "text/plain; version=0.0.4; charset=utf-8"},
    {"status.json", PageContent::status_json, "application/json"},
    {"history.json", PageContent::history_json, "application/json"},
};

bool same_name(std::string_view a, std::string_view b) {
    return std::ranges::equal(
        a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// All values of a header: a request that has one twice means two things.
std::vector<std::string_view> values(const PageRequest& request, std::string_view name) {
    std::vector<std::string_view> found;
    for (const auto& [one, value] : request.headers)
        if (same_name(one, name)) found.push_back(value);
    return found;
}

// Of "localhost:8080" and "[::1]:8080" what stands before the port; nothing: it is neither.
std::string_view name_of_host(std::string_view host) {
    const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
    if (bracket == std::string_view::npos) return {};
    const std::size_t colon = host.find(':', bracket);
    if (colon == std::string_view::npos) return host;
    const std::string_view port = host.substr(colon + 1);
    const bool good = !port.empty() && port.size() <= 5 &&
                      std::ranges::all_of(port, [](unsigned char c) { return std::isdigit(c); });
    return good ? host.substr(0, colon) : std::string_view();
}

int digit_of(char c) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto at = kDigits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// A percent sign without two digits stands for itself; such a text is no token of ours.
std::string percent_decoded(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool coded = text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
                           digit_of(text[i + 2]) >= 0;
        plain +=
            coded ? static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2])) : text[i];
        if (coded) i += 2;
    }
    return plain;
}

// The value of `name` in "a=1&b=2" or "a=1; b=2"; nothing: it is not there.
std::optional<std::string_view> named_part(std::string_view text, std::string_view name,
                                           char between) {
    while (!text.empty()) {
        std::string_view part = text.substr(0, text.find(between));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        while (part.starts_with(' ')) part.remove_prefix(1);
        if (part.size() > name.size() && part[name.size()] == '=' && part.starts_with(name))
            return part.substr(name.size() + 1);
    }
    return std::nullopt;
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

// Why this request comes from another page; nothing: it does not. Browsers tell; other programs
// send neither header.
bool is_cross_origin(const PageRequest& request, std::string_view host) {
    for (const std::string_view site : values(request, "sec-fetch-site"))
        if (site != "none" && site != "same-origin") return true;
    for (const std::string_view origin : values(request, "origin"))
        if (!same_name(origin, "http://" + std::string(host))) return true;
    return false;
}

bool has_body(const PageRequest& request) {
    for (const std::string_view length : values(request, "content-length"))
        if (length != "0") return true;
    return !values(request, "transfer-encoding").empty();
}

bool wants_openmetrics(const PageRequest& request) {
    return std::ranges::any_of(values(request, "accept"), [](std::string_view accept) {
        return accept.find("application/openmetrics-text") != std::string_view::npos;
    });
}

std::string hex_of_mac(const SecretText& token, std::string_view what) {
    const auto mac = rendezvous::hmac_of_secret(token, what);
    return hexadecimal_of({mac.data(), mac.size()});
}

// Of every answer: nobody keeps it, guesses its type, puts it into a frame or runs what is in it.
HttpHeaders strict_headers(std::string policy) {
    return {{"Cache-Control", "no-store"},
            {"Content-Security-Policy", std::move(policy)},
            {"Cross-Origin-Opener-Policy", "same-origin"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
            {"Referrer-Policy", "no-referrer"},
            {"X-Content-Type-Options", "nosniff"},
            {"X-Frame-Options", "DENY"}};
}

}  // namespace

std::string percent_encoded(std::string_view text) {
    std::string coded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~')
            coded += c;
        else
            coded += "%" + hexadecimal(byte, 2);
    }
    return coded;
}

PageDoor::PageDoor(const SecretText& token, std::string_view start, std::vector<std::string> hosts,
                   int port, std::string page_policy)
    : token_(token),
      hosts_(std::move(hosts)),
      page_policy_(std::move(page_policy)),
      path_("/s-" + hex_of_mac(token, "ddpctl page: path" + std::string(start)).substr(0, 32) +
            "/"),
      cookie_name_("ddpctl_page_" + std::to_string(port)),
      cookie_(hex_of_mac(token, "ddpctl page: cookie" + std::string(start))) {}

PageAnswer PageDoor::refusal(int status, std::string_view sentence) const {
    PageAnswer answer{status, strict_headers("default-src 'none'; frame-ancestors 'none'"),
                      std::string(sentence) + "\n"};
    answer.headers.emplace_back("Content-Type", kPlain);
    return answer;
}

PageDoor::Right PageDoor::right_of(const PageRequest& request) const {
    const std::string_view path = path_of(request.target);
    if (path.size() < request.target.size())
        if (const auto given =
                named_part(std::string_view(request.target).substr(path.size() + 1), "token", '&'))
            return rendezvous::same_mac(percent_decoded(*given), token_) ? Right::query
                                                                         : Right::none;
    const auto claims = values(request, "authorization");
    if (!claims.empty()) {
        constexpr std::string_view kBearer = "bearer ";
        const std::string_view claim = claims.front();
        return claims.size() == 1 && same_name(claim.substr(0, kBearer.size()), kBearer) &&
                       rendezvous::same_mac(claim.substr(kBearer.size()), token_)
                   ? Right::bearer
                   : Right::none;
    }
    if (!path.starts_with(path_)) return Right::none;
    for (const std::string_view cookies : values(request, "cookie"))
        if (const auto given = named_part(cookies, cookie_name_, ';'))
            if (rendezvous::same_mac(*given, cookie_)) return Right::cookie;
    return Right::none;
}

PageAnswer PageDoor::content_at(std::string_view path, const PageRequest& request) const {
    for (const Place& place : kPlaces) {
        if (path != place.path) continue;
        const bool page = place.content == PageContent::page;
        PageAnswer answer{
            200,
            strict_headers(page ? page_policy_ : "default-src 'none'; frame-ancestors 'none'"),
            {},
            place.content};
        const bool open = place.content == PageContent::metrics && wants_openmetrics(request);
        if (open) answer.content = PageContent::openmetrics;
        answer.headers.emplace_back(
            "Content-Type",
            open ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : place.type);
        return answer;
    }
    return refusal(404, "there is nothing here; see /, /metrics, /status.json and /history.json");
}

PageAnswer PageDoor::answer(const PageRequest& request) const {
    const auto hosts = values(request, "host");
    if (hosts.size() != 1) return refusal(400, "a request has one Host header");
    const std::string_view host = hosts.front();
    const std::string_view name = name_of_host(host);
    if (!std::ranges::any_of(hosts_, [&](const auto& ours) { return same_name(ours, name); }))
        return refusal(421, "this page is not served under the name \"" +
                                printable(host.substr(0, kQuoted)) +
                                "\"; use the address that ddpctl page has printed");
    if (is_cross_origin(request, host))
        return refusal(403,
                       "another page has asked for this one, which it may not; type the address "
                       "into the address bar");
    const Right right = right_of(request);
    if (right == Right::none) {
        PageAnswer answer = refusal(
            401, "the token is missing or wrong; open the address that ddpctl page has printed");
        answer.headers.emplace_back("WWW-Authenticate", "Bearer");
        return answer;
    }
    if (has_body(request)) return refusal(413, "a request has no body here");
    if (request.method != "GET") {
        PageAnswer answer = refusal(405, "this page can only be read: GET");
        answer.headers.emplace_back("Allow", "GET");
        return answer;
    }
    // A browser that opens the page goes on with a cookie.
    if (right == Right::query && path_of(request.target) == "/") {
        PageAnswer answer = refusal(303, "see " + path_);
        answer.headers.emplace_back("Location", path_);
        answer.headers.emplace_back("Set-Cookie", cookie_name_ + "=" + cookie_ +
                                                      "; HttpOnly; SameSite=Strict; Path=" + path_);
        return answer;
    }
    std::string_view path = path_of(request.target);
    if (path.empty()) path = "?";  // no path at all
    path.remove_prefix(path.starts_with(path_) ? path_.size() : path.starts_with('/') ? 1 : 0);
    return content_at(path, request);
}

}  // namespace ddprun::launcher
