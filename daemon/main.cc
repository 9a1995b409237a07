// ddprun-rendezvous: a rendezvous outside of jobs. It serves any number of jobs for weeks, and with
// --serve-c10d also PyTorch's own torchrun. daemon_options.cc has its options and help.
//
//   Endpoint ──agent link──▶ Jobs ─▶ one Service and one Ledger for each run id
//      └──────c10d──────────▶ store::Server, one for all, whose keys live as long as the program
//
// One thread with one loop; besides it the file thread if ledgers are folders, or gRPC's threads if
// they are in etcd.
#include <signal.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/exit_code.h"
#include "base/log_line.h"
#include "base/loop/child_program.h"
#include "base/printable.h"
#include "base/release.h"
#include "base/system/boot_clock.h"
#include "base/system/descriptor_room.h"
#include "base/system/hear_sigterm.h"
#include "base/system/out_of_resources.h"
#include "base/system/print_text.h"
#include "base/system/standard_streams.h"
#include "daemon/daemon_options.h"
#include "daemon/endpoint.h"
#include "daemon/jobs.h"
#include "rendezvous/ledger/etcd_files.h"
#include "rendezvous/secret/secret.h"
#include "store/server/server.h"

namespace ddprun::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// With the time, like ddprun's own lines in a log: the program runs for weeks.
void say(const Note& note) {
    if (note.level == Note::Level::debug) return;
    LogStyle style;
    style.name = "ddprun-rendezvous";
    style.times = true;
    std::fputs(log_line(style, day_now(), note).c_str(), stderr);
}

void info(std::string sentence) { say({Note::Level::info, std::move(sentence)}); }

std::string place(const tcp::endpoint& endpoint) {
    const std::string host = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
           std::to_string(endpoint.port());
}

// reuse_address: a restart must get its port back at once, although old connections are in
// TIME_WAIT.
Result<tcp::acceptor> listen(asio::io_context& loop, const DaemonOptions& options) {
    tcp::acceptor acceptor(loop);
    const tcp::endpoint endpoint(asio::ip::make_address(options.host), options.port);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error && endpoint.protocol() == tcp::v6())
        acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
        return Error(ErrorCode::unavailable, "cannot listen on " + place(endpoint) + ": " +
                                                 error.message() +
                                                 "; choose another with --listen=ADDRESS:PORT");
    return acceptor;
}

// Connects the endpoint to what is served. Without a store there is no c10d service.
Endpoint::Services services(Jobs& jobs, std::optional<store::Server>& store) {
    Endpoint::Services services;
    services.agent_link = [&jobs](tcp::socket socket) { jobs.take(std::move(socket)); };
    if (!store) return services;
    services.c10d = [&store](tcp::socket socket) { store->adopt(std::move(socket)); };
    services.has_c10d_from = [&store](const asio::ip::address& address) {
        return store->has_connection_from(address);
    };
    return services;
}

// Logs what ends with this program, and returns the exit code: 0 if nobody is affected.
int say_farewell(int signal, const Jobs& jobs, std::size_t c10d) {
    const std::vector<std::string> runs = jobs.run_ids();
    const std::string stopped = signal == SIGINT ? "stopped by SIGINT" : "stopped by SIGTERM";
    if (runs.empty() && c10d == 0) {
        info(stopped + "; nobody is served now");
        return 0;
    }
    std::string served;
    for (const std::string& run : runs) served += "run \"" + run + "\", ";
    say({Note::Level::warn,
         stopped + "; still served: " + served + std::to_string(c10d) +
             " c10d connections; workers of ddprun are stopped when their lease is over, torchrun "
             "ends at once"});
    return code_of_signal(signal);
}

Result<IdentityConfig> identity_of(const DaemonOptions& options) {
    IdentityConfig identity;
    identity.mode = options.identity;
    // No node reads this rendezvous' ledger, so a file in its folder cannot hold the secret.
    identity.outside = true;
    if (options.secret_file.empty()) return identity;
    auto secret = read_secret_file(options.secret_file);
    if (!secret) return secret.error();
    identity.secret = std::move(*secret);
    return identity;
}

