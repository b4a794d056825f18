// A core with TLS that requires a client certificate: PORT CERTIFICATE KEY CLIENT_CA.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
)

func main() {
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(os.Args[4])
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		panic("no client CA")
	}
	server := &http.Server{
		Addr: "127.0.0.1:" + os.Args[1],
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("{}"))
		}),
		TLSConfig: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots},
	}
	panic(server.ListenAndServeTLS(os.Args[2], os.Args[3]))
}
