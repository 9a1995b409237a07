// Reads the command line of ddprun-rendezvous, and has its help text.
#include "daemon/daemon_options.h"

#include <arpa/inet.h>

#include <charconv>

namespace ddprun::rendezvous {
namespace {

constexpr const char* kHelp =
    R"(Usage: ddprun-rendezvous [OPTIONS]

A rendezvous outside the jobs, for weeks: the nodes of any number of jobs meet here, at the same
time and one after the other. Each run id (--rdzv-id) is a job of its own; when it has ended, the id
is free again. How many nodes it has, how often it restarts, its lease: all that the job's own
command line says, as its first node brings it.

    ddprun-rendezvous --listen=10.0.0.1:29400 --ledger=directory:/shared/ledgers
    ddprun --nnodes=2 --rdzv-endpoint=10.0.0.1:29400 --rdzv-id=mine train.py      # on each node

On a host that runs nodes too, give those --rdzv-conf=is_host=0, also for --nnodes=1.

  --listen=[ADDRESS:]PORT
        Where to listen: an address of this host, 0.0.0.0 or [::] for all of them. Port 0: any
        free one. Default: 127.0.0.1:29400
  --ledger=memory|directory:PATH|etcd:HOST:PORT,...|etcds:HOST:PORT,...
        Where generations are written down: in a folder for each run id below PATH, in etcd
        (version 3) below ddprun/, or nowhere; etcds: over TLS. Default: memory
  --etcd-user-file=PATH, --etcd-cacert=PATH, --etcd-cert=PATH, --etcd-key=PATH
        For a ledger in etcd: a file with NAME:PASSWORD that only you can read; the authorities that
        etcd's certificate may be of; the certificate that is shown to etcd, and its key. All in PEM
        format. Default: no user, the authorities of this host, no certificate
  --secret-file=PATH
        A file with the secret that all nodes were given (--secret-file there too): who does not
        have it may not join. Default: MUNGE, where it runs; it lets in this user's nodes alone
  --identity=auto|require|none
        auto: warn where there is no secret at all; require: do not serve then; none: ask for no
        proof. Default: auto
  --serve-c10d
        Be the c10d store of PyTorch's own torchrun on the same port, for
        torchrun --rdzv-backend=c10d --rdzv-endpoint=ADDRESS:PORT
        Its keys stay until this program ends. The protocol knows no identity, and torchrun runs
        what it finds under a key (pickle): only where all who reach the port are trusted
  --version
        Print the version and leave
  -h, --help
        Print this and leave

It logs to standard error. SIGTERM or SIGINT end it: with code 0 when nobody is served, else with
128 + signal. Started again within half a lease, with a ledger in a folder or in etcd, it stops no
worker: the jobs continue. Later, their workers have been stopped when the lease was over, and start
again. Jobs whose ledger lay in memory, and those that hear of none again within their join
timeout, end with code 69.
Codes: 2 a wrong option, 69 it cannot listen (port in use) or write the ledger.
)";

Error wrong(std::string_view option, std::string_view value, const char* expected) {
    return usage_error(std::string(option) + "=" + std::string(value) + ": expected " + expected);
}

// Only addresses, because a name may have several, and would need a look-up.
bool is_address(const std::string& text) {
    unsigned char bytes[16];
    return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// Accepts "29400", ":29400", "10.0.0.1:29400" and "[::1]:29400".
Result<> read_listen(std::string_view text, DaemonOptions& options) {
    const Error bad = wrong("--listen", text,
                            "ADDRESS:PORT or PORT, the address in figures ([::1]:29400 for IPv6)");
    const std::size_t colon = text.rfind(':');
    // The last colon separates the port, since IPv6 addresses contain colons.
    const bool with_host = colon != std::string_view::npos && colon > 0;
    const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), options.port);
    if (error != std::errc() || end != port.data() + port.size()) return bad;
    if (!with_host) return {};
    std::string_view host = text.substr(0, colon);
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) host = host.substr(1, host.size() - 2);
    options.host = host == "localhost" ? "127.0.0.1" : std::string(host);
    if (!is_address(options.host)) return bad;
    // Without brackets it is unclear where the port of ::1:29400 begins.
    if (options.host.find(':') != std::string::npos && !bracketed) return bad;
    return {};
}

Result<> read_ledger(std::string_view text, DaemonOptions& options) {
    auto place = read_ledger_place(text);
    if (!place)
        return usage_error("--ledger=" + std::string(text) + ": " + place.error().sentence());
    options.ledger = std::move(*place);
    return {};
}

Result<> read_identity(std::string_view text, DaemonOptions& options) {
    const auto mode = read_identity_mode(text);
    if (!mode) return wrong("--identity", text, "auto, require or none");
    options.identity = *mode;
    return {};
}

template <std::string EtcdFiles::*file>
Result<> read_etcd_path(std::string_view text, DaemonOptions& options) {
    options.etcd.*file = text;
    if (text.empty()) return usage_error("an option --etcd-… is empty: expected a file");
    return {};
}

Result<> read_secret_path(std::string_view text, DaemonOptions& options) {
    options.secret_file = text;
    if (text.empty()) return wrong("--secret-file", text, "a file");
    return {};
}

// An option with a value, and the function that reads it; null: there is no such option.
using Reader = Result<> (*)(std::string_view value, DaemonOptions& options);
Reader reader_of(std::string_view name) {
    if (name == "--listen") return read_listen;
    if (name == "--ledger") return read_ledger;
    if (name == "--etcd-user-file") return read_etcd_path<&EtcdFiles::user>;
    if (name == "--etcd-cacert") return read_etcd_path<&EtcdFiles::cacert>;
    if (name == "--etcd-cert") return read_etcd_path<&EtcdFiles::cert>;
    if (name == "--etcd-key") return read_etcd_path<&EtcdFiles::key>;
    if (name == "--secret-file") return read_secret_path;
    if (name == "--identity") return read_identity;
    return nullptr;
}

// An option without a value, and the field that it sets; null: there is no such option.
bool* flag(std::string_view name, DaemonOptions& options) {
    if (name == "--serve-c10d") return &options.serve_c10d;
    if (name == "--help" || name == "-h") return &options.help;
    if (name == "--version") return &options.version;
    return nullptr;
}

}  // namespace

Result<DaemonOptions> read_daemon_options(const std::vector<std::string_view>& words) {
    DaemonOptions options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        const bool has_value = equals != std::string_view::npos;
        const std::string_view name = words[i].substr(0, equals);
        if (bool* on = flag(name, options)) {
            if (has_value) return wrong(name, words[i].substr(equals + 1), "no value");
            *on = true;
            continue;
        }
        const Reader reader = reader_of(name);
        if (!reader)
            return usage_error("unknown option " + std::string(name) +
                               "; see --help (what a job is like, its nodes say)");
        if (!has_value && i + 1 == words.size())
            return usage_error(std::string(name) + " needs a value");
        const std::string_view value = has_value ? words[i].substr(equals + 1) : words[++i];
        if (const auto read = reader(value, options); !read) return read.error();
    }
    if (!options.secret_file.empty() && options.identity == IdentityMode::none)
        return usage_error("--identity=none with --secret-file: leave one of them out");
    if (const auto good = check_etcd_files(options.etcd, options.ledger); !good)
        return good.error();
    return options;
}

std::string daemon_help() { return kHelp; }

}  // namespace ddprun::rendezvous
