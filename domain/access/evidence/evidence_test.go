package evidence_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"castellan/domain/access/evidence"
	"castellan/domain/access/intent"
)

// vectors is the published file of test vectors; web/intent_test.go checks the ES module with it.
type vectors struct {
	Documents []struct {
		Intent                  intent.Document
		Canonical, IntentDigest string
	}
	Evidence []struct {
		Name     string
		Valid    bool
		Evidence evidence.Evidence
	}
}

func published(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/intent-vectors.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || len(v.Documents) < 4 || len(v.Evidence) < 7 {
		t.Fatalf("%v: %d documents, %d pieces of evidence", err, len(v.Documents), len(v.Evidence))
	}
	return v
}

// The published vectors hold: canonical forms, digests, and which evidence verifies.
func TestVectors(t *testing.T) {
	v := published(t)
	for _, d := range v.Documents {
		if got := d.Intent.Canonical(); string(got) != d.Canonical || intent.Digest(got) != d.IntentDigest {
			t.Errorf("%s\nwant %s", got, d.Canonical)
		}
	}
	for _, e := range v.Evidence {
		if _, err := e.Evidence.Verify(); (err == nil) != e.Valid {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
}

// No change of a byte of document, digest, signature or key verifies.
func TestChangedEvidence(t *testing.T) {
	good := published(t).Evidence[0].Evidence
	if _, err := good.Verify(); err != nil || !good.Signed() {
		t.Fatal(err)
	}
	flip := func(s string) string {
		b := []byte(s)
		b[rand.IntN(len(b))] ^= byte(1 + rand.IntN(255))
		return string(b)
	}
	for range 20_000 {
		e := good
		e.Proofs = append([]evidence.Proof(nil), good.Proofs...)
		var part *string
		switch rand.IntN(5) {
		case 0:
			part = &e.Document
		case 1:
			part = &e.IntentDigest
		case 2:
			part = &e.Proofs[0].JWS
		case 3:
			part = &e.Proofs[0].JWK
		default:
			part = &e.Proofs[0].DeviceID
		}
		before := *part
		*part = flip(before)
		if _, err := e.Verify(); err == nil {
			t.Fatalf("%q became %q and verifies", before, *part)
		}
	}
}
