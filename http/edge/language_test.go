package edge

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// Details of a problem and of every field are in the client's language; detail stays English
// (D-GEN-09, D-GEN-16).
func TestMessagesAreLocalized(t *testing.T) {
	type request struct {
		Code  string  `json:"code" maxLength:"3"`
		Count int     `json:"count" minimum:"1"`
		Kind  *string `json:"kind" enum:"a,b"`
	}
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth,
		func(context.Context, rest.Caller, request) (rest.None, error) {
			return rest.None{}, nil
		}), rest.Post("/fails", "", rest.NoAuth, fails(fault.New(fault.InvalidField,
		"nothing to change"))),
		rest.Post("/other", "", rest.NoAuth, fails(fault.Invalid("a", "is odd"))))
	for _, c := range []struct{ path, body, language, message, errors string }{
		{"/x", `{}`, "tr", "code: zorunludur", "code: zorunludur; count: zorunludur"},
		{"/x", `{}`, "ar", "code: مطلوب", "code: مطلوب; count: مطلوب"},
		{"/x", `{}`, "en", "code: is required", "code: is required; count: is required"},
		{"/x", `{"code":"long","count":0,"kind":"c"}`, "tr", "code: en fazla 3 karakter olabilir",
			"code: en fazla 3 karakter olabilir; count: en az 1 olmalıdır; kind: şunlardan biri olmalıdır: a, b"},
		{"/x", `{"code":1,"count":"x"}`, "ar", "code: يجب أن يكون نصا",
			"code: يجب أن يكون نصا; count: يجب أن يكون عددا صحيحا"},
		{"/x", `{"code":`, "tr", "8. baytta hatalı JSON: beklenmeyen son", ""},
		{"/fails", `{}`, "tr", "değiştirilecek bir şey yok", ""},
		{"/other", `{}`, "tr", "Geçersiz istek", "a: is odd"},
	} {
		a := do(t, s, "POST", c.path, c.body, "accept-language: "+c.language)
		var p struct {
			Detail, Message string
			Errors          []struct{ Field, Message string }
		}
		storetest.Must(t, json.Unmarshal([]byte(a.body), &p))
		var all []string
		for _, e := range p.Errors {
			all = append(all, e.Field+": "+e.Message)
		}
		if got := strings.Join(all, "; "); p.Message != c.message || got != c.errors {
			t.Errorf("%s %s in %s: %q, %q", c.path, c.body, c.language, p.Message, got)
		}
		if english := do(t, s, "POST", c.path, c.body); !strings.Contains(english.body, `"detail":`+strconv.Quote(p.Detail)) {
			t.Errorf("%s: the detail is %q in %s", c.path, p.Detail, c.language)
		}
	}
}
