package rest

import (
	"bytes"
	"testing"

	"castellan/domain/kit/fault"
)

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
