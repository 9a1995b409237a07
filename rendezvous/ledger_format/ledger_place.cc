// Reads and writes the place of a ledger (ledger_place.h).
#include "rendezvous/ledger_format/ledger_place.h"

#include <charconv>
#include <optional>

namespace ddprun::rendezvous {
namespace {

Error no_endpoint(std::string_view word) {
    return usage_error(
        "\"" + std::string(word) +
        "\" is not an etcd endpoint; give etcd:HOST:PORT, or several separated by commas");
}

// Refuses URLs and users, such as http://host:1 or user@host:1: a host name with these characters
// would only fail later, when it is looked up.
std::optional<EtcdEndpoint> read_endpoint(std::string_view word) {
    const auto colon = word.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view host = word.substr(0, colon);
    const std::string_view port = word.substr(colon + 1);
    // Brackets separate the colons of an IPv6 address from the colon of the port.
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) host = host.substr(1, host.size() - 2);
    const bool plain = host.find_first_of(bracketed ? "/@[] " : "/@[] :") == std::string_view::npos;
    EtcdEndpoint endpoint{std::string(host), 0};
    // The type of the port, 16 bits, makes from_chars() refuse numbers above 65535.
    const auto [end, error] =
        std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    const bool number = error == std::errc() && end == port.data() + port.size();
    if (host.empty() || !plain || !number || endpoint.port == 0) return std::nullopt;
    return endpoint;
}

Result<LedgerPlace> read_etcd(std::string_view text, bool tls) {
    LedgerPlace place{LedgerPlace::Kind::etcd, "", {}, tls};
    // At least one endpoint is read, and an empty one, as in "a:1,,b:1", is refused.
    for (bool more = true; more;) {
        const auto comma = text.find(',');
        more = comma != std::string_view::npos;
        const std::string_view word = text.substr(0, comma);
        text.remove_prefix(more ? comma + 1 : text.size());
        auto endpoint = read_endpoint(word);
        if (!endpoint) return no_endpoint(word);
        place.endpoints.push_back(std::move(*endpoint));
    }
    return place;
}

// A job name may contain any character, or be empty; a folder name may not. A leading dot is
// encoded too, so that "." and ".." cannot leave the folder.
std::string plain_name(std::string_view name) {
    std::string plain;
    for (const char c : name) {
        // The percent sign itself is encoded, too. So two names never become one.
        const bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
                          (c == '.' && !plain.empty());
        if (kept) {
            plain += c;
            continue;
        }
        constexpr const char* kDigits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        plain += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    // No other name encodes to a single "%", so the empty name keeps a place of its own.
    return plain.empty() ? "%" : plain;
}

}  // namespace

Result<LedgerPlace> read_ledger_place(std::string_view text) {
    if (text == "memory") return LedgerPlace{};
    // "etcd:" is decided before paths, since a path may contain a colon.
    if (text.starts_with("etcd:")) return read_etcd(text.substr(5), false);
    if (text.starts_with("etcds:")) return read_etcd(text.substr(6), true);
    const bool named = text.starts_with("directory:");
    std::string path(named ? text.substr(10) : text);
    if (path.empty()) return usage_error("the path is empty; give directory:PATH");
    // A plain word is most likely a misspelled kind of ledger, not a folder.
    if (!named && path.find('/') == std::string::npos && path != "." && path != "..")
        return usage_error(
            "not a ledger; give memory, directory:PATH, a path with a slash, or "
            "etcd:HOST:PORT");
    return in_folder(std::move(path));
}

Result<> check_etcd_files(const EtcdFiles& files, const LedgerPlace& place) {
    const bool tls = !files.cacert.empty() || !files.cert.empty() || !files.key.empty();
    if (tls && is_in_etcd(place) && !place.tls)
        return usage_error(
            "--etcd-cacert, --etcd-cert and --etcd-key are for TLS; give --ledger=etcds:HOST:PORT "
            "(etcds, not etcd)");
    if (files.cert.empty() != files.key.empty())
        return usage_error("--etcd-cert and --etcd-key: give both, the certificate and its key");
    return {};
}

Result<LedgerPlace> of_job(LedgerPlace chosen, std::string_view name) {
    // A ledger in memory is one process's own, and needs no name.
    if (!is_shared(chosen)) return chosen;
    // One prefix for all keys, because other programs may use the same etcd.
    if (chosen.kind == LedgerPlace::Kind::etcd) chosen.path = "ddprun";
    constexpr std::size_t kLongest = 200;  // leaves room for "-finished-MARK"
    const std::string plain = plain_name(name);
    if (plain.size() > kLongest)
        return usage_error("run id of " + std::to_string(name.size()) +
                           " characters: too long for the name of a ledger (limit " +
                           std::to_string(kLongest) + ")");
    chosen.path += (chosen.path.ends_with('/') ? "" : "/") + plain;
    return chosen;
}

bool is_in_etcd(const LedgerPlace& place) { return place.kind == LedgerPlace::Kind::etcd; }

bool is_shared(const LedgerPlace& place) { return place.kind != LedgerPlace::Kind::memory; }

std::string folder_of(const LedgerPlace& place) {
    return place.kind == LedgerPlace::Kind::directory ? place.path : "";
}

LedgerPlace in_folder(std::string path) {
    return {LedgerPlace::Kind::directory, std::move(path), {}};
}

// With a folder the usual mistake is a local disk at the same path. With etcd it is a name or an
// address that means another host on each node, such as localhost.
LedgerWords words_of(const LedgerPlace& place) {
    if (place.kind == LedgerPlace::Kind::etcd)
        return {"a different etcd",
                "; give --ledger=etcd:HOST:PORT with an address that means the same to all nodes",
                true};
    return {"a different folder under that name",
            "; give --ledger=directory:PATH on a file system that all nodes share", false};
}

std::string to_text(const EtcdEndpoint& endpoint) {
    // The brackets that read_endpoint() has removed.
    const bool v6 = endpoint.host.find(':') != std::string::npos;
    return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

std::string to_text(const std::vector<EtcdEndpoint>& endpoints) {
    std::string text;
    for (const EtcdEndpoint& endpoint : endpoints)
        text += (text.empty() ? "" : ",") + to_text(endpoint);
    return text;
}

std::string to_text(const LedgerPlace& place) {
    switch (place.kind) {
        case LedgerPlace::Kind::memory:
            return "memory";
        case LedgerPlace::Kind::directory:
            return "directory:" + place.path;
        case LedgerPlace::Kind::etcd:
            return (place.tls ? "etcds:" : "etcd:") + to_text(place.endpoints);
    }
    return "memory";
}

}  // namespace ddprun::rendezvous
