// Package tppsignature signs each request of an http.Client: transport, err := tppsignature.New(http.DefaultTransport, "tpp.pem", "tpp.key").
package tppsignature

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

type Transport func(*http.Request) (*http.Response, error)

func (t Transport) RoundTrip(call *http.Request) (*http.Response, error) { return t(call) }

func New(next http.RoundTripper, certificateFile, keyFile string) (Transport, error) {
	pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
	if err != nil {
		return nil, err
	}
	leaf, _ := x509.ParseCertificate(pair.Certificate[0])
	// leaf.Issuer prints attributes that Go does not know at the end, organizationIdentifier among them.
	var issuer pkix.RDNSequence
	asn1.Unmarshal(leaf.RawIssuer, &issuer)
	keyId := fmt.Sprintf("SN=%X,CA=%s", leaf.SerialNumber, issuer)
	b64 := base64.StdEncoding.EncodeToString
	return func(call *http.Request) (*http.Response, error) {
		request, id := call.Clone(call.Context()), make([]byte, 16)
		if request.Body != nil {
			body, _ := io.ReadAll(request.Body)
			sum := sha256.Sum256(body)
			request.Header.Set("Digest", "SHA-256="+b64(sum[:]))
			request.Body = io.NopCloser(bytes.NewReader(body))
		}
		rand.Read(id)
		request.Header.Set("X-Request-ID", fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
		request.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		names, text := "(request-target)", "(request-target): "+strings.ToLower(request.Method)+" "+request.URL.RequestURI()
		for _, name := range strings.Fields("date digest x-request-id psu-id psu-corporate-id tpp-redirect-uri") {
			if value := request.Header.Get(name); value != "" {
				names, text = names+" "+name, text+"\n"+name+": "+value
			}
		}
		sum := sha256.Sum256([]byte(text))
		signature, _ := pair.PrivateKey.(crypto.Signer).Sign(rand.Reader, sum[:], crypto.SHA256)
		value := fmt.Sprintf(`keyId="%s",algorithm="rsa-sha256",headers="%s",signature="%s"`, keyId, names, b64(signature))
		request.Header.Set("Signature", mime.BEncoding.Encode("utf-8", value))
		request.Header.Set("TPP-Signature-Certificate", b64(leaf.Raw))
		return next.RoundTrip(request)
	}, nil
}
