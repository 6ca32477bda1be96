package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const askCallback = `import { callback } from './castellan-callback.js';
let input = '';
process.stdin.setEncoding('utf8');
for await (const part of process.stdin) input += part;
const { x, messages } = JSON.parse(input);
const options = { baseUrl: 'https://id.example.com/', now: () => 1_700_000_000_000, fetch: async (url) => ({
	ok: url === 'https://id.example.com/.well-known/jwks.json',
	json: async () => ({ keys: [{ kid: 'k1', kty: 'OKP', crv: 'Ed25519', x, use: 'sig' }] }) }) };
const read = ({ headers, body, service }) => callback(headers, body, { ...options, service })
	.then((e) => e.data.reference, (e) => e.message);
process.stdout.write(JSON.stringify(await Promise.all(messages.map(read))));`

// The module accepts a callback that is signed, recent, and for the service.
func TestCallbackModule(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	type message struct {
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
		Service string            `json:"service"`
	}
	of := func(service, stamp, body string, edits ...string) message {
		m := message{map[string]string{"webhook-id": "m1", "webhook-timestamp": stamp, "webhook-key-id": "k1",
			"webhook-aud": "shop", "webhook-signature": "v1,x v1a,* v1a," + base64.StdEncoding.EncodeToString(
				ed25519.Sign(private, []byte("m1."+stamp+"."+body)))}, body, service}
		for i := 0; i < len(edits); i += 2 {
			m.Headers[edits[i]] = edits[i+1]
		}
		return m
	}
	const now, body = "1700000000", `{"aud":"shop","data":{"reference":"é1"}}`
	changed := of("shop", now, body)
	changed.Body += " "
	input, err := json.Marshal(map[string]any{"x": base64.RawURLEncoding.EncodeToString(public), "messages": []message{
		of("shop", now, body), of("shop", now, body, "webhook-aud", ""), of("bank", now, body),
		of("shop", now, body, "webhook-aud", "bank"), of("shop", now, `{"data":{"reference":"old"}}`),
		of("", now, body), of("shop", "1699999699", body), of("shop", "1700000301", body), changed,
		of("shop", now, body, "webhook-key-id", "k2"), of("shop", now, body, "webhook-signature", "")}})
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", "--input-type=module", "-e", askCallback)
	node.Dir, node.Stdin, node.Stderr = "../../web/static", bytes.NewReader(input), new(bytes.Buffer)
	out, err := node.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, node.Stderr)
	}
	var got []string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	const unsigned, late = "the callback is not signed by a key of https://id.example.com/",
		"the callback is too old, or has no time"
	want := []string{"é1", "é1", "the callback is not for bank", "the callback is not for shop",
		"the callback is not for shop", "service is the name of your key", late, late, unsigned, unsigned, unsigned}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
