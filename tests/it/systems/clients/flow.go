// A whole flow, from a first call without a PSU to a payment that is signed: flow BASE CA CERTIFICATE KEY APPROVE
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"flow/tppsignature"
)

const domestic = "/v1/payments/norwegian-domestic-credit-transfers"

type link struct{ Href string }

type answer struct {
	Accounts          []struct{ ResourceId, Bban string }
	PaymentId         string
	TransactionStatus string
	Links             map[string]link `json:"_links"`
}

var (
	client  http.Client
	headers = http.Header{"Tpp-Redirect-Uri": {"https://tpp.example/back"}, "Psu-Ip-Address": {"192.0.2.7"}}
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func call(method, path, body string, status int) (found answer) {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	request := must(http.NewRequest(method, os.Args[1]+path, content))
	request.Header = headers.Clone()
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response := must(client.Do(request))
	text := must(io.ReadAll(response.Body))
	if response.StatusCode != status {
		panic(fmt.Sprint(response.StatusCode, string(text)))
	}
	if err := json.Unmarshal(text, &found); err != nil {
		panic(err)
	}
	return found
}

// sca is the PSU's part; it gives the parameters of the redirect.
func sca(from answer) url.Values {
	redirect := must(exec.Command(os.Args[5], "approve", from.Links["scaRedirect"].Href).Output())
	return must(url.Parse(strings.TrimSpace(string(redirect)))).Query()
}

func main() {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(os.Args[2])))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	client.Transport = must(tppsignature.New(transport, os.Args[3], os.Args[4]))

	back := sca(call("GET", "/v1/accounts", "", 401))
	headers.Set("PSU-ID", back.Get("psu-id"))
	headers.Set("TPP-Session-ID", back.Get("tpp-session-id"))
	accounts := call("GET", "/v1/accounts", "", 200).Accounts
	call("GET", "/v1/accounts/"+accounts[0].ResourceId+"/balances", "", 200)
	body := fmt.Sprintf(`{"instructedAmount":{"amount":"10.00","currency":"NOK"},"creditorName":"Eksempel AS","creditorAccount":{"bban":%q,"currency":"NOK"},"debtorAccount":{"bban":%q,"currency":"NOK"}}`,
		accounts[1].Bban, accounts[0].Bban)
	payment := domestic + "/" + call("POST", domestic, body, 201).PaymentId
	sca(call("POST", payment+"/authorisations", "", 201))
	fmt.Println("status", call("GET", payment+"/status", "", 200).TransactionStatus)
}
