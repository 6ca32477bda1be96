package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
)

// FuzzBind: whatever comes as query and body, the binder gives a value or INVALID_FIELD, and keeps no bytes of the
// request, which the server uses again.
func FuzzBind(f *testing.F) {
	f.Add("s=a&n=5&id=7&d=1.5&l=a&l=b&m=%7B%7D", `{"s":"b","ids":[1,2],"t":"2026-01-01"}`)
	f.Add("%zz=1&s=%ff&=&&s", `{"s":"\u0000","n":1e309}`)
	f.Add("", `[]`)
	endpoints := []Endpoint{endpointOf[everything]("GET"), endpointOf[everything]("POST"),
		endpointOf[everything]("DELETE")}
	f.Fuzz(func(t *testing.T, query, body string) {
		for i := range endpoints {
			sent := []byte(body)
			in, _, err := endpoints[i].Bind(Query{Raw: query}, sent)
			var refused *fault.Error
			switch {
			case err != nil && (!errors.As(err, &refused) || refused.Code != fault.InvalidField):
				t.Fatalf("%q %q: %v", query, body, err)
			case err != nil:
				continue
			}
			before, err := json.Marshal(in)
			if err != nil {
				t.Fatalf("%q %q: %v", query, body, err)
			}
			clear(sent)
			if after, _ := json.Marshal(in); !bytes.Equal(before, after) {
				t.Fatalf("%q %q: %s became %s", query, body, before, after)
			}
		}
	})
}

// FuzzBase64: an accepted text decodes as in another decoder, and has one reading only.
func FuzzBase64(f *testing.F) {
	for _, seed := range []string{"", "AA==", "AA", "-_8", "+/8=", "data:image/png;base64,AAAA", "A A=", "AAA=A", "AB=="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseBase64(text)
		if err != nil {
			return
		}
		if i := bytes.Index(text, []byte(";base64,")); bytes.HasPrefix(text, []byte("data:")) {
			text = text[i+len(";base64,"):]
		}
		plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(text), "="))
		if want := base64.RawStdEncoding.EncodeToString(got); want != plain {
			t.Fatalf("%q is read as %q", text, want)
		}
	})
}

// FuzzTime: a time that is taken is written so that it is read as the same instant.
func FuzzTime(f *testing.F) {
	for _, seed := range []string{"2026-01-31", "2026-01-31T10:00:00Z", "2026-01-31T10:00:00 03:00", "1700000000000", "-1",
		"2026-02-30", "9999-12-31T23:59:60Z", "2026-01-31T10:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTime(s)
		if err != nil {
			return
		}
		if y := got.Year(); y < 1 || y > 275760 {
			t.Fatalf("%q is in the year %d", s, y)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatalf("%q cannot be written: %v", s, err)
		}
	})
}

// FuzzDecimal: a number that is taken has one spelling, which is read as itself.
func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1e3", "1E-60", "0.10", "00", ".5", "5.", "1e999999999", "٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseDecimal(s)
		if err != nil {
			return
		}
		if again, err := ParseDecimal(string(got)); err != nil || again != got || !json.Valid([]byte(got)) ||
			strings.ContainsAny(string(got), "eE+") || got == "-0" {
			t.Fatalf("%q: %q and %q, %v", s, got, again, err)
		}
	})
}

// FuzzCursor: a cursor that is taken is the one that the server writes for the same place (SEC-27).
func FuzzCursor(f *testing.F) {
	type place struct {
		At int64
		ID string
	}
	f.Add(cursorOf(place{5, "01ARZ3NDEKTSV4RRFFQ69G5FAV"}))
	f.Add("e30")
	f.Add("bnVsbA")
	f.Fuzz(func(t *testing.T, cursor string) {
		mark, err := markOf[place](cursor)
		if err == nil && mark != nil && (cursorOf(mark) != cursor || strings.Contains(mark.ID, "\x00")) {
			t.Fatalf("%q is read as %+v", cursor, mark)
		}
	})
}

// FuzzAcceptLanguage: the header gives one of the three languages or none.
func FuzzAcceptLanguage(f *testing.F) {
	f.Add("tr;q=0, ar-EG, en")
	f.Add(";;q=,,")
	f.Fuzz(func(t *testing.T, header string) {
		if l := AcceptLanguage(header); l != "" && l != "en" && l != "tr" && l != "ar" {
			t.Fatalf("%q gives %q", header, l)
		}
	})
}
