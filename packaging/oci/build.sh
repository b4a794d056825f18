# OCI images, by tar and a few lines of JSON: no daemon, no tool that writes its own times. Sourced by .ci/package.sh, which sets the
# variables. An image is a folder of blobs by their hashes (the OCI image layout), in one tar file.
# shellcheck shell=sh disable=SC2154

# The user of the images: a number, because there is no /etc/passwd.
image_user=65532

images() {
    layout=$work/layout
    libraries_layer
    program_layer
    demo_layer
    image portvakt "$libraries_blob $program_blob" \
        '"Entrypoint": ["/usr/bin/portvakt"], "Cmd": ["serve", "--config", "/etc/portvakt/gateway.yaml"],
         "Healthcheck": {"Test": ["CMD", "/usr/bin/portvakt", "health", "--config", "/etc/portvakt/gateway.yaml"],
                         "Interval": 30000000000, "Timeout": 6000000000, "StartPeriod": 60000000000, "Retries": 3}'
    image portvakt-demo "$libraries_blob $program_blob $demo_blob" \
        '"Entrypoint": ["/usr/bin/portvakt-sandbox"], "Env": ["TMPDIR=/var/lib/portvakt"],
         "Cmd": ["demo", "--config", "/usr/share/portvakt/demo/gateway.yaml", "--certs", "/var/lib/portvakt/certs"],
         "Healthcheck": {"Test": ["CMD", "/usr/bin/portvakt", "health", "--url", "http://127.0.0.1:9100"],
                         "Interval": 30000000000, "Timeout": 6000000000, "StartPeriod": 60000000000, "Retries": 3}'
}

# What both programs link, by the names of the loader, with the licences of their packages. The CAs are those of Debian: the client that
# fetches CRLs and OCSP answers does not start without any.
libraries_layer() {
    root=$work/oci-libraries
    mkdir -p "$root"
    linked=$(ldd "$program" "$sandbox" | sed -n 's/^.* => \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | sort -u)
    packages=$(for library in $linked; do package_of "$library"; done | sort -u)
    for library in $linked; do
        put 755 "$library" "$library"
    done
    for package in $packages ca-certificates; do
        put 644 "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/copyright"
    done
    put 644 /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
    # For a scanner, and for whoever wants to know when to build anew.
    # shellcheck disable=SC2086
    versions=$(dpkg-query --show --showformat '${Package} ${Version}, ' $packages ca-certificates)
    layer libraries && libraries_blob=$blob
}

# package_of LIBRARY: /lib is a link to /usr/lib, and dpkg knows a file by one of both names only.
package_of() {
    { dpkg-query --search "$1" || dpkg-query --search "/usr$1"; } 2>/dev/null | sed 's/:.*//'
}

program_layer() {
    root=$work/oci-program
    licences=/usr/share/doc/portvakt/third-party-licences.gz
    put 755 "$work/portvakt/usr/bin/portvakt" /usr/bin/portvakt
    put 644 packaging/debian/copyright /usr/share/doc/portvakt/copyright
    put 644 "$work/portvakt$licences" "$licences"
    mkdir -p "$root/etc/portvakt" "$root/var/lib/portvakt"
    chmod 700 "$root/var/lib/portvakt"
    layer program var/lib/portvakt && program_blob=$blob
}

demo_layer() {
    root=$work/oci-demo
    put 755 "$work/portvakt-sandbox/usr/bin/portvakt-sandbox" /usr/bin/portvakt-sandbox
    # The root file system may be read-only: what the demonstration makes is in the volume.
    sed 's#: \.\./certs/#: /var/lib/portvakt/certs/#; s#: \.\./state/#: /var/lib/portvakt/sandbox/#' config/gateway.yaml >"$work/demo.yaml"
    put 644 "$work/demo.yaml" /usr/share/portvakt/demo/gateway.yaml
    put 644 config/operations.yaml /usr/share/portvakt/demo/operations.yaml
    layer demo && demo_blob=$blob
}

# layer NAME [FOLDER]: makes a layer of $root, in which FOLDER belongs to the image's user. Sets $blob.
layer() {
    archive=$work/$1.tar
    archived() {
        tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --directory "$root" --file "$archive" "$@"
    }
    archived --create --owner=0 --group=0 ${2:+--exclude="./$2"} .
    [ -z "${2:-}" ] || archived --append --owner=$image_user --group=$image_user "./$2"
    unpacked=$(sha256sum <"$archive" | cut -d ' ' -f 1)
    gzip -9n "$archive"
    add_blob "$archive.gz"
    # By its blob, for the configuration of an image.
    echo "$unpacked" >"$work/unpacked-$blob"
}

# add_blob FILE: sets $blob to the hash, and $size.
add_blob() {
    blob=$(sha256sum <"$1" | cut -d ' ' -f 1)
    size=$(stat -c %s "$1")
    install -D -m 644 "$1" "$layout/blobs/sha256/$blob"
}

# image NAME LAYERS SETTINGS: writes NAME_VERSION_ARCHITECTURE.oci.tar.
image() {
    commit=$(git rev-parse HEAD)
    created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
    # A tag has no "~".
    tag=$(echo "$version" | tr '~' '-')
    layers="" hashes=""
    for each in $2; do
        length=$(stat -c %s "$layout/blobs/sha256/$each")
        layers="$layers${layers:+, }{\"mediaType\": \"application/vnd.oci.image.layer.v1.tar+gzip\", \"digest\": \"sha256:$each\", \"size\": $length}"
        hashes="$hashes${hashes:+, }\"sha256:$(cat "$work/unpacked-$each")\""
    done
    cat >"$work/config.json" <<EOF
{"architecture": "$architecture", "os": "linux", "created": "$created",
 "config": {"User": "$image_user:$image_user", "StopSignal": "SIGTERM", "WorkingDir": "/",
            "ExposedPorts": {"8443/tcp": {}, "9100/tcp": {}}, "Volumes": {"/var/lib/portvakt": {}},
            "Labels": {"org.opencontainers.image.title": "$1", "org.opencontainers.image.version": "$version",
                       "org.opencontainers.image.revision": "$commit", "org.opencontainers.image.licenses": "Apache-2.0",
                       "portvakt.libraries": "${versions%, }"},
            $3},
 "rootfs": {"type": "layers", "diff_ids": [$hashes]},
 "history": []}
EOF
    add_blob "$work/config.json"
    config=$blob config_size=$size
    cat >"$work/manifest.json" <<EOF
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
 "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:$config", "size": $config_size},
 "layers": [$layers]}
EOF
    add_blob "$work/manifest.json"

    # The layout of this image alone.
    own=$work/$1.oci
    for each in $2 "$config" "$blob"; do
        install -D -m 644 "$layout/blobs/sha256/$each" "$own/blobs/sha256/$each"
    done
    echo '{"imageLayoutVersion": "1.0.0"}' >"$own/oci-layout"
    cat >"$own/index.json" <<EOF
{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
  {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:$blob", "size": $size,
   "platform": {"architecture": "$architecture", "os": "linux"},
   "annotations": {"org.opencontainers.image.ref.name": "$tag"}}]}
EOF
    tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory "$own" --create --file "$out/${1}_${version}_$architecture.oci.tar" .
}
