package mfa_test

import (
	"encoding/json"
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
)

func TestTextIn(t *testing.T) {
	for _, c := range []struct {
		text       mfa.Text
		lang, want string
	}{
		{mfa.Text{"tr": "t", "en": "e", "ar": "a"}, "ar", "a"},
		{mfa.Text{"tr": "t", "en": "e"}, "ar", "e"},
		{mfa.Text{"tr": "t", "ar": "a"}, "en", "t"},
		{mfa.Text{"ar": "a"}, "tr", "a"},
		{mfa.Text{"tr": "t", "en": "  "}, "en", "t"},
		{mfa.Text{"tr": "t"}, "", "t"},
		{mfa.Text{}, "en", ""},
		{nil, "en", ""},
	} {
		if got := c.text.In(c.lang); got != c.want {
			t.Errorf("%v in %q: %q, want %q", c.text, c.lang, got, c.want)
		}
	}
}

func TestActionTitle(t *testing.T) {
	c := mfa.NewCatalog(nil, []mfa.Action{{Code: "LOGIN", Title: mfa.Text{"ar": "دخول"}}, {Code: "BARE"}}, nil)
	for _, x := range []struct{ code, lang, want string }{
		{"LOGIN", "en", "دخول"},            // the stored title precedes the built-in one
		{"DEVICE_ADD", "en", "New device"}, // built in, without a row
		{"DEVICE_REMOVE", "xx", "Device removal"},
		{"BARE", "en", "BARE"},
		{"UNKNOWN", "tr", "UNKNOWN"},
	} {
		if got := c.ActionTitle(x.code, x.lang); got != x.want {
			t.Errorf("%s in %s: %q, want %q", x.code, x.lang, got, x.want)
		}
	}
}

func TestHeadersKeepTheirOrder(t *testing.T) {
	const text = `{"zeta":{"tr":"Z","en":"Z"},"alpha":{"en":"A"},"10":{"ar":"ع"},"2":{"tr":"iki"}}`
	var h mfa.Headers
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(h); string(got) != text {
		t.Errorf("got %s", got)
	}
	var again mfa.Headers
	if err := json.Unmarshal([]byte(`{"alpha":{"en":"A"},"zeta":{"tr":"Z","en":"Z"},"10":{"ar":"ع"},"2":{"tr":"iki"}}`),
		&again); err != nil || again.Equal(h) {
		t.Errorf("another order is equal; %v", err)
	}
	for _, empty := range []mfa.Headers{nil, {}} {
		if got, _ := json.Marshal(empty); string(got) != "{}" {
			t.Errorf("empty headers are %s", got)
		}
	}
}

func TestTextJSON(t *testing.T) {
	for _, c := range []struct {
		in, want string // want "": refused
	}{
		{`{"ar":"c","tr":"a","en":"b"}`, `{"tr":"a","en":"b","ar":"c"}`},
		{`{"en":"b","tr":null}`, `{"en":"b"}`},
		{`{"en":""}`, `{"en":""}`}, // accepted here; Check decides whether it may be written
		{` { } `, `{}`},
		{`{"de":"d","en":"b"}`, ""},
		{`{"EN":"b"}`, ""},
		{`{"en":5}`, ""},
		{`{"en":{"a":"b"}}`, ""},
		{`{"en":"a","en":"b"}`, ""},
		{`"en"`, ""},
		{`[]`, ""},
		{`null`, ""},
		{`7`, ""},
	} {
		var got mfa.Text
		err := got.UnmarshalJSON([]byte(c.in))
		out, _ := json.Marshal(got)
		if c.want == "" && err == nil || c.want != "" && (err != nil || string(out) != c.want) {
			t.Errorf("%s: %s, %v; want %q", c.in, out, err, c.want)
		}
	}
	for _, bad := range []string{`{`, `{"a"`, `{"a":`, `{"a":{}`, `{"a":{}}{}`, `{"a":1}`,
		`{"a":{"en":"x"},"a":{"en":"y"}}`, `[]`, ``} {
		var h mfa.Headers
		if h.UnmarshalJSON([]byte(bad)) == nil {
			t.Errorf("headers accept %s", bad)
		}
	}
}

func TestActionCheck(t *testing.T) {
	good := mfa.Text{"en": "Title"}
	long := strings.Repeat("ş", 200)
	for _, c := range []struct {
		name   string
		action mfa.Action
		field  string // "": accepted
	}{
		{"least", mfa.Action{Code: "A1", Title: good}, ""},
		{"longest texts", mfa.Action{Code: "A1", Title: mfa.Text{"tr": long},
			Headers: mfa.Headers{{Key: "k", Label: mfa.Text{"ar": long}}}}, ""},
		{"a blank beside a text", mfa.Action{Code: "A1", Title: mfa.Text{"tr": "", "en": "x"}}, ""},
		{"code of small letters", mfa.Action{Code: "login", Title: good}, "actionCode"},
		{"no title", mfa.Action{Code: "A1"}, "title"},
		{"blank title", mfa.Action{Code: "A1", Title: mfa.Text{"en": " ", "tr": ""}}, "title"},
		{"too long", mfa.Action{Code: "A1", Title: mfa.Text{"en": long + "x"}}, "title"},
		{"control character", mfa.Action{Code: "A1", Title: mfa.Text{"en": "a\nb"}}, "title"},
		{"header without text", mfa.Action{Code: "A1", Title: good, Headers: mfa.Headers{{Key: "k"}}},
			"infoTableHeaders"},
		{"header with a blank key", mfa.Action{Code: "A1", Title: good, Headers: mfa.Headers{{Key: " ", Label: good}}},
			"infoTableHeaders"},
		{"header with a long key", mfa.Action{Code: "A1", Title: good,
			Headers: mfa.Headers{{Key: strings.Repeat("k", 65), Label: good}}}, "infoTableHeaders"},
		{"too many headers", mfa.Action{Code: "A1", Title: good, Headers: make(mfa.Headers, 51)}, "infoTableHeaders"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.action.Check(), c.field) })
	}
}

// refused checks that err is INVALID_FIELD for a field, or nil for "".
func refused(t *testing.T, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	e, ok := err.(*fault.Error)
	if !ok || e.Code != fault.InvalidField || e.Field != field {
		t.Errorf("got %v, want INVALID_FIELD of %s", err, field)
	}
}
