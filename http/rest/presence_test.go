package rest

import (
	"net/netip"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestPresence(t *testing.T) {
	type in struct {
		Code  string   `json:"code"`
		Mint  string   `json:"mint" blank:"ok"`
		Flag  bool     `json:"flag"`
		List  []string `json:"list"`
		Limit int      `json:"limit" default:"5" minimum:"1" maximum:"100"`
		Kinds []string `json:"kinds" default:"a,b" enum:"a,b,c"`
		App   string   `json:"app" default:"API"`
	}
	full := `{"code":"x","mint":"","flag":false,"list":[]}`
	got := storetest.Value(bound[in](t, "POST", "", full))(t)
	want := in{Code: "x", List: []string{}, Limit: 5, Kinds: []string{"a", "b"}, App: "API"}
	storetest.Same(t, got, want)
	got.Kinds[0] = "changed"
	if again, _ := bound[in](t, "POST", "", full); again.Kinds[0] != "a" {
		t.Error("a default is shared between requests")
	}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{}`, []string{"code", "mint", "flag", "list"}},
		{``, []string{"code", "mint", "flag", "list"}},
		{`{"code":null,"mint":null,"flag":null,"list":null}`, []string{"code", "mint", "flag", "list"}},
		{`{"code":" \t","mint":" ","flag":true,"list":["a"]}`, []string{"code"}},
		{`{"code":5,"mint":"","flag":true,"list":[]}`, []string{"code"}},
		{`{"code":"x","mint":"","flag":true,"list":[],"limit":0}`, []string{"limit"}},
		{`{"code":"x","mint":"","flag":true,"list":[],"limit":101}`, []string{"limit"}},
		{`{"code":"x","mint":"","flag":true,"list":[],"kinds":["a","x"]}`, []string{"kinds"}},
	} {
		_, err := bound[in](t, "POST", "", c.body)
		storetest.Same(t, faults(t, err), c.want, c.body, "faulty")
	}
}

func TestRestrictions(t *testing.T) {
	type in struct {
		Status *string          `json:"status" enum:"ACTIVE,INACTIVE"`
		Name   *string          `json:"name" maxLength:"3" blank:"no"`
		List   []string         `json:"list,omitempty" maxItems:"2" maxLength:"2" blank:"no"`
		Period *int64           `json:"period" minimum:"0"`
		Note   Nullable[string] `json:"note" maxLength:"2"`
	}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"status":"ACTIVE","name":"şğü","list":["ab","c"],"period":0,"note":"ab"}`, nil},
		{`{"note":null}`, nil},
		{`{"status":"active"}`, []string{"status"}},
		{`{"status":""}`, []string{"status"}},
		{`{"name":"","list":["a"," "]}`, []string{"name", "list"}},
		{`{"list":["a","b","c"]}`, []string{"list"}},
		{`{"name":"abcd","list":["abc"]}`, []string{"name", "list"}},
		{`{"period":-1}`, []string{"period"}},
		{`{"note":"abc"}`, []string{"note"}},
	} {
		_, err := bound[in](t, "POST", "", c.body)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.body, err)
			}
			continue
		}
		storetest.Same(t, faults(t, err), c.want, c.body, "faulty")
	}
}

func TestAlias(t *testing.T) {
	type in struct {
		Code string `json:"recoveryCode" alias:"recovery_code"`
		Pref *ID    `json:"preffered" alias:"preferred"`
	}
	for _, c := range []struct {
		method, query, body, want string
		ok                        bool
	}{
		{"POST", "", `{"recoveryCode":"a"}`, "a", true},
		{"POST", "", `{"recovery_code":"a"}`, "a", true},
		{"POST", "", `{"recovery_code":"a","recoveryCode":"a"}`, "a", true},
		{"POST", "", `{"recoveryCode":null,"recovery_code":"a"}`, "a", true},
		{"POST", "", `{"recoveryCode":"a","preffered":1,"preferred":"1"}`, "a", true},
		{"POST", "", `{"recoveryCode":"a","recovery_code":"b"}`, "", false},
		{"POST", "", `{"recoveryCode":"a","preffered":1,"preferred":2}`, "", false},
		{"GET", "recovery_code=a", ``, "a", true},
		{"GET", "recovery_code=a&recoveryCode=a", ``, "a", true},
		{"GET", "recovery_code=a&recoveryCode=b", ``, "", false},
		{"GET", "recovery_code=a", `{"recoveryCode":"b"}`, "a", true},
	} {
		got, err := bound[in](t, c.method, c.query, c.body)
		if (err == nil) != c.ok || got.Code != c.want {
			t.Errorf("%s ?%s %s = %q, %v", c.method, c.query, c.body, got.Code, err)
		}
		if err != nil && fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%s: code %s", c.body, fault.CodeOf(err))
		}
	}
}

