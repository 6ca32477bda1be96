package web_test

import (
	"fmt"
	"os"
	"testing"

	"castellan/web/webtest"
)

// intentVectors checks the module of devices with the published vectors: the canonical form and the digest of intents.
func intentVectors(t *testing.T, tab *webtest.Tab) {
	vectors, err := os.ReadFile("../docs/intent-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	tab.Open(newService(t).URL + "/")
	got := webtest.Value[string](tab, fmt.Sprintf(`(async () => {
		const { canonical, intentDigest } = await import('/static/castellan-device.js');
		const { documents } = %s;
		let checked = 0;
		for (const one of documents) {
			if (canonical(one.intent) !== one.canonical) return canonical(one.intent);
			if (await intentDigest(one.intent) !== one.intentDigest) return one.canonical + ': another digest';
			checked++;
		}
		return checked + ' of ' + documents.length; })()`, vectors))
	if got != "4 of 4" {
		t.Errorf("checked %s", got)
	}
}
