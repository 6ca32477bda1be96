package rest

import (
	"encoding/base64"
	"fmt"
	"testing"

	"castellan/domain/fault"
)

// A cursor is read in the one spelling in which it is written, and never holds
// what a database refuses (D-GEN-11, SEC-27).
func TestCursor(t *testing.T) {
	const form = "%d %s"
	for text, want := range map[string]bool{
		"17 a": true, "-1 ş": true, "0 a:b": true,
		"17 a\x00": false, "17 \x00": false, "17 \xff": false, "17 a b": false, "17 a ": false, " 17 a": false, "17  a": false, "+17 a": false,
		"017 a": false, "-0 a": false, "17": false, "17 ": false, "a 17": false, "99999999999999999999 a": false, "17 a\n": false, "17\ta": false, "17 a\u0085b": false, " ": false,
	} {
		sent := base64.RawURLEncoding.EncodeToString([]byte(text))
		var n int64
		var s string
		given, err := Paging{Cursor: &sent}.After(form, &n, &s)
		if given != want || want == (err != nil) || err != nil && fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%q: %v, %v", text, given, err)
		}
		if want && fmt.Sprintf(form, n, s) != text {
			t.Errorf("%q was read as %d and %q", text, n, s)
		}
	}
	for _, sent := range []string{"MTcgYQ==", "MTcgYR", "MTcg\nYQ", "!"} { // "17 a" is MTcgYQ
		var n int64
		var s string
		if given, err := (Paging{Cursor: &sent}).After(form, &n, &s); given || err == nil {
			t.Errorf("%q: %v, %v", sent, given, err)
		}
	}
	if given, err := (Paging{Cursor: new("")}).After(form); given || err != nil {
		t.Errorf("no cursor: %v, %v", given, err)
	}
}
