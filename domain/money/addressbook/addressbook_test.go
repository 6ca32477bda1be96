package addressbook

import (
	"fmt"
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

func TestBook(t *testing.T) {
	const segwit = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
	book := Book{{ID: 1, Name: "one", Address: "0xABCDEF0123"}, {ID: 2, Name: "two", Address: "Daddress-2"},
		{ID: 8, Name: "eight", Address: segwit}, {ID: 9, Name: "nine", Address: strings.ToUpper(segwit)}}
	for _, c := range []struct {
		e     Entry
		field string // "" if it is free
	}{
		{Entry{Name: "three", Address: "Daddress-3"}, ""},
		{Entry{Name: "one", Address: "Daddress-3"}, "name"},
		{Entry{Name: "One", Address: "dADDRESS-2"}, ""},
		{Entry{Name: "three", Address: "0xabcdef0123", NetworkID: 7}, "address"},
		{Entry{ID: 1, Name: "one", Address: "0xabcdef0123"}, ""},
		{Entry{ID: 1, Name: "two", Address: "0xabcdef0123"}, "name"},
		{Entry{Name: "three", Address: "abcdef0123"}, "address"},
		{Entry{Name: "three", Address: strings.ToUpper(segwit)}, "address"},
		{Entry{ID: 9, Name: "renamed", Address: strings.ToUpper(segwit)}, ""}, // one of two that exist
		{Entry{ID: 2, Name: "two", Address: segwit}, "address"},
		{Entry{ID: 1, Name: "one", Address: "Daddress-2"}, "address"},
	} {
		err := book.Free(c.e)
		if c.field == "" && err == nil {
			continue
		}
		if f, ok := err.(*fault.Error); !ok || f.Code != fault.RecordAlreadyExist || f.Field != c.field {
			t.Errorf("%+v: %v, want %q", c.e, err, c.field)
		}
	}
	if e, err := book.Find(2); err != nil || e.Name != "two" {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := book.Find(3); fault.CodeOf(err) != fault.RecordNotFound {
		t.Error(err)
	}
	var full Book
	for i := range 20 {
		if err := full.Room(); err != nil {
			t.Fatalf("no room beside %d: %v", i, err)
		}
		full = append(full, Entry{ID: int64(i + 1), Name: fmt.Sprint(i)})
	}
	if err := full.Room(); fault.CodeOf(err) != fault.RecordLimitReached {
		t.Errorf("room beside 20: %v", err)
	}
}
