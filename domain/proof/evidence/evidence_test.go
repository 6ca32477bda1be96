package evidence_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/evidence"
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
		Unsigned []string
		Evidence json.RawMessage
	}
}

func published(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/intent-vectors.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || len(v.Documents) < 4 || len(v.Evidence) < 25 {
		t.Fatalf("%v: %d documents, %d pieces of evidence", err, len(v.Documents), len(v.Evidence))
	}
	return v
}

func verify(text []byte) (evidence.Verdict, error) {
	e, err := evidence.Read(text)
	if err != nil {
		return evidence.Verdict{}, err
	}
	return e.Verify()
}

// The published vectors hold: canonical forms, digests, which evidence verifies, and which of its facts are unsigned.
func TestVectors(t *testing.T) {
	v := published(t)
	for _, d := range v.Documents {
		if got := d.Intent.Canonical(); string(got) != d.Canonical || intent.Digest(got) != d.IntentDigest {
			t.Errorf("%s\nwant %s", got, d.Canonical)
		}
	}
	for _, e := range v.Evidence {
		if got, err := verify(e.Evidence); (err == nil) != e.Valid || e.Valid && !slices.Equal(got.Unsigned, e.Unsigned) {
			t.Errorf("%s: %q, %v", e.Name, got.Unsigned, err)
		}
	}
}

// leaves visits the values of a JSON tree; set replaces a value.
func leaves(at any, set func(any), visit func(value any, set func(any))) {
	switch at := at.(type) {
	case map[string]any:
		for name, value := range at {
			leaves(value, func(v any) { at[name] = v }, visit)
		}
	case []any:
		visit(at, set)
		for i, value := range at {
			leaves(value, func(v any) { at[i] = v }, visit)
		}
	default:
		visit(at, set)
	}
}

// changes returns other values in the place of a value.
func changes(value any) (out []any) {
	switch v := value.(type) {
	case string:
		for _, name := range []string{"", v + "x", "PENDING", "EXECUTING", "SUCCESS", "FAILURE", "DENIED", "CLOSED",
			"UNKNOWN", "APPROVED", "TOTP", "PUSH", "MAIL", "SMS", "optional", "required"} {
			if name != v {
				out = append(out, name)
			}
		}
		for range 200 {
			b := []byte(v)
			if len(b) > 0 {
				b[rand.IntN(len(b))] ^= byte(1 + rand.IntN(127))
				out = append(out, string(b))
			}
		}
	case float64:
		out = []any{v + 1, v - 1, 0.5 - v}
	case bool:
		out = []any{!v}
	case []any:
		for i := range v {
			out = append(out, slices.Delete(slices.Clone(v), i, i+1), append(slices.Clone(v), v[i]))
		}
		turned := slices.Clone(v)
		slices.Reverse(turned)
		if len(v) > 1 {
			out = append(out, turned)
		}
	case nil:
		out = []any{map[string]any{"id": "01.0/1", "hash": "00", "kty": "EC"}}
	}
	return out
}

// No change of any fact of signed evidence verifies: of states, policies, methods, lists and bytes.
func TestChangedEvidence(t *testing.T) {
	tried := 0
	for _, e := range published(t).Evidence {
		if _, err := verify(e.Evidence); err != nil || e.Unsigned != nil {
			continue
		}
		var tree any
		storetest.Must(t, json.Unmarshal(e.Evidence, &tree))
		leaves(tree, nil, func(value any, set func(any)) {
			for _, other := range changes(value) {
				set(other)
				text := storetest.Value(json.Marshal(tree))(t)
				if _, err := verify(text); err == nil {
					t.Fatalf("%s: %v became %q and verifies", e.Name, value, other)
				}
				tried++
			}
			set(value)
		})
		text, err := json.Marshal(tree)
		if _, again := verify(text); err != nil || again != nil {
			t.Fatalf("%s: the tree did not come back: %v", e.Name, again)
		}
		for _, twice := range []string{`"state":"DENIED",`, `"State":"SUCCESS",`, `"ſtate":"SUCCESS",`} {
			changed := strings.Replace(string(text), `"state":`, twice+`"state":`, 1)
			if _, err := verify([]byte(changed)); err == nil || changed == string(text) {
				t.Errorf("%s: %s is read beside another state", e.Name, twice)
			}
		}
		// Without the statement it is evidence of version 1, and is no longer said to be signed.
		tree.(map[string]any)["v"], tree.(map[string]any)["service"] = 1, nil
		if text, err = json.Marshal(tree); err != nil {
			t.Fatal(err)
		}
		if got, err := verify(text); err == nil && !slices.Contains(got.Unsigned, "the outcome") {
			t.Errorf("%s: as version 1: %+v", e.Name, got)
		}
	}
	if tried < 10_000 {
		t.Errorf("%d changes", tried)
	}
}
