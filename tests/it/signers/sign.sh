#!/bin/sh
# Signs with OpenSSL's command line: sign.sh CERTIFICATE KEY < lines
#
# Each line of standard input is "name: value", in signing order. One line is written for each way in which OpenSSL
# prints the issuer, "variant<TAB>Signature value".
set -eu
text=$(cat)
names=$(printf '%s\n' "$text" | sed 's/: .*//' | paste -sd' ' -)
serial=$(openssl x509 -in "$1" -noout -serial | sed 's/serial=//')
signature=$(printf '%s' "$text" | openssl dgst -sha256 -sign "$2" | openssl base64 -A)

for option in RFC2253 RFC2253,-esc_msb RFC2253,sname oneline,-space_eq,dn_rev,sep_comma_plus; do
    issuer=$(openssl x509 -in "$1" -noout -issuer -nameopt "$option" | sed 's/^issuer= *//')
    printf '%s\tkeyId="SN=%s,CA=%s",algorithm="rsa-sha256",headers="%s",signature="%s"\n' "$option" "$serial" "$issuer" "$names" "$signature"
done