int run(const DaemonOptions& options, IdentityConfig identity, LedgerAccessPointer access) {
    make_room_for_descriptors();
    asio::io_context loop(1);
    // The port first: a second instance must fail before it touches anything.
    auto acceptor = listen(loop, options);
    if (!acceptor) {
        say({Note::Level::error, acceptor.error().sentence()});
        return kUnavailableCode;
    }
    const std::string here = place(acceptor->local_endpoint());
    on_hung_program(loop, [](const std::string& sentence) { say({Note::Level::warn, sentence}); });
    FileThread files(loop);
    Secrets secrets(loop, files, std::move(identity));
    // Set by the callbacks below, all of which run on the loop.
    int code = 0;
    secrets.look([&](const Result<std::string>& found) {
        if (found) return;
        // The look-up ends after start(), so the refusal comes from within the loop.
        if (options.identity == IdentityMode::require) {
            say({Note::Level::error, found.error().sentence()});
            code = kUnavailableCode;
            return loop.stop();
        }
        say({Note::Level::warn, "anybody who reaches the port may join, read or stop a job: " +
                                    found.error().sentence()});
    });
    // The objects are declared in the order in which they are needed, and destroyed in reverse.
    Jobs jobs(loop, files, secrets, options.ledger, std::move(access),
              std::string(this_release().version), say);
    std::optional<store::Server> store;
    if (options.serve_c10d) {
        store::ServerOptions store_options;
        store_options.log = info;
        // A closed acceptor: the endpoint accepts, and passes connections on.
        store.emplace(tcp::acceptor(loop), std::move(store_options));
        store->sockets().follow(loop.get_executor());
    }
    std::optional<Endpoint> endpoint;
    endpoint.emplace(loop, std::move(*acceptor), services(jobs, store), say, Endpoint::Patience{});
    asio::signal_set signals(loop, SIGTERM, SIGINT);
    signals.async_wait([&](error_code error, int signal) {
        if (error) return;
        code = say_farewell(signal, jobs, store ? store->connections() : 0);
        loop.stop();
    });
    endpoint->start();
    info("listens on " + here + " for ddprun" +
         (store ? " and, without any identity, for torchrun (c10d)" : ""));
    loop.run();
    // A file system that hangs must not keep the process from ending.
    files.abandon();
    return code;
}

int fail(const Error& error) {
    std::fprintf(stderr, "ddprun-rendezvous: %s\n", printable(error.sentence()).c_str());
    return exit_code(error);
}

int print(const std::string& text) {
    const auto printed = print_text(text);
    return printed ? 0 : fail(printed.error());
}

}  // namespace
}  // namespace ddprun::rendezvous

int main(int count, char** words) {
    using namespace ddprun::rendezvous;
    ddprun::have_standard_streams();
    ddprun::hear_sigterm();
    ::signal(SIGPIPE, SIG_IGN);  // a log whose reader has gone must not end the jobs
    ddprun::end_without_resources("ddprun-rendezvous", ddprun::kUnavailableCode);
    const auto options = read_daemon_options({words + 1, words + count});
    if (!options) return fail(options.error());
    if (options->help) return print(daemon_help());
    if (options->version)
        return print(ddprun::release_line("ddprun-rendezvous", ddprun::this_release()));
    auto identity = identity_of(*options);
    if (!identity) {
        say({ddprun::Note::Level::error, identity.error().sentence()});
        return ddprun::kUsageCode;
    }
    auto access = read_ledger_access(options->etcd, options->ledger, identity->secret);
    if (!access) {
        say({ddprun::Note::Level::error, access.error().sentence()});
        return ddprun::kUsageCode;
    }
    return run(*options, std::move(*identity), std::move(*access));
}
