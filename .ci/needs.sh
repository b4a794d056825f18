#!/bin/sh
# Checks the tools that the build and the tests need beside Rust.
#
# Required by the build:
#   cc               for the cryptography (aws-lc) and for linking
#   cmake            for zlib-ng, which the proxy compresses with
#   pkg-config and OpenSSL's headers   for judging certificate chains
# The tests (needs.sh tests) also use other signers, and NIST's PKITS for chains. They skip missing parts, and fail with CI=true:
#   openssl, a JDK, Node with npm, Python with venv; curl, git, jq and minisign; the vectors, and libraries of the signers, from PyPI and npm
#   PostgreSQL 15 or later, of which no cluster is made and no server is started
# and .ci/instructions.sh uses valgrind.
# The tests against other systems (needs.sh systems) fail if one of these is missing:
#   Go, a JDK with Jackson and Gson, Node, Python with venv; nginx, Apache, HAProxy and Prometheus, of which no daemon is started;
#   etcd and Patroni with PostgreSQL; curl, jq, testssl.sh; Chromium; strace; xmlsec1; SoftHSM, p11-kit and OpenSC's tools;
#   libraries from PyPI and npm
# Packages (needs.sh package): dpkg-dev, binutils and Python. Their tests (needs.sh test-packages): mmdebstrap and systemd-nspawn, lintian, umoci,
#   HAProxy, and programs from PyPI.
# The comparison (needs.sh bench) leaves out missing peers:
#   nginx with its Lua module, haproxy; wrk and h2load send the requests; llvm-profdata reads what the build counts
# The attacks (needs.sh edge) leave out missing peers and tests, too:
#   nginx, haproxy, slowhttptest
#
# Missing tools are installed if the user is root, or sudo needs no password, and the system has apt-get. Otherwise
# the script prints the command to run; for the build it then exits with 1.
set -eu
cd "$(dirname "$0")/.."

if ! command -v cargo >/dev/null; then
    echo "Rust is not installed (no cargo in PATH). Install Rust 1.95 or later with rustup." >&2
    exit 1
fi

# Prints the Debian packages that the build misses, each with a space before it.
missing_for_build() {
    command -v cc >/dev/null || printf ' gcc libc6-dev'
    command -v cmake >/dev/null || printf ' cmake'
    command -v pkg-config >/dev/null || printf ' pkg-config'
    # If OPENSSL_DIR is set, that folder has OpenSSL.
    [ -n "${OPENSSL_DIR:-}" ] || pkg-config --exists openssl 2>/dev/null || printf ' libssl-dev'
}

# The same for the tests.
missing_for_tests() {
    command -v openssl >/dev/null || printf ' openssl'
    command -v javac >/dev/null || printf ' default-jdk-headless'
    command -v npm >/dev/null || printf ' nodejs npm'
    python3 -c 'import ensurepip, venv' 2>/dev/null || printf ' python3-venv'
    command -v valgrind >/dev/null || printf ' valgrind'
    has_postgres || printf ' postgresql-15'
    command -v curl >/dev/null || printf ' curl'
    command -v jq >/dev/null || printf ' jq'
    command -v minisign >/dev/null || printf ' minisign'
    command -v git >/dev/null || printf ' git'
}

# Whether there is a PostgreSQL server; Debian keeps its programs out of PATH.
has_postgres() {
    command -v initdb >/dev/null && return
    for version in 15 16 17 18; do
        [ ! -e /usr/lib/postgresql/$version/bin/initdb ] || return 0
    done
    return 1
}

