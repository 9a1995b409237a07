// The rendezvous alone: ddprun-rendezvous serves one job's rendezvous from outside the job, and
// ends with its verdict.
//
//   ddprun-rendezvous --listen=ADDR:PORT --nnodes=N|MIN:MAX --rdzv-id=ID
//   [--ledger=memory|directory:PATH]
//                     [--max-restarts=N|auto] [--lease=SECONDS] [--join-timeout=SECONDS]
//                     [--last-call=SECONDS]
//
// One thread, one loop, and the file thread where the ledger is a folder. Exit codes: the job's
// (design 4.5), 2 for a wrong option, 69 when it cannot serve, 128+n when signal n stops it.
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>

#include "rendezvous/ledger_directory.h"
#include "rendezvous/ledger_memory.h"
#include "rendezvous/service.h"

namespace ddprun::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kUsage = 2;
constexpr int kUnavailable = 69;

struct Options {
    asio::ip::tcp::endpoint listen;
    std::string run_id;
    std::string ledger_folder;  // empty: memory
    Limits limits;
};

void say(const Note& note) {
    if (note.level == Note::Level::debug) return;
    const char* level = note.level == Note::Level::info   ? ""
                        : note.level == Note::Level::warn ? "warning: "
                                                          : "error: ";
    std::fprintf(stderr, "ddprun-rendezvous: %s%s\n", level, note.sentence.c_str());
}

Error wrong(std::string_view option, std::string_view value, const char* expected) {
    return Error(ErrorCode::usage,
                 std::string(option) + "=" + std::string(value) + ": " + expected);
}

// ---- options

constexpr const char* kHelp =
    "ddprun-rendezvous: the rendezvous of one job, outside the job\n\n"
    "  --listen=ADDRESS:PORT       where nodes call (needed)\n"
    "  --rdzv-id=ID                the run whose nodes are taken (needed)\n"
    "  --nnodes=N|MIN:MAX          how many nodes make a generation [1]\n"
    "  --ledger=memory|directory:PATH  where generations are recorded [memory]\n"
    "  --max-restarts=N|auto       worker failures after which all start again [auto: 3 once there "
    "was progress]\n"
    "  --lease=SECONDS             how long a silent node stays a member [10]\n"
    "  --join-timeout=SECONDS      how long too few nodes are waited for [600]\n"
    "  --last-call=SECONDS         how long more than MIN are waited for at the start [30]\n";

bool read_int(std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_seconds(std::string_view text, Duration& value, double least) {
    double seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds))
        return false;
    if (seconds < least || seconds > 365.0 * 24 * 3600) return false;
    value = Duration{static_cast<Duration::rep>(seconds * 1e9)};
    return true;
}

bool read_listen(std::string_view text, asio::ip::tcp::endpoint& endpoint) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return false;
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    int port = 0;
    error_code error;
    const auto address = host.empty() ? asio::ip::address(asio::ip::address_v6::any())
                                      : asio::ip::make_address(std::string(host), error);
    if (error || !read_int(text.substr(colon + 1), port) || port < 0 || port > 65535) return false;
    endpoint = {address, static_cast<std::uint16_t>(port)};
    return true;
}

bool read_nodes(std::string_view text, Limits& limits) {
    const std::size_t colon = text.find(':');
    const std::string_view most = colon == std::string_view::npos ? text : text.substr(colon + 1);
    return read_int(text.substr(0, colon), limits.min_nodes) && read_int(most, limits.max_nodes) &&
           limits.min_nodes >= 1 && limits.min_nodes <= limits.max_nodes;
}

bool read_ledger(std::string_view text, std::string& folder) {
    constexpr std::string_view kDirectory = "directory:";
    if (text.starts_with(kDirectory)) folder = text.substr(kDirectory.size());
    return text == "memory" || !folder.empty();
}

bool read_restarts(std::string_view text, int& restarts) {
    if (text == "auto") {
        restarts = kAutoRestarts;
        return true;
    }
    return read_int(text, restarts) && restarts >= 0;
}

