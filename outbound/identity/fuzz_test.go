package identity

import (
	"bytes"
	"testing"
)

// FuzzAnswer checks that the client returns yes only for an answer that contains a yes.
func FuzzAnswer(f *testing.F) {
	for _, verdict := range []string{"true", "false", "1", " 0 ", "TRUE", ""} {
		f.Add([]byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
			`<TCKimlikNoDogrulaResponse xmlns="http://tckimlik.nvi.gov.tr/WS"><TCKimlikNoDogrulaResult>` + verdict +
			`</TCKimlikNoDogrulaResult></TCKimlikNoDogrulaResponse></s:Body></s:Envelope>`))
	}
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if yes, err := read(text); yes && (err != nil || !bytes.ContainsAny(text, "1t&")) {
			t.Fatalf("%q is a yes, %v", text, err)
		}
	})
}
