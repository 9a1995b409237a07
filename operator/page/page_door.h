// Who may see the page of a job, and what each request gets: the HTTP door of `ddpctl page` as one
// function from a request to an answer. The bytes are the shell's (page_server.h). Pure.
//
// Why the page is ddpctl's and not the job's: the job gets no HTTP parser and no door without
// encryption; the address stays when another node leads; and a page costs the job one watcher,
// however many people look at it.
//
//   /?token=TOKEN        ──▶ 303 to /s-…/ with a cookie; the token leaves the address bar
//   /s-…/ with cookie    ──▶ page, events, metrics, status.json, history.json
//   /metrics, … with "Authorization: Bearer TOKEN", or /metrics?token=TOKEN ──▶ the same, for
//                            programs
//
// Login nodes are shared, and a browser sends its cookies to all ports of a host. So the cookie
// belongs to a path that nobody else can guess, and neither cookie nor path is the token.
//
// What is checked, in this order: the Host header (a name from elsewhere that points here would let
// a foreign page read this one), the origin (pages of other sites and ports), the token, the body
// (there must be none), the method, the path. Without a token every request gets the same 401.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/secret_text.h"

namespace ddprun::launcher {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// All that a client may send in a request, in bytes: a request has no body.
inline constexpr std::size_t kRequestLimit = 8192;

struct PageRequest {
    std::string method, target;
    HttpHeaders headers;  // in the order in which they came
};

// What an answer with code 200 shows (page_board.h).
enum class PageContent { page, events, metrics, openmetrics, status_json, history_json };

struct PageAnswer {
    int status = 200;
    HttpHeaders headers;
    std::string body;                         // of all but 200
    std::optional<PageContent> content = {};  // of 200
};

class PageDoor {
  public:
    // `hosts`: names by which it may be called, as a Host header has them without the port:
    // "127.0.0.1", "[::1]", "localhost". `port` is part of the cookie's name, because two pages on
    // one host share a browser's cookies. `page_policy`: the Content-Security-Policy of the page.
    // `start`: random bytes of this start. Whoever takes the port while the page is away gets the
    // cookies of pages that are still open; they are worth nothing at the next start, also with the
    // same token.
    PageDoor(const SecretText& token, std::string_view start, std::vector<std::string> hosts,
             int port, std::string page_policy);

    PageAnswer answer(const PageRequest& request) const;
    // For bytes that are no request: 400, 413, 431, or 503.
    PageAnswer refusal(int status, std::string_view sentence) const;

    const std::string& path() const { return path_; }  // "/s-0f3a…/"

  private:
    enum class Right { none, query, cookie, bearer };
    Right right_of(const PageRequest& request) const;
    PageAnswer content_at(std::string_view path, const PageRequest& request) const;

    SecretText token_;
    std::vector<std::string> hosts_;
    std::string page_policy_, path_, cookie_name_, cookie_;
};

// The token as it stands in a URL.
std::string percent_encoded(std::string_view text);

}  // namespace ddprun::launcher
