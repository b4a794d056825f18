// Reads what the gateway admits, as Go does. See reader.py for lines and arguments.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/url"
	"os"
	"path"
	"strings"
)

type found map[string][]string

var paths, names []string

type account struct {
	Iban, Bban, Currency *string
}

// Names are matched without regard to letter case.
type payment struct {
	InstructedAmount struct {
		Amount, Currency *string
	}
	CreditorName, CreditorAgent                             *string
	CreditorAccount, DebtorAccount                          account
	CreditorAddress                                         struct{ Street, BuildingNumber, PostalCode, City, Country *string }
	RemittanceInformationUnstructured                       *string
	PurposeCode, RequestedExecutionDate                     *string
	RegulatoryReportingCode, RegulatoryReportingInformation *string
	PaymentIds                                              []string
}

func fault(err error) found { return found{"fault": {err.Error()}} }

func members(raw []byte) found {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value interface{}
	if err := decoder.Decode(&value); err != nil {
		return fault(err)
	}
	all := found{}
	for _, name := range paths {
		at := value
		for _, step := range strings.Split(name, ".") {
			object, _ := at.(map[string]interface{})
			at = object[step]
		}
		switch at := at.(type) {
		case string:
			all[name] = []string{at}
		case []interface{}:
			if name == "paymentIds" {
				all[name] = []string{}
				for _, one := range at {
					if text, is := one.(string); is {
						all[name] = append(all[name], text)
					}
				}
			}
		}
	}
	return all
}

func fields(raw []byte) found {
	var read payment
	err := json.Unmarshal(raw, &read)
	if _, other := err.(*json.UnmarshalTypeError); err != nil && !other {
		return fault(err)
	}
	all := found{}
	if read.PaymentIds != nil {
		all["paymentIds"] = read.PaymentIds
	}
	for name, text := range map[string]*string{
		"instructedAmount.amount":           read.InstructedAmount.Amount,
		"instructedAmount.currency":         read.InstructedAmount.Currency,
		"creditorName":                      read.CreditorName,
		"creditorAgent":                     read.CreditorAgent,
		"creditorAccount.iban":              read.CreditorAccount.Iban,
		"creditorAccount.bban":              read.CreditorAccount.Bban,
		"creditorAccount.currency":          read.CreditorAccount.Currency,
		"debtorAccount.iban":                read.DebtorAccount.Iban,
		"debtorAccount.bban":                read.DebtorAccount.Bban,
		"debtorAccount.currency":            read.DebtorAccount.Currency,
		"creditorAddress.street":            read.CreditorAddress.Street,
		"creditorAddress.buildingNumber":    read.CreditorAddress.BuildingNumber,
		"creditorAddress.postalCode":        read.CreditorAddress.PostalCode,
		"creditorAddress.city":              read.CreditorAddress.City,
		"creditorAddress.country":           read.CreditorAddress.Country,
		"remittanceInformationUnstructured": read.RemittanceInformationUnstructured,
		"purposeCode":                       read.PurposeCode,
		"requestedExecutionDate":            read.RequestedExecutionDate,
		"regulatoryReportingCode":           read.RegulatoryReportingCode,
		"regulatoryReportingInformation":    read.RegulatoryReportingInformation,
	} {
		if text != nil {
			all[name] = []string{*text}
		}
	}
	return all
}

func parameters(raw string, last bool) found {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return fault(err)
	}
	all := found{}
	for _, name := range names {
		if list := values[name]; len(list) > 0 {
			at := 0
			if last {
				at = len(list) - 1
			}
			all[name] = []string{list[at]}
		}
	}
	return all
}

func segments(raw string, clean bool) found {
	parsed, err := url.ParseRequestURI(raw)
	if err != nil {
		return fault(err)
	}
	read := parsed.Path
	if clean {
		read = path.Clean(read)
	}
	return found{"segments": strings.Split(read, "/")[1:]}
}

func host(raw string) found {
	parsed, err := url.Parse(raw)
	if err != nil {
		return fault(err)
	}
	all := found{"host": {parsed.Hostname()}, "port": {}}
	if port := parsed.Port(); port != "" {
		all["port"] = []string{port}
	}
	return all
}

func contentType(raw string) found {
	media, parameters, err := mime.ParseMediaType(raw)
	if err != nil {
		return fault(err)
	}
	all := found{"media": {media}}
	if charset, stands := parameters["charset"]; stands {
		all["charset"] = []string{strings.Replace(strings.ToLower(charset), "utf8", "utf-8", 1)}
	}
	return all
}

func readers(kind string, raw []byte) [][]interface{} {
	text := string(raw)
	switch kind {
	case "body":
		return [][]interface{}{{"Go, a map", members(raw)}, {"Go, a struct", fields(raw)}}
	case "query":
		return [][]interface{}{{"Go, the first wins", parameters(text, false)}, {"Go, the last wins", parameters(text, true)}}
	case "path":
		return [][]interface{}{{"Go", segments(text, false)}, {"Go, cleaned", segments(text, true)}}
	case "content-type":
		return [][]interface{}{{"Go, mime", contentType(text)}}
	default:
		return [][]interface{}{{"Go", host(text)}}
	}
}

func main() {
	paths, names = strings.Split(os.Args[1], ","), strings.Split(os.Args[2], ",")
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := json.NewEncoder(out)
	for in.Scan() {
		kind, encoded, _ := strings.Cut(in.Text(), "\t")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			panic(err)
		}
		if err := answers.Encode(readers(kind, raw)); err != nil {
			panic(err)
		}
	}
}
