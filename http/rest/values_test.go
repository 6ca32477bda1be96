package rest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Decimal // "" when refused
	}{
		{"0", "0"}, {"-0", "0"}, {"-0.00", "0"}, {"1", "1"}, {"-1.50", "-1.5"}, {"007", "7"}, {"0.000000000000000001",
			"0.000000000000000001"},
		{"1e3", "1000"}, {"1E+3", "1000"}, {"1.25e1", "12.5"}, {"12.345e2", "1234.5"}, {"5e-8", "0.00000005"},
		{"125e-2", "1.25"},
		{"1e60", "" /* 61 digits */}, {"1e-61", ""}, {"1e999999999", ""}, {"1e-999999999", ""},
		{"1e99999999999999999999", ""},
		{"", ""}, {"-", ""}, {"+1", ""}, {".5", ""}, {"1.", ""}, {"1..2", ""}, {"1e", ""}, {"e1", ""}, {"1e1.5", ""},
		{"0x10", ""},
		{" 1\t", "1"}, {"\u2066-١٢٫٥٠\u2069", "-12.5"}, {"１e３", "1000"}, {"1 000", ""}, {"1\u00a0000", ""},
		{"1,5", ""}, {"½", ""}, {"NaN", ""}, {"Infinity", ""}, {"1_000", ""}, {"--1", ""},
	} {
		got, err := ParseDecimal(c.in)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("ParseDecimal(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	out, err := json.Marshal(struct{ A, B Decimal }{"1e-7", ""})
	if err != nil || string(out) != `{"A":0.0000001,"B":0}` {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := json.Marshal(Decimal("x")); err == nil {
		t.Error("a wrong Decimal was written")
	}
	var d Decimal
	if json.Unmarshal([]byte(`"1.10"`), &d) != nil || d != "1.1" {
		t.Errorf("unmarshalled %q", d)
	}
}

func TestTime(t *testing.T) {
	utc := func(s string) time.Time {
		return storetest.Value(time.Parse(time.RFC3339Nano, s))(t)
	}
	for _, c := range []struct {
		in, want string // want "" when refused
		day      bool
	}{
		{"0", "1970-01-01T00:00:00Z", false},
		{"1706695200123", "2024-01-31T10:00:00.123Z", false},
		{"-1", "1969-12-31T23:59:59.999Z", false},
		{"253402300799999", "9999-12-31T23:59:59.999Z", false},
		{"8640000000000001", "", false}, {"-62135596800001", "", false}, {"9999-12-31T23:59:59-03:00", "", false},
		{"2024-01-31", "2024-01-31T00:00:00Z", true},
		{"2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z", false},
		{"2024-01-31T10:00:00.5Z", "2024-01-31T10:00:00.5Z", false},
		{"2024-01-31T10:00:00", "2024-01-31T10:00:00Z", false},
		{"2024-01-31T10:00", "2024-01-31T10:00:00Z", false},
		{"2024-01-31 10:00:00", "2024-01-31T10:00:00Z", false},
		{"2024-01-31T13:00:00+03:00", "2024-01-31T10:00:00Z", false},
		{"2024-01-31T13:00:00 03:00", "2024-01-31T10:00:00Z", false},
		{"2024-01-31T13:00:00+0300", "2024-01-31T10:00:00Z", false},
		{"2024-02-30", "", false}, {"31.01.2024", "", false}, {"", "", false}, {"2024-1-1", "", false},
		{"99999999999999999", "", false}, {"2024-01-31T25:00:00Z", "", false}, {"1e3", "", false}, {"+5", "", false},
	} {
		got, err := ParseTime(c.in)
		if c.want == "" {
			if err == nil {
				t.Errorf("ParseTime(%q) = %v", c.in, got)
			}
			continue
		}
		if err != nil || !got.Equal(utc(c.want)) || got.Day != c.day {
			t.Errorf("ParseTime(%q) = %v, %v; want %s", c.in, got, err, c.want)
		}
	}
	if last, err := ParseTime("8640000000000000"); err != nil || last.UnixMilli() != 8640000000000000 {
		t.Errorf("the last instant of a Date: %v, %v", last, err)
	}
	day, _ := ParseTime("2024-01-31")
	if last := day.Last(); !last.Equal(utc("2024-01-31T23:59:59.999999999Z")) {
		t.Errorf("last = %v", last)
	}
	out, err := json.Marshal(struct {
		A Time
		B *Time
		C *Time
	}{Time{Time: utc("2024-01-31T13:00:00+03:00")}, At(time.Time{}), At(utc("2024-01-31T10:00:00.1Z"))})
	if want := `{"A":"2024-01-31T10:00:00.000Z","B":null,"C":"2024-01-31T10:00:00.100Z"}`; err != nil ||
		string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
	var back Time
	if err := json.Unmarshal([]byte(`"2024-01-31"`), &back); err != nil || !back.Day {
		t.Errorf("%v, %v", back, err)
	}
}

func TestSpan(t *testing.T) {
	at := func(s string) *Time {
		x := storetest.Value(ParseTime(s))(t)
		return &x
	}
	from, to, err := Span("beginDate", at("2024-01-31"), at("2024-01-31"))
	if err != nil || from.Hour() != 0 || to.Hour() != 23 {
		t.Errorf("%v %v %v", from, to, err)
	}
	if _, to, err := Span("beginDate", at("2024-01-31"), nil); err != nil || !to.IsZero() {
		t.Errorf("%v %v", to, err)
	}
	if _, _, err := Span("beginDate", at("2024-02-01"), at("2024-01-31")); err == nil {
		t.Error("a range that ends before it begins")
	}
}

func TestNullablePointer(t *testing.T) {
	if (Nullable[int]{Sent: true, Null: true}).Pointer() != nil || *(Nullable[int]{Sent: true, Value: 5}).Pointer() != 5 {
		t.Error("Pointer")
	}
}

func TestLanguage(t *testing.T) {
	for in, want := range map[string]string{"tr": "tr", "TR-tr": "tr", " en-GB": "en", "ar-EG": "ar", "de": "", "": "",
		"tr_TR": "tr", "trk": "", "_TR": ""} {
		storetest.Equal(t, LanguageOf(in), want, "LanguageOf", in, "=")
	}
	for in, want := range map[string]string{
		"tr": "tr", "de-DE,de;q=0.9,tr;q=0.8,en;q=0.7": "tr", "de, fr": "", "*": "", "en;q=0, ar": "ar",
		"en;q=0.0,tr;q=0.001": "tr", ",,;q": "", "en;q=0.5, tr": "tr", "en;q=0.8,ar;q=0.9,tr;q=0.8": "ar",
		"ar;q=0.5,tr;q=0.5": "ar", "en; Q = 0.1 , tr_TR;x=1;q=0.2": "tr", "en;q=2,tr;q=0.1": "tr", "en;q=x": "",
		"*;q=1,tr;q=0.1": "tr",
	} {
		storetest.Equal(t, AcceptLanguage(in), want, "AcceptLanguage", in, "=")
	}
}

// D-GEN-12; "" where it is refused.
func TestBase64(t *testing.T) {
	for text, want := range map[string]string{
		"aGk=": "hi", "aGk": "hi", "aGkh": "hi!", "YQ==": "a", "YQ": "a",
		"+/+/": "\xfb\xff\xbf", "-_-_": "\xfb\xff\xbf",
		"data:image/png;base64,aGk=": "hi", "data:;base64,aGk": "hi", "data:text/plain;charset=utf-8;base64,aGk=": "hi",
		`data:image\/png;base64,aGk=`: "hi", `+\/+\/`: "\xfb\xff\xbf",
		"": "", "=": "", "aGk==": "", "aGkh====": "", "YQ=": "", "a": "", "aGkha": "", "+_+_": "", "aG k": "", "aG\\nk=": "",
		"aGk=\\r\\n": "", "aG=k": "", "aGl=": "", "YR": "", "ü": "", "data:image/png,aGk=": "",
		"data:a,b;base64,aGk=": "", "data:;base64,": "", "data:": "", "aGk=.": "", "DATA:;base64,aGk=": "",
	} {
		in, err := bound[struct {
			F Base64 `json:"f"`
		}](t, "POST", "", `{"f":"`+text+`"}`)
		if string(in.F) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, in.F, err)
		}
		if err != nil && err.(*fault.Error).Field != "f" {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, body := range []string{`{"f":1}`, `{"f":null}`, `{"f":["aGk="]}`, `{"f":{}}`, `{}`} {
		if _, err := bound[struct {
			F Base64 `json:"f"`
		}](t, "POST", "", body); fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%s: %v", body, err)
		}
	}
	in, err := bound[struct {
		F *Base64 `json:"f"`
	}](t, "POST", "", `{"f":null}`)
	if err != nil || in.F != nil {
		t.Errorf("%v %v", in.F, err)
	}
	body := append(append([]byte(`{"f":"`), bytes.Repeat([]byte("A"), 1<<20)...), `"}`...)
	kept, err := bound[struct {
		F Base64 `json:"f"`
	}](t, "POST", "", string(body))
	if err != nil || len(kept.F) != 3<<18 {
		t.Errorf("%d bytes, %v", len(kept.F), err)
	}
}

// The declared secrets are removed, in every element of a list, and nothing else changes.
func TestWithoutSecrets(t *testing.T) {
	e := Endpoint{}.Secret("data.key", "token")
	for answer, want := range map[string]string{
		`{"data":{"key":"s","a":"b"},"token":"t","n":12345678901234567890}`: `{"data":{"a":"b"},"n":12345678901234567890}`,
		`{"data":[{"key":"s"},{"key":null,"n":1}]}`:                         `{"data":[{},{"n":1}]}`,
		`{"code":"FORBIDDEN"}`:                                              `{"code":"FORBIDDEN"}`,
		`{"data":"key"}`:                                                    `{"data":"key"}`,
	} {
		storetest.Equal(t, string(storetest.Value(e.WithoutSecrets(json.RawMessage(answer)))(t)), want, answer)
	}
	if got, err := e.WithoutSecrets(json.RawMessage("s3cret")); err == nil || got != nil {
		t.Errorf("an answer that is no JSON: %s", got)
	}
}
