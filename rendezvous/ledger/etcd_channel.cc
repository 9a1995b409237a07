// Opens channels to etcd and puts their failures into words (etcd_channel.h).
#include "rendezvous/ledger/etcd_channel.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include <utility>

namespace ddprun::rendezvous {
namespace {

constexpr int kLongestPauseMs = 500;  // between two attempts of a gRPC channel to connect

std::shared_ptr<grpc::ChannelCredentials> credentials(bool tls, const LedgerAccess* access) {
    if (!tls) return grpc::InsecureChannelCredentials();
    grpc::SslCredentialsOptions options;
    if (access) {
        options.pem_root_certs = access->cacert;
        options.pem_cert_chain = access->cert;
        options.pem_private_key = std::string_view(access->key);
    }
    auto made = grpc::SslCredentials(options);
    ::explicit_bzero(options.pem_private_key.data(), options.pem_private_key.size());
    return made;
}

// gRPC's message tells what it was doing and ends with the reason; only the reason is of interest.
std::string last_part(const std::string& message) {
    constexpr std::string_view kBefore = "remote host: ";
    const auto at = message.rfind(kBefore);
    return at == std::string::npos ? message : message.substr(at + kBefore.size());
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// gRPC writes each failed handshake to standard error, besides the status that it returns. That is
// the job's log, where only our own lines belong.
void keep_quiet(gpr_log_func_args*) {}

// What a server says about the user; empty: nothing.
std::string about_user(const grpc::Status& status, const LedgerAccess* access) {
    const bool none = !access || access->user.empty();
    const std::string& message = status.error_message();
    const bool denied = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    if (has(message, "user name is empty") || (denied && none))
        return "it lets in users only; give --etcd-user-file=PATH";
    if (has(message, "authentication failed"))
        return "it does not know user " + access->user + " with the password in " +
               access->files.user + " (--etcd-user-file)";
    if (denied)
        return "user " + access->user +
               " may not read and write the keys below ddprun/; grant it: etcdctl role "
               "grant-permission --prefix=true ROLE readwrite ddprun/";
    return "";
}

// What is wrong with the certificates; empty: nothing is known to be.
std::string about_certificates(const std::string& message, const LedgerAccess* access) {
    const bool own = access && !access->cacert.empty();
    if (has(message, "certificate verify failed"))
        return "its certificate has expired, or is of no authority in " +
               (own ? access->files.cacert + " (--etcd-cacert)"
                    : "this host's own list; give --etcd-cacert=FILE");
    if (has(message, "is not in peer certificate"))
        return "its certificate does not name this host; give --ledger the name that it has";
    return "";
}

// A connection that ends at once looks the same for many mistakes.
std::string hint_on_closed(const std::string& message, bool tls) {
    const bool closed = has(message, "Socket closed");
    // A server that refuses our certificate has finished the handshake by then.
    const bool broken = has(message, "Endpoint read failed") || has(message, "Broken pipe") ||
                        has(message, "Connection reset by peer");
    if (!closed && !(tls && broken)) return "";
    return tls ? " (does it want --etcd-cert and --etcd-key, or speak no TLS?)"
               : " (does it speak TLS? give --ledger=etcds:HOST:PORT)";
}

}  // namespace

// gRPC reads the variable once, when it starts. Without it, it would set up a resolver that is
// never used. OpenSSL's configuration file of the host does not concern a static binary.
EtcdLibrary::EtcdLibrary() {
    ::setenv("GRPC_DNS_RESOLVER", "native", 0);
    ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    // GRPC_VERBOSITY is gRPC's own variable: who sets it wants these lines.
    if (!::getenv("GRPC_VERBOSITY")) gpr_set_log_function(keep_quiet);
    grpc_init();
}
EtcdLibrary::~EtcdLibrary() { grpc_shutdown_blocking(); }

std::shared_ptr<grpc::Channel> open_channel(const boost::asio::ip::address& address,
                                            const EtcdEndpoint& endpoint, bool tls,
                                            const LedgerAccess* access) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    // A new channel opens a new connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // the client tries again by itself
    arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestPauseMs);
    // A whole ledger may be larger than gRPC's default of 4 MiB.
    arguments.SetMaxReceiveMessageSize(-1);
    // gRPC only knows the address. The certificate must name what the user has written.
    if (tls) arguments.SetSslTargetNameOverride(endpoint.host);
    const std::string port = std::to_string(endpoint.port);
    const std::string target = address.is_v6() ? "ipv6:[" + address.to_string() + "]:" + port
                                               : "ipv4:" + address.to_string() + ":" + port;
    return grpc::CreateCustomChannel(target, credentials(tls, access), arguments);
}

EtcdFailure failure_of(const grpc::Status& status, Duration limit, bool tls,
                       const LedgerAccess* access) {
    const std::string& message = status.error_message();
    if (std::string why = about_user(status, access); !why.empty()) return {std::move(why), true};
    if (std::string why = about_certificates(message, access); !why.empty())
        return {std::move(why), true};
    switch (status.error_code()) {
        case grpc::StatusCode::DEADLINE_EXCEEDED:
            return {"no answer within " + ddprun::to_text(limit)};
        case grpc::StatusCode::INVALID_ARGUMENT:
            return {message + " (is the entry larger than etcd's --max-request-bytes?)"};
        case grpc::StatusCode::RESOURCE_EXHAUSTED:
            return {message +
                    " (is etcd full? compact and defragment it, or raise --quota-backend-bytes)"};
        case grpc::StatusCode::UNIMPLEMENTED:
            return {"this is not etcd version 3"};
        default:
            return {last_part(message) + hint_on_closed(message, tls)};
    }
}

bool is_token_refused(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
           has(status.error_message(), "revision of auth store is old") ||
           // It had no users before.
           has(status.error_message(), "user name is empty");
}

bool has_no_users(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION &&
           has(status.error_message(), "authentication is not enabled");
}

}  // namespace ddprun::rendezvous
