// Puts the page together: who asks, who serves, and what is printed (page_commands.h).
#include "operator/page/page_commands.h"

#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/command_line/plain_values.h"
#include "base/hexadecimal.h"
#include "base/printable.h"
#include "base/system/boot_clock.h"
#include "base/system/random_bytes.h"
#include "operator/ddpctl/print_parts.h"
#include "operator/page/job_follower.h"
#include "operator/page/metrics_text.h"
#include "operator/page/page_server.h"
#include "rendezvous/secret/secret.h"

namespace ddprun::launcher {
namespace {

namespace asio = boost::asio;

constexpr Duration kLookWithin = std::chrono::seconds{5};
constexpr std::size_t kTokenBytes = 16;

Result<SecretText> token_of(const CtlCall& call) {
    if (!call.has("token-file")) {
        return SecretText::out_of(hexadecimal_of(random_bytes(kTokenBytes)));
    }
    auto token = rendezvous::read_secret_file(call.value("token-file"));
    if (token) return token;
    // The reader's sentence begins with the option that it usually is for.
    std::string sentence = token.error().sentence();
    constexpr std::string_view kOther = "--secret-file: ";
    if (sentence.starts_with(kOther)) sentence.erase(0, kOther.size());
    return usage_error("--token-file: " + sentence);
}

// "127.0.0.1", "[::1]": as it stands in a URL.
std::string in_url(const std::string& address) {
    return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

std::string host_name() {
    char host[256] = {};
    return ::gethostname(host, sizeof host - 1) == 0 && host[0] ? host : "THIS-HOST";
}

// With a token of the user's own, the token is not printed: this output may stand in a log.
std::string words_for_user(const CtlCall& call, const ListenAt& at, int port,
                           const SecretText& token, const std::string& job) {
    const std::string door = in_url(at.address) + ":" + std::to_string(port);
    const bool own = call.has("token-file");
    const std::string url =
        "http://" + door + "/?token=" + (own ? "" : percent_encoded(std::string_view(token)));
    if (call.has("json"))
        return json_text({{"format", "ddpctl page"},
                          {"version", 1},
                          {"url", url},
                          {"address", at.address},
                          {"port", port}},
                         -1);
    std::string text = url + "\n";
    if (own)
        text +=
            "the token, to be put behind it, is in " + printable(call.value("token-file")) + "\n";
    text += "shows job " + printable(job) + " until Ctrl-C, to whoever has this address\n";
    const std::string number = std::to_string(port);
    if (at.is_loopback)
        text += "from another machine, first: ssh -N -L " + number + ":" + door + " " +
                printable(host_name()) + "\n";
    else
        text +=
            "it is not encrypted: whoever can read the network up to here can read page and "
            "token; --listen=127.0.0.1:" +
            number + " and ssh -L are safer\n";
    return text;
}

}  // namespace

Result<ListenAt> read_listen(const std::string& text) {
    ListenAt at;
    if (text.empty()) return at;
    const auto parts = read_host_port(text);
    if (!parts) return usage_error("--listen=" + text + ": " + parts.error().sentence());
    if (!parts->host.empty() && parts->host != "localhost") at.address = parts->host;
    at.port = parts->port.value_or(0);
    boost::system::error_code error;
    const auto ip = asio::ip::make_address(at.address, error);
    if (error)
        return usage_error("--listen=" + text +
                           ": not an IP address; give ADDRESS:PORT, such as "
                           "127.0.0.1:8090");
    if (ip.is_unspecified())
        return usage_error("--listen=" + text +
                           ": give one address of this host; a page that is served under all of "
                           "them could not refuse a false name");
    at.is_loopback = ip.is_loopback();
    at.address = ip.to_string();
    return at;
}

Error serve_page(const CtlCall& call, std::string_view version,
                 const std::function<bool(const std::string&)>& print) {
    const auto at = read_listen(call.value("listen"));
    if (!at) return at.error();
    const auto token = token_of(call);
    if (!token) return token.error();
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    // A wrong secret would never become right.
    if (const auto first = job->connect(kLookWithin);
        !first && first.error().code() == ErrorCode::refused)
        return first.error();

    asio::io_context loop(1);
    auto acceptor = listen_for_page(loop, at->address, at->port);
    if (!acceptor) return acceptor.error();
    const int port = acceptor->local_endpoint().port();
    const PageDoor door(*token, random_bytes(kTokenBytes), {in_url(at->address), "localhost"}, port,
                        page_policy());
    PageBoard board{std::string(version)};
    board.tell_ledger(job->job(), {});
    PageServer server(loop, door, board);
    const std::string name = job->job().name;
    JobFollower follower(loop, std::move(*job),
                         {[&](PageView::Link link, const std::string& why) {
                              board.tell_link(link, why, day_now());
                              server.wake();
                          },
                          [&](const control::StatusReply& status, std::optional<double> steps) {
                              board.tell_status(status, steps);
                              server.wake();
                          },
                          [&](const FoundJob& found, rendezvous::LedgerHistory history) {
                              board.tell_ledger(found, std::move(history));
                              server.wake();
                          }});
    server.start(std::move(*acceptor));
    if (auto started = follower.start(); !started) return started.error();
    if (!print(words_for_user(call, *at, port, *token, name))) std::_Exit(0);
    // Who asks may wait for a network that hangs, so the process does not wait for it.
    asio::signal_set stops(loop, SIGINT, SIGTERM);
    stops.async_wait([](const boost::system::error_code&, int) { std::_Exit(0); });
    loop.run();
    return {ErrorCode::internal, "the page has stopped without a reason"};
}

Result<std::string> ask_metrics(const CtlCall& call, std::string_view version) {
    if (call.has("json"))
        return usage_error(
            "ddpctl metrics prints Prometheus's format; for JSON see ddpctl status "
            "and ddpctl history");
    auto job = AskedJob::find(call);
    if (!job) return job.error();
    PageView view;
    auto asked = job->status(kLookWithin);
    if (asked) {
        view.link = PageView::Link::answers;
        view.status = std::move(*asked);
    } else if (asked.error().code() == ErrorCode::refused) {
        return asked.error();
    } else {
        view.link = link_after(asked.error(), job->job());
    }
    view.job = job->job();
    if (auto news = read_ledger(view.job, -1)) {
        view.job = std::move(news->job);
        view.history = std::move(news->history);
    }
    return metrics_text(view, day_now(), version, MetricsFormat::prometheus);
}

}  // namespace ddprun::launcher
