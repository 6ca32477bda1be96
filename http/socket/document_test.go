package socket

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gobwas/ws"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
)

var update = flag.Bool("update", false, "write the golden files")

// document is what the tests read of it.
type document struct {
	Operations map[string]struct {
		CloseCodes map[string]string `json:"x-close-codes"`
	}
	Components struct {
		Messages map[string]struct {
			Name     string
			Payload  openapi3.Schema
			Examples []struct {
				Name    string
				Payload any
			}
		}
	}
}

func read(t *testing.T) (d document) {
	t.Helper()
	storetest.Must(t, json.Unmarshal(AsyncAPI, &d))
	storetest.Equal(t, len(d.Components.Messages), 2, "messages")
	return d
}

// fits checks a message against the one of its name in the document.
func (d document) fits(payload any) error {
	name := ""
	if m, ok := payload.(map[string]any); ok {
		name, _ = m["event"].(string)
	}
	for _, m := range d.Components.Messages {
		if m.Name == name {
			return m.Payload.VisitJSON(payload, openapi3.EnableJSONSchema2020())
		}
	}
	return os.ErrNotExist
}

// The document is published beside the code that it describes.
func TestGoldenAsyncAPI(t *testing.T) {
	golden := filepath.Join("..", "..", "docs", "asyncapi.json")
	if *update {
		storetest.Must(t, os.WriteFile(golden, AsyncAPI, 0o644))
	}
	if got, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, AsyncAPI) {
		t.Errorf("docs/asyncapi.json is not the served document (make golden writes it): %v", err)
	}
}

var methodNames = []challenge.Name{challenge.TOTP, challenge.PUSH, challenge.MAIL, challenge.SMS}

// The document has every message that the hub can send, and no other: a changed
// message does not fit.
func TestFramesFitTheDocument(t *testing.T) {
	d := read(t)
	outcomes := []string{`{"success":true,"data":{"sessionKey":"k"},"headers":{"x-auth":"t"}}`,
		`{"success":true,"headers":{"ot-auth":"t"}}`, `{"success":false}`,
		`{"success":false,"code":"RECORD_NOT_FOUND"}`}
	var texts [][]byte
	virtual(t, func(w *world) {
		c := w.join("c1", time.Hour)
		for _, n := range methodNames {
			w.hub.Receive(w.happen("c1", stepup.Event{MethodID: "m", Method: n}))
		}
		for _, o := range outcomes {
			w.hub.Receive(w.happen("c1", sealed(o)))
		}
		synctest.Wait()
		texts = c.texts
	})
	if len(texts) != len(methodNames)+len(outcomes) {
		t.Fatalf("%d frames", len(texts))
	}
	for _, text := range texts {
		var payload map[string]any
		storetest.Must(t, json.Unmarshal(text, &payload))
		if err := d.fits(payload); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for key := range payload {
			less := map[string]any{}
			for k, v := range payload {
				if k != key {
					less[k] = v
				}
			}
			if d.fits(less) == nil {
				t.Errorf("the document does not ask for %s", key)
			}
		}
		payload["more"] = 1
		if d.fits(payload) == nil {
			t.Error("the document lets any key pass")
		}
		delete(payload, "more")
		payload["data"] = append(payload["data"].([]any), payload["data"].([]any)[0])
		if d.fits(payload) == nil {
			t.Error("the document lets two objects pass")
		}
	}
	for name, m := range d.Components.Messages {
		for _, e := range m.Examples {
			if err := d.fits(e.Payload); err != nil {
				t.Errorf("example %s of %s: %v", e.Name, name, err)
			}
		}
	}
}

// Every code that the server closes with is explained, and no other.
func TestCloseCodesAreExplained(t *testing.T) {
	explained := read(t).Operations["hear"].CloseCodes
	for code := range reasons {
		if explained[strconv.Itoa(int(code))] == "" {
			t.Errorf("%d is not explained", code)
		}
	}
	for code := range explained {
		n, err := strconv.Atoi(code)
		if err != nil || reasons[ws.StatusCode(n)] == "" {
			t.Errorf("%s is never sent", code)
		}
	}
	if codes := []closeCode{closeExpired, closeGone, closeTooMany, closeRestart, closeInternal, closeTooBig, closeFlood,
		closeNotText, closeProtocol}; len(codes) != len(reasons) ||
		slices.ContainsFunc(codes, func(c closeCode) bool { return reasons[c] == "" }) {
		t.Error("a code has no reason")
	}
}

// The document says how to get to the socket, and is else the same.
func TestDocumentServer(t *testing.T) {
	read := func(at string) map[string]any {
		b, err := Document(at)
		var doc map[string]any
		if err != nil || json.Unmarshal(b, &doc) != nil {
			t.Fatalf("%q: %s, %v", at, b, err)
		}
		return doc
	}
	plain := read("")
	here := fmt.Sprint(plain["servers"])
	delete(plain, "servers")
	for at, want := range map[string]string{
		"http://localhost:8080":       `map[public:map[host:localhost:8080 protocol:ws]] /2fa`,
		"https://id.example.com/auth": `map[public:map[host:id.example.com pathname:/auth protocol:wss]] /2fa`,
		"/auth/v1":                    here + ` /auth/v1/2fa`,
	} {
		doc := read(at)
		channel := doc["channels"].(map[string]any)["twoFactor"].(map[string]any)
		storetest.Equal(t, fmt.Sprint(doc["servers"], " ", channel["address"]), want, at)
		delete(doc, "servers")
		channel["address"] = Path
		storetest.Same(t, doc, plain, at)
	}
	if _, err := Document("http://["); err == nil {
		t.Error("an address that is none")
	}
}
