package mfa_test

import (
	"strings"
	"testing"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
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
		storetest.Equal(t, c.text.In(c.lang), c.want, c.text, c.lang)
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
		storetest.Equal(t, c.ActionTitle(x.code, x.lang), x.want, x.code, x.lang)
	}
}

// Headers that are no objects, and texts that are none, are refused.
func TestUnreadableHeaders(t *testing.T) {
	for _, bad := range []string{`{"a":1}`, `{"a":{"en":1}}`, `{"a":{"de":"x"}}`, `[]`, `null`} {
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
		{"too long", mfa.Action{Code: "A1", Title: mfa.Text{"en": long + "x"}}, "title"},
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
