package adapters_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

// TestSMSRecipes sends with each recipe of docs/operations/install.md to a gateway that answers as the documents of
// that one say.
func TestSMSRecipes(t *testing.T) {
	doc := storetest.Value(os.ReadFile("../../../docs/operations/install.md"))(t)
	recipes := regexp.MustCompile("(?s)```yaml\n(# [^\n]*\nsms:.*?)```").FindAllStringSubmatch(string(doc), -1)
	cases := []struct{ request, yes, no, reason string }{
		{"GET /?dil=TR&gsmno=905321234567&message=Kod+012345&msgheader=YOURHEADER&password=%E2%80%A6&usercode=850%E2%80%A6 ",
			"00 5001", "30", "the body is 30"},
		{`POST / {"request":{"authentication":{"hash":"…","key":"…"},"order":{"iys":"0","message":{"receipents":` +
			`{"number":["905321234567"]},"text":"Kod 012345"},"sender":"YOURHEADER"}}}`,
			`{"response":{"status":{"code":200,"message":"İşlem başarılı"},"order":{"id":"7"}}}`,
			`{"response":{"status":{"code":"450","message":"Kod 012345"}}}`, "response.status.code is 450"},
	}
	if len(recipes) != len(cases) {
		t.Fatalf("%d recipes", len(recipes))
	}
	for i, c := range cases {
		answer := c.yes
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			storetest.Equal(t, r.Method+" "+r.URL.RequestURI()+" "+string(body), c.request, "request")
			io.WriteString(w, answer)
		}))
		t.Cleanup(gateway.Close)
		file := filepath.Join(t.TempDir(), "castellan.yaml")
		storetest.Must(t, os.WriteFile(file, []byte(recipes[i][1]), 0o600))
		loaded := storetest.Value(config.Load(file, []string{"CASTELLAN_SMS_URL=" + gateway.URL}))(t)
		s := storetest.Value(adapters.SMS(loaded.SMS))(t)
		t.Cleanup(func() { s.Close() })
		m := message.Rendered{Channel: message.SMS, To: "+905321234567", Text: "Kod 012345"}
		if err := s.Send(t.Context(), "key", m); err != nil {
			t.Errorf("success: %v", err)
		}
		answer = c.no
		if err := s.Send(t.Context(), "key", m); err == nil || !strings.HasSuffix(err.Error(), c.reason) {
			t.Errorf("refusal: %v", err)
		}
	}
}
