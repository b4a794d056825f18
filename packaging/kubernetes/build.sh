# The manifests with the rules of dashboards/, in one archive. Sourced by .ci/package.sh, which sets the variables.
# shellcheck shell=sh disable=SC2154

manifests() {
    root=$work/manifests
    for file in packaging/kubernetes/*/*.yaml; do
        put 644 "$file" "/portvakt-kubernetes/${file#packaging/kubernetes/}"
    done
    packaging/kubernetes/monitoring/make-rules.sh dashboards >"$root/portvakt-kubernetes/monitoring/prometheusrule.yaml"
    archive=$work/portvakt-kubernetes_$version.tar
    tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory "$root" --create --file "$archive" .
    gzip -9n "$archive"
    install -m 644 "$archive.gz" "$out"
}
