# Signs requests of curl: . ./tpp_signature.sh; tpp_call GET https://bank.example/v1/accounts -H "TPP-Redirect-URI: https://tpp.example/back"
# TPP_CERTIFICATE and TPP_KEY name the files. A body follows as --data-binary BODY, a header as -H "Name: value".
tpp_call() {
    local method=$1 url=$2 target name value body= lines names argument previous=
    shift 2
    target=/${url#*://*/}
    lines="(request-target): $(printf %s "$method" | tr '[:upper:]' '[:lower:]') $target"
    names="(request-target)"
    set -- "$@" -H "Date: $(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')" -H "X-Request-ID: $(cat /proc/sys/kernel/random/uuid)"
    for argument; do
        [ "$previous" != --data-binary ] || body=$argument
        previous=$argument
    done
    if [ -n "$body" ]; then
        set -- "$@" -H "Digest: SHA-256=$(printf %s "$body" | openssl dgst -sha256 -binary | openssl base64 -A)" -H "Content-Type: application/json"
    fi
    for argument; do
        name=$(printf %s "${argument%%: *}" | tr '[:upper:]' '[:lower:]')
        case $name in
            date | digest | x-request-id | psu-id | psu-corporate-id | tpp-redirect-uri)
                names="$names $name"
                lines="$lines
$name: ${argument#*: }" ;;
        esac
    done
    value="keyId=\"SN=$(openssl x509 -in "$TPP_CERTIFICATE" -noout -serial | cut -d= -f2),CA=$(
        openssl x509 -in "$TPP_CERTIFICATE" -noout -issuer -nameopt RFC2253,-esc_msb,utf8 | sed 's/^issuer= *//')\",algorithm=\"rsa-sha256\",headers=\"$names\",signature=\"$(
        printf %s "$lines" | openssl dgst -sha256 -sign "$TPP_KEY" | openssl base64 -A)\""
    case $value in
        *[![:print:]]*) value="=?utf-8?B?$(printf %s "$value" | openssl base64 -A)?=" ;;
    esac
    curl --silent --show-error --request "$method" "$url" "$@" -H "Signature: $value" \
        -H "TPP-Signature-Certificate: $(openssl x509 -in "$TPP_CERTIFICATE" -outform DER | openssl base64 -A)"
}
