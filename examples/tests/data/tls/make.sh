#!/bin/sh
# Makes the certificates beside it, for tests alone. The keys of the authorities are not kept.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }
authority() {
    key "$work/$1.key"
    openssl req -x509 -new -key "$work/$1.key" -subj "/CN=$1 of tests" -days 36500 -out "$1.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
}
# Name of the file, key, year of the end, extensions.
certificate() {
    printf '[all]\ndefault_ca = ca\n[ca]\ndatabase = %s/list\nrand_serial = yes\npolicy = any\n[any]\ncommonName = supplied\n' "$work" >"$work/config"
    : >"$work/list"
    openssl req -new -key "$2.key" -subj "/CN=$1" -out "$work/request"
    printf '%s\n' "$4" >"$work/extensions"
    openssl ca -batch -notext -config "$work/config" -name ca -md sha256 -cert authority.pem \
        -keyfile "$work/authority.key" -startdate 20200101000000Z -enddate "$3"0101000000Z -extfile "$work/extensions" \
        -outdir "$work" -in "$work/request" -out "$1.pem"
}
authority authority
authority stranger
key server.key
key client.key
here="subjectAltName=DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth"
certificate server server 2120 "$here"
certificate expired server 2021 "$here"
certificate elsewhere server 2120 "subjectAltName=DNS:elsewhere.example.com
extendedKeyUsage=serverAuth"
certificate client client 2120 extendedKeyUsage=clientAuth
