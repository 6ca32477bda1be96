package addressbook

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"
)

// D-WAD-04, at its limits.
func TestName(t *testing.T) {
	for _, c := range []struct {
		sent, kept string
		problem    bool
		code       fault.Code
	}{
		{"a", "a", false, ""},
		{" \t\u00a0a b\u2003\n", "a b", false, ""},
		{"e\u0301", "\u00e9", false, ""},
		{"", "", true, ""},
		{" \u2003 ", "", true, ""},
		{"a\nb", "a\nb", true, ""},
		{"a\u0085b", "a\u0085b", true, ""},
		{"\xff", "\xff", true, ""},
		{"a\u202eb", "a\u202eb", true, ""},
		{"می\u200cخواهم", "می\u200cخواهم", false, ""},
		{strings.Repeat("x", 32), strings.Repeat("x", 32), false, ""},
		{strings.Repeat("x", 33), strings.Repeat("x", 33), false, fault.CharLimitExceeded},
		{strings.Repeat("e\u0301", 32), strings.Repeat("\u00e9", 32), false, ""},
		{strings.Repeat(" ", 5000) + "x", "x", false, ""},
		{strings.Repeat("x", 4097), strings.Repeat("x", 4097), false, fault.CharLimitExceeded},
	} {
		n := NewName(c.sent)
		if n.String() != c.kept || (n.problem() != "") != c.problem || fault.CodeOf(n.fits()) != c.code {
			t.Errorf("%.40q: kept %.40q, problem %q, %v", c.sent, n, n.problem(), n.fits())
		}
	}
}

// The spellings of one address are one address. Of two that exist already each keeps its own.
func TestBook(t *testing.T) {
	const segwit = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
	book := Book{{ID: 2, Name: "two", Address: "Daddress-2"}, {ID: 8, Name: "eight", Address: segwit},
		{ID: 9, Name: "nine", Address: strings.ToUpper(segwit)}}
	for _, c := range []struct {
		e    Entry
		free bool
	}{
		{Entry{Name: "three", Address: strings.ToUpper(segwit)}, false},
		{Entry{ID: 9, Name: "renamed", Address: strings.ToUpper(segwit)}, true},
		{Entry{ID: 2, Name: "two", Address: segwit}, false},
	} {
		if err := book.Free(c.e); (err == nil) != c.free || err != nil && fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Errorf("%+v: %v", c.e, err)
		}
	}
}
