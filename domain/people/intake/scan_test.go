package intake

import (
	"errors"
	"io"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// A scanner finds the array under a key of an object, and refuses a document that is not one of the format.
func TestScannerFindsTheArray(t *testing.T) {
	for text, want := range map[string]string{
		`{"users":[1, "a", {"b": [2]}]}`:             `1|"a"|{"b": [2]}`,
		` { "x" : {"users":[9]} , "users" : [ 1 ] }`: `1`,
		`{"x":"]}\"","users":[]}`:                    ``,
		`{"x":1,"y":true,"users":[true]}`:            `true`,
		`{}`:                                         "none", `{"x":[]}`: "none", `{"x":1}`: "none",
		``: "fault", `{`: "fault", `[`: "fault", `{"users"`: "fault", `{"users":`: "fault", `{"users":{`: "fault",
		`{"x`: "fault", `{"x":`: "fault", `{"x":1`: "fault", `{"x":1 "users":[]}`: "fault", `{1:2,"users":[]}`: "fault",
		`{"x":1,`: "fault", `{"x":1,}`: "fault", `{"x" 1}`: "fault", `{"users":[1`: "fault", `{"users":[1,`: "fault",
		`{"users":[1 2]}`: "1 2", `{"users":["a" "b"]}`: "fault",
	} {
		storetest.Equal(t, scanned(text, "users"), want, text)
	}
	for text, want := range map[string]string{`[1,2]`: "1|2", ` [ ]`: "", `{}`: "fault", ``: "fault", `[`: "fault"} {
		storetest.Equal(t, scanned(text, ""), want, text)
	}
}

// scanned returns the elements of the array under a key, "none" without the key and "fault" for errSyntax.
func scanned(text, key string) string {
	s := newScanner(strings.NewReader(text))
	found, err := s.toArray(key)
	if err == nil && !found {
		return "none"
	}
	var all []string
	for first := true; err == nil; first = false {
		var element []byte
		if element, err = s.next(first); err == nil {
			all = append(all, string(element))
		}
	}
	switch {
	case errors.Is(err, errSyntax):
		return "fault"
	case !errors.Is(err, io.EOF):
		return err.Error()
	}
	return strings.Join(all, "|")
}

// A failure of the reader is reported as it is.
func TestScannerReportsFailures(t *testing.T) {
	failed := errors.New("the disk is broken")
	const whole = `{"x":1,"users":[1,2]}`
	for n := range strings.LastIndex(whole, "]") + 1 {
		s := newScanner(io.MultiReader(strings.NewReader(whole[:n]), broken{failed}))
		found, err := s.toArray("users")
		for first := found; err == nil; first = false {
			_, err = s.next(first)
		}
		if !errors.Is(err, failed) {
			t.Errorf("after %q: %v", whole[:n], err)
		}
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
