#!/usr/bin/env bash
# Makes certificates for tests of TLS: certificates.sh FOLDER. In it are then
#   ca.pem       an authority, and other_ca.pem, one that has signed nothing
#   server.pem   for localhost and 127.0.0.1, and elsewhere.pem, for another host
#   client.pem   and past.pem, which has expired
# each with its key, NAME.key, which only the user can read.
set -euo pipefail
umask 077
mkdir -p "$1"
cd "$1"
# An authority: its name.
authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1" \
        -addext basicConstraints=critical,CA:TRUE -keyout "$1.key" -out "$1.pem"
}
# A certificate of ca.pem: its name, how many days it holds, the names that it is for.
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "$2" \
        -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3") -out "$1.pem"
}
{
    authority ca
    authority other_ca
    certificate server 30 DNS:localhost,IP:127.0.0.1
    certificate elsewhere 30 DNS:elsewhere.example
    certificate client 30 DNS:client
    certificate past -1 DNS:localhost,IP:127.0.0.1
} >made.log 2>&1 || { cat made.log >&2; exit 1; }