Result<> read_option(std::string_view name, std::string_view value, Options& options) {
    Times& times = options.limits.times;
    const auto check = [&](bool right, const char* expected) -> Result<> {
        if (right) return {};
        return wrong(name, value, expected);
    };
    if (name == "--listen")
        return check(read_listen(value, options.listen), "expected ADDRESS:PORT");
    if (name == "--nnodes")
        return check(read_nodes(value, options.limits), "expected N or MIN:MAX");
    if (name == "--ledger")
        return check(read_ledger(value, options.ledger_folder),
                     "expected memory or directory:PATH");
    if (name == "--max-restarts")
        return check(read_restarts(value, options.limits.max_restarts),
                     "expected a number or auto");
    if (name == "--lease")
        return check(read_seconds(value, times.lease, 0.1), "expected seconds, at least 0.1");
    if (name == "--join-timeout")
        return check(read_seconds(value, times.join_timeout, 0), "expected seconds");
    if (name == "--last-call")
        return check(read_seconds(value, times.last_call, 0), "expected seconds");
    if (name != "--rdzv-id") return Error(ErrorCode::usage, "unknown option " + std::string(name));
    options.run_id = value;
    return check(!value.empty(), "expected a name");
}

// --name=value and --name value alike.
Result<Options> read_options(int count, char** words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        const std::size_t equals = word.find('=');
        std::string_view value;
        if (equals != std::string_view::npos)
            value = word.substr(equals + 1);
        else if (++i < count)
            value = words[i];
        else
            return Error(ErrorCode::usage, std::string(word) + " needs a value");
        if (auto read = read_option(word.substr(0, equals), value, options); !read)
            return read.error();
    }
    if (options.run_id.empty()) return Error(ErrorCode::usage, "--rdzv-id=ID is needed");
    if (options.listen.port() == 0)
        return Error(ErrorCode::usage, "--listen=ADDRESS:PORT is needed");
    return options;
}

// ---- the service

Result<Service::Acceptor> listen(asio::io_context& loop, const asio::ip::tcp::endpoint& endpoint) {
    Service::Acceptor acceptor(loop);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(Service::Acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
        return Error(ErrorCode::unavailable, "cannot listen on " + endpoint.address().to_string() +
                                                 " port " + std::to_string(endpoint.port()) + ": " +
                                                 error.message());
    return acceptor;
}

MachineConfig machine_config(const Options& options) {
    std::random_device random;
    const auto random64 = [&random] { return std::uint64_t{random()} << 32 | random(); };
    char host[256] = "rendezvous";
    if (::gethostname(host, sizeof host - 1) != 0)
        say({Note::Level::debug, "this host has no name"});
    MachineConfig config;
    config.run_id = options.run_id;
    config.self = {host, Incarnation{random64()}};
    config.version = DDPRUN_VERSION;
    config.limits = options.limits;
    config.seed = random64();
    return config;
}

int run(const Options& options) {
    asio::io_context loop;
    auto acceptor = listen(loop, options.listen);
    if (!acceptor) {
        say({Note::Level::error, acceptor.error().sentence()});
        return kUnavailable;
    }
    int code = kUnavailable;
    FileThread files(loop);
    std::unique_ptr<Ledger> ledger;
    std::unique_ptr<Service> service;
    asio::signal_set signals(loop, SIGTERM, SIGINT);
    const auto leave = [&](int with) {
        code = with;
        service.reset();
        signals.cancel();
        files.abandon();
    };
    signals.async_wait([&](error_code error, int signal) {
        if (!error) leave(128 + signal);
    });
    const auto serve = [&](Result<std::unique_ptr<Ledger>> opened) {
        if (!opened) {
            say({Note::Level::error, opened.error().sentence()});
            return leave(kUnavailable);
        }
        ledger = std::move(*opened);
        service = std::make_unique<Service>(loop, std::move(*acceptor), machine_config(options),
                                            *ledger, say, [&](const Ending& ending) {
                                                say({Note::Level::info, ending.sentence});
                                                leave(ending.code);
                                            });
        service->start();
    };
    if (options.ledger_folder.empty())
        serve(std::unique_ptr<Ledger>(std::make_unique<LedgerMemory>(loop)));
    else
        open_ledger_directory(options.ledger_folder, "", files, say, serve);
    loop.run();
    return code;
}

}  // namespace
}  // namespace ddprun::rendezvous

int main(int count, char** words) {
    using namespace ddprun::rendezvous;
    if (count == 2 && std::string_view(words[1]) == "--help")
        return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
    const auto options = read_options(count, words);
    if (options) return run(*options);
    std::fprintf(stderr, "ddprun-rendezvous: %s\n", options.error().sentence().c_str());
    return kUsage;
}
