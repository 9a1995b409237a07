// Who may see the page: requests as browsers, programs and strangers send them.
#include "operator/page/page_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprun::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kToken = "0123+/456789abcdef=";
const PageDoor& door() {
    static const PageDoor one(kToken, "a start", {"127.0.0.1", "localhost"}, 8090, "the policy");
    return one;
}

PageRequest get(const std::string& target, HttpHeaders more = {}) {
    PageRequest request{"GET", target, {{"Host", "127.0.0.1:8090"}}};
    request.headers.insert(request.headers.end(), more.begin(), more.end());
    return request;
}
PageRequest with_token(const std::string& target, HttpHeaders more = {}) {
    more.emplace_back("Authorization", "Bearer " + std::string(kToken));
    return get(target, std::move(more));
}
std::string header(const PageAnswer& answer, const std::string& name) {
    for (const auto& [one, value] : answer.headers)
        if (one == name) return value;
    return "";
}
// What a browser has after it was let in: "ddpctl_page_8090=…".
std::string cookie() {
    const PageAnswer in = door().answer(get("/?token=0123%2b%2F456789abcdef%3d"));
    const std::string set = header(in, "Set-Cookie");
    return set.substr(0, set.find(';'));
}

// The token is in the address bar once, and in no cookie and no path.
TEST(PageDoor, TurnsTheTokenIntoACookieOfItsOwnPath) {
    const PageAnswer in = door().answer(get("/?token=0123%2b%2F456789abcdef%3d"));
    EXPECT_EQ(in.status, 303);
    EXPECT_EQ(header(in, "Location"), door().path());
    EXPECT_THAT(door().path(), testing::MatchesRegex("/s-[0-9a-f]+/"));
    const std::string set = header(in, "Set-Cookie");
    EXPECT_THAT(set, StartsWith("ddpctl_page_8090="));
    EXPECT_THAT(set, HasSubstr("; HttpOnly; SameSite=Strict; Path=" + door().path()));
    EXPECT_THAT(set + door().path(), Not(HasSubstr("456789abcdef")));
    EXPECT_THAT(door().path().size(), 36) << "nobody guesses it";
}

TEST(PageDoor, ShowsEachThingToWhoeverHasTheCookie) {
    const std::pair<const char*, PageContent> all[] = {
        {"", PageContent::page},
        {"events", PageContent::events},
        {"metrics", PageContent::metrics},
        {"status.json", PageContent::status_json},
        {"history.json?x=1", PageContent::history_json}};
    for (const auto& [name, content] : all) {
        const auto answer =
            door().answer(get(door().path() + name, {{"Cookie", "a=b; " + cookie()}}));
        EXPECT_EQ(answer.status, 200) << name;
        EXPECT_EQ(answer.content, content) << name;
    }
    EXPECT_EQ(door().answer(get(door().path() + "x", {{"Cookie", cookie()}})).status, 404);
}

TEST(PageDoor, ShowsEachThingToAProgramWithTheToken) {
    EXPECT_EQ(door().answer(with_token("/")).content, PageContent::page);
    EXPECT_EQ(door().answer(with_token("/metrics")).content, PageContent::metrics);
    const auto open = door().answer(
        with_token("/metrics", {{"Accept", "application/openmetrics-text;version=1.0.0,*/*"}}));
    EXPECT_EQ(open.content, PageContent::openmetrics);
    EXPECT_THAT(header(open, "Content-Type"), StartsWith("application/openmetrics-text; version="));
    EXPECT_EQ(
        door().answer(get("/metrics", {{"authorization", "bearer " + std::string(kToken)}})).status,
        200);
    EXPECT_EQ(door().answer(with_token("/passwd")).status, 404);
    EXPECT_EQ(door().answer(with_token("//")).status, 404);
    EXPECT_EQ(door().answer(with_token("")).status, 404);
}

// As programs ask that cannot send a header. Only the page makes a cookie of it.
TEST(PageDoor, TakesTheTokenInTheQueryOfEveryPath) {
    const std::string token = "?a=b&token=0123%2b%2F456789abcdef%3d";
    const PageAnswer metrics = door().answer(get("/metrics" + token));
    EXPECT_EQ(metrics.content, PageContent::metrics);
    EXPECT_EQ(header(metrics, "Set-Cookie"), "");
    EXPECT_EQ(door().answer(get("/status.json" + token)).content, PageContent::status_json);
    EXPECT_EQ(door().answer(get("/nothing" + token)).status, 404);
    EXPECT_EQ(door().answer(get("/" + token)).status, 303);
}

// Everybody without the token gets the same, whatever there is.
TEST(PageDoor, TellsNothingToWhoHasNoToken) {
    const std::string first = door().answer(get("/")).body;
    const PageRequest all[] = {
        get("/metrics"),
        get("/nothing"),
        get(door().path()),
        get("/?token="),
        get("/?token=0123"),
        get("/?token=0123%2b%2F456789abcdef%3e"),
        get("/?token=%"),
        get("/metrics?token=0123%2b%2F456789abcdef%3e"),
        get("/metrics?a=b"),
        get(door().path() + "?token=0123"),
        get("/metrics", {{"Authorization", "Basic " + std::string(kToken)}}),
        get("/metrics", {{"Authorization", "Bearer"}}),
        get("/metrics", {{"Authorization", "Bearer " + std::string(kToken) + "x"}}),
        get("/metrics", {{"Authorization", "Bearer " + std::string(kToken)},
                         {"Authorization", "Bearer wrong"}}),
        // A cookie is worth nothing outside its path, under another name or cut short.
        get("/metrics", {{"Cookie", cookie()}}),
        get(door().path(), {{"Cookie", "x" + cookie()}}),
        get(door().path(), {{"Cookie", cookie().substr(0, cookie().size() - 1)}}),
        get(door().path(), {{"Cookie", "ddpctl_page_8090"}}),
        {"POST", "/metrics", {{"Host", "localhost"}}},
        get("/metrics", {{"Content-Length", "5"}})};
    for (const PageRequest& request : all) {
        const PageAnswer answer = door().answer(request);
        EXPECT_EQ(answer.status, 401) << request.target;
        EXPECT_EQ(answer.body, first);
        EXPECT_EQ(header(answer, "WWW-Authenticate"), "Bearer");
        EXPECT_FALSE(answer.content);
    }
}

