# Debian packages, by dpkg-deb from folders that are filled here: debhelper would build the program itself, and adds a step for each of
# the few files. Sourced by .ci/package.sh, which sets the variables.
# shellcheck shell=sh disable=SC2154

# put MODE FILE NAME: installs a file of the repository, or a generated one, below $root.
put() {
    install -D -m "$1" "$2" "$root$3"
}

# compress FILE NAME: the same with gzip, which policy asks of manual pages and changelogs. -n: without name and time.
compress() {
    mkdir -p "$(dirname "$root$2")"
    gzip -9nc "$1" >"$root$2"
}

debian_packages() {
    gateway_package
    sandbox_package
    lists_package
    dashboards_package
}

gateway_package() {
    root=$work/portvakt
    files=packaging/debian/portvakt
    put_program "$program" portvakt portvakt ""
    "$program" man "$work/man"
    for page in "$work"/man/*.1; do
        compress "$page" "/usr/share/man/man1/${page##*/}.gz"
    done
    for shell in bash zsh fish; do
        "$program" completions $shell >"$work/completions.$shell"
    done
    put 644 "$work/completions.bash" /usr/share/bash-completion/completions/portvakt
    put 644 "$work/completions.zsh" /usr/share/zsh/vendor-completions/_portvakt
    put 644 "$work/completions.fish" /usr/share/fish/vendor_completions.d/portvakt.fish

    cat config/production.yaml $files/log.yaml >"$work/gateway.yaml"
    put 644 "$work/gateway.yaml" /etc/portvakt/gateway.yaml
    install -d "$root"/etc/portvakt/anchors "$root"/etc/portvakt/crls "$root"/etc/portvakt/registers
    install -d -m 700 "$root"/etc/portvakt/secrets "$root"/etc/portvakt/tls
    install -d -m 700 "$root"/var/lib/portvakt
    install -d -m 750 "$root"/var/log/portvakt
    put 644 $files/logrotate /etc/logrotate.d/portvakt
    put 644 $files/portvakt.service /lib/systemd/system/portvakt.service
    put 644 $files/portvakt.socket /lib/systemd/system/portvakt.socket
    put 644 $files/sysusers.conf /usr/lib/sysusers.d/portvakt.conf
    put 644 $files/tmpfiles.conf /usr/lib/tmpfiles.d/portvakt.conf

    documents=/usr/share/doc/portvakt
    put 644 $files/credentials.conf $documents/examples/credentials.conf
    for file in packaging/front/*; do
        put 644 "$file" "$documents/examples/${file##*/}"
    done
    for file in README.md SECURITY.md config/gateway.yaml config/operations.yaml config/production.yaml $(git ls-files docs); do
        put 644 "$file" "$documents/$file"
    done
    pack portvakt "$architecture"
}

sandbox_package() {
    root=$work/portvakt-sandbox
    put_program "$sandbox" portvakt-sandbox portvakt sandbox
    # The demonstration reads them below the current folder: docs/install.md.
    for file in gateway.yaml operations.yaml; do
        put 644 config/$file /usr/share/doc/portvakt-sandbox/examples/config/$file
    done
    pack portvakt-sandbox "$architecture"
}

lists_package() {
    root=$work/portvakt-lists
    files=packaging/debian/portvakt-lists
    put_program "$lists" portvakt-lists portvakt-lists ""
    put 755 $files/renew.sh /usr/lib/portvakt-lists/renew
    put 644 $files/portvakt-lists.service /lib/systemd/system/portvakt-lists.service
    put 644 $files/portvakt-lists.timer /lib/systemd/system/portvakt-lists.timer
    put 644 $files/sysusers.conf /usr/lib/sysusers.d/portvakt-lists.conf
    install -d "$root/etc/portvakt-lists/pins"
    put 644 docs/trust.md /usr/share/doc/portvakt-lists/trust.md
    pack portvakt-lists "$architecture"
}

dashboards_package() {
    root=$work/portvakt-dashboards
    for file in dashboards/*.json dashboards/*.yml dashboards/runbooks/*; do
        put 644 "$file" "/usr/share/portvakt/$file"
    done
    pack portvakt-dashboards all
}

# put_program FILE NAME CRATE FEATURES: without symbols, which stay in the program that was built, with the list of its crates, which scanners
# read as they read that of cargo-auditable, and with their licences. dpkg-shlibdeps finds the packages of its libraries.
put_program() {
    put 755 "$1" "/usr/bin/$2"
    packaging/release/bill.py audit-data --package "$3" --features "$4" >"$work/crates"
    strip --strip-all --remove-section=.comment --remove-section=.note "$root/usr/bin/$2"
    objcopy --add-section ".dep-v0=$work/crates" --set-section-flags .dep-v0=noload,readonly "$root/usr/bin/$2"
    packaging/release/bill.py licences --package "$3" --features "$4" >"$work/licences"
    compress "$work/licences" "/usr/share/doc/$2/third-party-licences.gz"
    mkdir -p "$work/shlibdeps/debian"
    printf 'Source: portvakt\n\nPackage: portvakt\nArchitecture: any\n' >"$work/shlibdeps/debian/control"
    libraries=$(cd "$work/shlibdeps" && dpkg-shlibdeps -O -e"$root/usr/bin/$2" | sed -n 's/^shlibs:Depends=//p')
}

# pack NAME ARCHITECTURE: adds what every package has, and writes it.
pack() {
    documents=/usr/share/doc/$1
    put 644 packaging/debian/copyright "$documents/copyright"
    compress CHANGELOG.md "$documents/changelog.gz"
    cat >"$work/changelog" <<EOF
portvakt ($version) unstable; urgency=medium

  * The changes stand in changelog.gz.

 -- $maintainer  $(date -R -d "@$SOURCE_DATE_EPOCH")
EOF
    compress "$work/changelog" "$documents/changelog.Debian.gz"

    mkdir "$root/DEBIAN"
    sed -e "s/@version@/$version/; s/@architecture@/$architecture/; s/@maintainer@/$(escaped "$maintainer")/; s/@size@/$(size_of "$root")/" \
        -e "s/@libraries@/${libraries:-}/" "packaging/debian/$1/control" >"$root/DEBIAN/control"
    for script in postinst prerm postrm; do
        [ ! -e "packaging/debian/$1/$script" ] || put 755 "packaging/debian/$1/$script" "/DEBIAN/$script"
    done
    if [ -d "$root/etc" ]; then
        (cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
    fi
    (cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    # One thread: the blocks of a compression by several threads depend on their number.
    dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$out/${1}_${version}_$2.deb" >&2
}

# escaped TEXT: for the replacement of sed's s command.
escaped() {
    printf '%s' "$1" | sed 's/[\\/&]/\\&/g'
}

# size_of FOLDER: in KiB, each file and each folder by itself (deb-substvars(5)), whatever the file system.
size_of() {
    find "$1" -path "$1/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '0\n' |
        awk '{ sum += $1 ? int(($1 + 1023) / 1024) : 1 } END { print sum }'
}
