#!/bin/sh
# A whole flow, from a first call without a PSU to a payment that is signed: flow.sh INTERCEPTOR BASE CA APPROVE
# TPP_CERTIFICATE and TPP_KEY name the TPP's files.
set -eu
. "$1"
base=$2 ca=$3 approve=$4
domestic=/v1/payments/norwegian-domestic-credit-transfers

call() {
    local method=$1 path=$2
    shift 2
    tpp_call "$method" "$base$path" --cacert "$ca" -H "TPP-Redirect-URI: https://tpp.example/back" -H "PSU-IP-Address: 192.0.2.7" "$@"
}

# The PSU's part; prints the redirect.
sca() { "$approve" approve "$(jq -er ._links.scaRedirect.href)"; }

parameter() { printf '%s' "$back" | sed -n "s/.*[?&]$1=\([^&]*\).*/\1/p"; }

back=$(call GET /v1/accounts | sca)
psu="PSU-ID: $(parameter psu-id)" session="TPP-Session-ID: $(parameter tpp-session-id)"
accounts=$(call GET /v1/accounts -H "$psu" -H "$session")
call GET "/v1/accounts/$(printf '%s' "$accounts" | jq -r '.accounts[0].resourceId')/balances" -H "$psu" -H "$session" >/dev/null
body=$(printf '%s' "$accounts" | jq -c '{instructedAmount: {amount: "10.00", currency: "NOK"}, creditorName: "Eksempel AS",
    creditorAccount: {bban: .accounts[1].bban, currency: "NOK"}, debtorAccount: {bban: .accounts[0].bban, currency: "NOK"}}')
payment=$domestic/$(call POST "$domestic" -H "$psu" -H "$session" --data-binary "$body" | jq -er .paymentId)
call POST "$payment/authorisations" -H "$psu" -H "$session" | sca >/dev/null
echo "status $(call GET "$payment/status" -H "$psu" -H "$session" | jq -er .transactionStatus)"