// A foreign name that points here would make a foreign page and this one the same origin.
TEST(PageDoor, IsServedUnderItsOwnNamesOnly) {
    const auto at = [](const std::string& host) {
        return door().answer(
            {"GET", "/", {{"Host", host}, {"Authorization", "Bearer " + std::string(kToken)}}});
    };
    for (const char* good : {"127.0.0.1", "127.0.0.1:1", "localhost:8080", "LOCALHOST"})
        EXPECT_EQ(at(good).status, 200) << good;
    for (const char* bad :
         {"evil.example", "evil.example:8090", "127.0.0.1.evil.example", "localhost:", "[::1]",
          "localhost:80a", "localhost:123456", "", "user@localhost", "[", "[localhost]"})
        EXPECT_EQ(at(bad).status, 421) << bad;
    EXPECT_THAT(at("evil.example").body, HasSubstr("under the name \"evil.example\""));
    EXPECT_THAT(at("a\x1b[2J" + std::string(5000, 'x')).body.size(), testing::Lt(300));
    EXPECT_THAT(at("a\x1b]b").body, Not(HasSubstr("\x1b")));
    EXPECT_EQ(door().answer({"GET", "/", {}}).status, 400);
    EXPECT_EQ(door().answer({"GET", "/", {{"Host", "localhost"}, {"Host", "localhost"}}}).status,
              400);
    const PageDoor other(kToken, "a start", {"[::1]"}, 1, "");
    EXPECT_EQ(other.answer({"GET", "/", {{"Host", "[::1]:1"}}}).status, 401);
    EXPECT_EQ(other.answer({"GET", "/", {{"Host", "[::1]"}}}).status, 401);
}

// Other ports of localhost belong to others on a login node, so they are foreign, too.
TEST(PageDoor, IsNotReadByOtherPages) {
    for (const char* site : {"cross-site", "same-site", "anything"})
        EXPECT_EQ(door().answer(with_token("/", {{"Sec-Fetch-Site", site}})).status, 403) << site;
    for (const char* site : {"none", "same-origin"})
        EXPECT_EQ(door().answer(with_token("/", {{"Sec-Fetch-Site", site}})).status, 200) << site;
    for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:8091",
                               "https://127.0.0.1:8090", "http://localhost:8090"})
        EXPECT_EQ(door().answer(with_token("/", {{"Origin", origin}})).status, 403) << origin;
    EXPECT_EQ(door().answer(with_token("/", {{"Origin", "http://127.0.0.1:8090"}})).status, 200);
}

TEST(PageDoor, CanOnlyBeRead) {
    for (const char* method : {"POST", "HEAD", "OPTIONS", "DELETE", "get", "BREW", ""}) {
        PageRequest request = with_token("/");
        request.method = method;
        const PageAnswer answer = door().answer(request);
        EXPECT_EQ(answer.status, 405) << method;
        EXPECT_EQ(header(answer, "Allow"), "GET");
    }
    EXPECT_EQ(door().answer(with_token("/", {{"Content-Length", "1"}})).status, 413);
    EXPECT_EQ(door().answer(with_token("/", {{"Transfer-Encoding", "chunked"}})).status, 413);
    EXPECT_EQ(door().answer(with_token("/", {{"Content-Length", "0"}})).status, 200);
}

TEST(PageDoor, ForbidsABrowserAllThatIsNotNeeded) {
    for (const PageAnswer& answer : {door().answer(with_token("/")), door().answer(get("/")),
                                     door().answer(with_token("/x")), door().refusal(400, "no")}) {
        EXPECT_EQ(header(answer, "X-Content-Type-Options"), "nosniff");
        EXPECT_EQ(header(answer, "Referrer-Policy"), "no-referrer");
        EXPECT_EQ(header(answer, "Cache-Control"), "no-store");
        EXPECT_EQ(header(answer, "X-Frame-Options"), "DENY");
        EXPECT_EQ(header(answer, "Cross-Origin-Resource-Policy"), "same-origin");
        EXPECT_EQ(header(answer, "Access-Control-Allow-Origin"), "");
        const bool page = answer.content == PageContent::page;
        EXPECT_EQ(header(answer, "Content-Security-Policy"),
                  page ? "the policy" : "default-src 'none'; frame-ancestors 'none'");
    }
}

// A cookie that somebody has got by taking the port is worth nothing at the next start.
TEST(PageDoor, HasAnotherPathAndCookieForEachTokenAndStart) {
    EXPECT_NE(PageDoor("another token", "a start", {"localhost"}, 8090, "").path(), door().path());
    const PageDoor next(kToken, "the next start", {"127.0.0.1"}, 8090, "");
    EXPECT_NE(next.path(), door().path());
    EXPECT_EQ(next.answer(get(next.path(), {{"Cookie", cookie()}})).status, 401);
    EXPECT_EQ(percent_encoded("a+/=~%"), "a%2b%2f%3d~%25");
}

}  // namespace
}  // namespace ddprun::launcher
