// A connection to one address of an etcd server, in plain or over TLS, and what its failures mean
// in words. etcd_client.h decides whom to ask.
//
// Thread: the loop's.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/status.h>

#include <boost/asio/ip/address.hpp>
#include <memory>
#include <string>

#include "base/time.h"
#include "rendezvous/ledger_format/ledger_access.h"
#include "rendezvous/ledger_format/ledger_place.h"

namespace ddprun::rendezvous {

// gRPC's library runs while one of these exists. It writes nothing to standard error.
struct EtcdLibrary {
    EtcdLibrary();
    ~EtcdLibrary();
    EtcdLibrary(const EtcdLibrary&) = delete;
    EtcdLibrary& operator=(const EtcdLibrary&) = delete;
};

// `access` may be null: no files were given.
std::shared_ptr<grpc::Channel> open_channel(const boost::asio::ip::address& address,
                                            const EtcdEndpoint& endpoint, bool tls,
                                            const LedgerAccess* access);

// Why a call has failed.
struct EtcdFailure {
    std::string why;
    // The server refuses us, and the words above say what to do: to look whether it runs helps
    // nobody.
    bool refused = false;
};
EtcdFailure failure_of(const grpc::Status& status, Duration limit, bool tls,
                       const LedgerAccess* access);

// Whether the user's token is missing or does not count (any more), and a new one would.
bool is_token_refused(const grpc::Status& status);
// Whether this etcd has no users, so that nobody can log in.
bool has_no_users(const grpc::Status& status);

}  // namespace ddprun::rendezvous
