#!/bin/sh
# Makes sure of what the build needs beside Rust:
#   cc               for the cryptography (aws-lc) and for linking
#   cmake            for zlib-ng, which the proxy compresses with
#   pkg-config and OpenSSL's headers   for judging certificate chains
#
# Where something is missing, it is installed if this is root, or sudo asks for no password, and the system has apt-get. Otherwise the
# command to run is printed, and the end is 1.
set -eu

if ! command -v cargo >/dev/null; then
    echo "Rust is not installed (no cargo in PATH). Install Rust 1.95 or later with rustup: https://rustup.rs" >&2
    exit 1
fi

# Prints the Debian packages that are missing, each with a space before it.
missing() {
    command -v cc >/dev/null || printf ' gcc libc6-dev'
    command -v cmake >/dev/null || printf ' cmake'
    command -v pkg-config >/dev/null || printf ' pkg-config'
    # Whoever names a folder of OpenSSL has one.
    [ -n "${OPENSSL_DIR:-}" ] || pkg-config --exists openssl 2>/dev/null || printf ' libssl-dev'
}

packages=$(missing)
[ -n "$packages" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "The build needs these, by their Debian names:$packages" >&2
    echo "Install them with this system's package manager; Fedora: sudo dnf install gcc cmake pkgconf-pkg-config openssl-devel" >&2
    exit 1
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    echo "The build needs packages that are not installed. Run this, then try again:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$packages" >&2
    exit 1
fi

echo "installing what the build needs:$packages"
# Unquoted on purpose: both are lists of words.
# shellcheck disable=SC2086
{
    $as_root apt-get update
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages
}

packages=$(missing)
if [ -n "$packages" ]; then
    echo "Still missing after installing:$packages" >&2
    exit 1
fi
