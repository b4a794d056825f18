#!/bin/sh
# Writes the rules and alerts of dashboards/ as one object for the Prometheus operator, so that they stand in one place.
#
# Usage: make-rules.sh DASHBOARDS >prometheusrule.yaml
set -eu
cat <<EOF
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: portvakt
  labels: {app.kubernetes.io/name: portvakt}
spec:
  groups:
EOF
for file in rules.yml alerts.yml; do
    # The groups of a file stand behind its line "groups:".
    sed '1,/^groups:$/d; s/^./  &/' "$1/$file"
done