# Whether p11-kit can serve tokens, and its module for clients is there.
has_p11_kit() {
    command -v p11-kit >/dev/null && ls /usr/lib/*-linux-gnu/pkcs11/p11-kit-client.so >/dev/null 2>&1
}

# The same for the tests against other systems.
missing_for_systems() {
    command -v go >/dev/null || printf ' golang-go'
    command -v javac >/dev/null || printf ' default-jdk-headless'
    [ -e /usr/share/java/jackson-databind.jar ] || printf ' libjackson2-databind-java'
    [ -e /usr/share/java/gson.jar ] || printf ' libgoogle-gson-java'
    command -v node >/dev/null || printf ' nodejs'
    [ -e /usr/sbin/nginx ] || printf ' nginx'
    [ -e /usr/sbin/apache2 ] || printf ' apache2'
    [ -e /usr/sbin/haproxy ] || printf ' haproxy'
    python3 -c 'import ensurepip, venv' 2>/dev/null || printf ' python3-venv'
    command -v prometheus >/dev/null && command -v promtool >/dev/null || printf ' prometheus'
    command -v curl >/dev/null || printf ' curl'
    command -v jq >/dev/null || printf ' jq'
    command -v testssl >/dev/null || printf ' testssl.sh'
    command -v chromium >/dev/null || printf ' chromium fonts-liberation'
    command -v strace >/dev/null || printf ' strace'
    command -v xmlsec1 >/dev/null || printf ' xmlsec1'
    command -v softhsm2-util >/dev/null || printf ' softhsm2'
    has_p11_kit || printf ' p11-kit p11-kit-modules'
    command -v pkcs11-tool >/dev/null || printf ' opensc'
    command -v etcd >/dev/null || printf ' etcd-server'
    command -v patroni >/dev/null || printf ' patroni python3-etcd'
    has_postgres || printf ' postgresql-15'
}

# The same for the tests of packages.
missing_for_test_packages() {
    missing_for_packages
    [ -e /usr/sbin/haproxy ] || printf ' haproxy'
    command -v mmdebstrap >/dev/null || printf ' mmdebstrap'
    command -v newuidmap >/dev/null || printf ' uidmap'
    command -v lintian >/dev/null || printf ' lintian'
    command -v systemd-nspawn >/dev/null || printf ' systemd-container'
    command -v umoci >/dev/null || printf ' umoci'
}

# The same for packages.
missing_for_packages() {
    command -v dpkg-shlibdeps >/dev/null || printf ' dpkg-dev'
    command -v strip >/dev/null || printf ' binutils'
    command -v python3 >/dev/null || printf ' python3'
}

# The same for the comparison.
missing_for_bench() {
    PATH="$PATH:/usr/sbin"
    command -v nginx >/dev/null || printf ' nginx'
    [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] || printf ' libnginx-mod-http-lua lua-resty-core lua-resty-lrucache'
    [ -e /usr/share/lua/5.1/openssl/x509.lua ] || printf ' lua-luaossl'
    command -v haproxy >/dev/null || printf ' haproxy'
    command -v wrk >/dev/null || printf ' wrk'
    command -v h2load >/dev/null || printf ' nghttp2-client'
    [ -e "$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-profdata" ] ||
        command -v llvm-profdata-19 >/dev/null || printf ' llvm-19'
}

# The same for the attacks.
missing_for_edge() {
    PATH="$PATH:/usr/sbin"
    command -v nginx >/dev/null || printf ' nginx'
    command -v haproxy >/dev/null || printf ' haproxy'
    command -v slowhttptest >/dev/null || printf ' slowhttptest'
}

# Prints how to install packages on this system; nothing if that is unknown.
installer() {
    command -v apt-get >/dev/null || return 0
    if [ "$(id -u)" -eq 0 ]; then
        echo env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo sudo -n env
    fi
}

# install PACKAGES: false where they could not be installed.
install() {
    as_root=$(installer)
    if [ -z "$as_root" ]; then
        echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends$1" >&2
        return 1
    fi
    echo "installing$1"
    # Debian starts installed servers, unless this program forbids it.
    policy=/usr/sbin/policy-rc.d
    if [ -e $policy ]; then
        policy=
    else
        printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
        $as_root chmod +x $policy
    fi
    # Debian makes a cluster for an installed PostgreSQL, unless this file forbids it.
    cluster=/etc/postgresql-common/createcluster.d/none.conf
    if [ ! -e $cluster ]; then
        $as_root mkdir -p "${cluster%/*}"
        echo 'create_main_cluster = false' | $as_root tee $cluster >/dev/null
    fi
    # Unquoted on purpose: both are lists of words.
    # shellcheck disable=SC2086
    $as_root apt-get update && $as_root DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $1 && status=0 || status=$?
    [ -z "$policy" ] || $as_root rm -f $policy
    return $status
}

packages=$(missing_for_build)
if [ -n "$packages" ]; then
    echo "The build needs what is not installed, by its Debian names:$packages" >&2
    install "$packages" || exit 1
fi
if [ "${1:-build}" = bench ]; then
    packages=$(missing_for_bench)
    if [ -n "$packages" ]; then
        echo "Some peers need what is not installed, and are left out without it:$packages" >&2
        install "$packages" || true
    fi
fi
if [ "${1:-build}" = package ]; then
    packages=$(missing_for_packages)
    if [ -n "$packages" ]; then
        echo "Packages need what is not installed:$packages" >&2
        install "$packages" || exit 1
    fi
fi
if [ "${1:-build}" = test-packages ]; then
    packages=$(missing_for_test_packages)
    if [ -n "$packages" ]; then
        echo "The tests of packages need what is not installed:$packages" >&2
        install "$packages" || exit 1
    fi
fi
if [ "${1:-build}" = edge ]; then
    packages=$(missing_for_edge)
    if [ -n "$packages" ]; then
        echo "Some attacks need what is not installed, and are left out without it:$packages" >&2
        install "$packages" || true
    fi
fi
if [ "${1:-build}" = tests ]; then
    packages=$(missing_for_tests)
    if [ -n "$packages" ]; then
        echo "Some tests need what is not installed, and are skipped without it, or fail where CI=true:$packages" >&2
        install "$packages" || true
    fi
    # The script prints itself what is missing; the tests that need it decide whether to skip or to fail.
    .ci/pkits.sh >/dev/null || true
fi
if [ "${1:-build}" = systems ]; then
    packages=$(missing_for_systems)
    if [ -n "$packages" ]; then
        echo "The tests against other systems need what is not installed:$packages" >&2
        install "$packages" || exit 1
    fi
fi