type selfChecking struct {
	Begin *Time `json:"begin"`
	End   *Time `json:"end"`
}

func (s selfChecking) Validate() error {
	_, _, err := Span("begin", s.Begin, s.End)
	return err
}

func TestValidate(t *testing.T) {
	storetest.Must(t, storetest.Err(bound[selfChecking](t, "GET", "begin=2024-01-31&end=2024-01-31T10:00:00Z", "")))
	_, err := bound[selfChecking](t, "GET", "begin=2024-02-01&end=2024-01-31", "")
	storetest.Same(t, faults(t, err), []string{"begin"}, "faulty")
	_, err = bound[selfChecking](t, "GET", "begin=x&end=2024-01-31", "")
	storetest.Same(t, faults(t, err), []string{"begin"}, "faulty")
}

func TestExtras(t *testing.T) {
	for _, c := range []struct{ method, query, body, language, otp string }{
		{"POST", "", `{"_requesterLanguage":"tr","otp":"123456"}`, "tr", "123456"},
		{"POST", "_requesterLanguage=ar", `{"_requesterLanguage":"tr"}`, "ar", ""},
		{"GET", "_requesterLanguage=ar", `{"_requesterLanguage":"tr"}`, "ar", ""},
		{"DELETE", "_requesterLanguage=ar", `{"_requesterLanguage":"tr"}`, "ar", ""},
		{"POST", "", `{"_requesterLanguage":5,"otp":123456}`, "", ""},
		{"POST", "", `{"nested":{"otp":"1","_requesterLanguage":"tr"}}`, "", ""},
	} {
		e := endpointOf[None](c.method)
		_, x, err := e.Bind(Query{Raw: c.query}, []byte(c.body))
		if err != nil || x.Language != c.language || x.OTP != c.otp {
			t.Errorf("%s ?%s %s = %+v, %v", c.method, c.query, c.body, x, err)
		}
	}
}

// TestUnbindable: a table that cannot work stops the start.
func TestUnbindable(t *testing.T) {
	for name, define := range map[string]func(){
		"float": func() {
			endpointOf[struct {
				F float64 `json:"f"`
			}]("GET")
		},
		"bytes": func() {
			endpointOf[struct {
				B []byte `json:"b"`
			}]("GET")
		},
		"a type that reads itself from text": func() {
			endpointOf[struct {
				A netip.Addr `json:"a"`
			}]("GET")
		},
		"channel": func() {
			endpointOf[struct {
				C chan int `json:"c"`
			}]("GET")
		},
		"no name": func() { endpointOf[struct{ A string }]("GET") },
		"same name": func() {
			endpointOf[struct {
				A string `json:"a"`
				B string `json:"b" alias:"a"`
			}]("GET")
		},
		"bad default": func() {
			endpointOf[struct {
				A int `json:"a" default:"x"`
			}]("GET")
		},
		"default out": func() {
			endpointOf[struct {
				A int `json:"a" default:"5" maximum:"4"`
			}]("GET")
		},
		"enum on int": func() {
			endpointOf[struct {
				A int `json:"a" enum:"1"`
			}]("GET")
		},
		"bound on text": func() {
			endpointOf[struct {
				A string `json:"a" minimum:"1"`
			}]("GET")
		},
		"not a struct": func() { endpointOf[[]string]("GET") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			define()
		})
	}
}

type tree struct {
	Name string `json:"name"`
	Subs []tree `json:"subs,omitempty"`
}

type base struct {
	ID ID `json:"id"`
}

func TestRecursiveAndEmbedded(t *testing.T) {
	type in struct {
		base
		Root tree `json:"root"`
	}
	got, err := bound[in](t, "POST", "", `{"id":1,"root":{"name":"a","subs":[{"name":"b"}]}}`)
	if err != nil || got.ID != 1 || got.Root.Subs[0].Name != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
}
