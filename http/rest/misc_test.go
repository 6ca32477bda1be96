package rest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"castellan/domain/fault"

	"github.com/gofiber/fiber/v2"
)

// even reads itself from JSON.
type even int

func (e *even) UnmarshalJSON(b []byte) error {
	var list []int
	if json.Unmarshal(b, &list) == nil {
		*e = even(len(list))
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil || len(s)%2 != 0 {
		return errors.New("odd")
	}
	*e = even(len(s))
	return nil
}

func TestSelfReading(t *testing.T) {
	type in struct {
		E even `json:"e"`
	}
	for _, c := range []struct {
		method, query, body string
		want                even
	}{
		{"POST", "", `{"e":"ab"}`, 2}, {"POST", "", `{"e":[1,2,3]}`, 3}, {"POST", "", `{"\u0065":"\u00e9"}`, 2},
		{"GET", "e=ab", "", 2}, {"GET", "e=[1,2,3]", "", 3}, {"GET", "e=", "", 0},
	} {
		got, err := bound[in](t, c.method, c.query, c.body)
		if err != nil || got.E != c.want {
			t.Errorf("%s ?%s %s = %d, %v", c.method, c.query, c.body, got.E, err)
		}
	}
	_, err := bound[in](t, "POST", "", `{"e":"abc"}`)
	if got := faults(t, err); !reflect.DeepEqual(got, []string{"e"}) {
		t.Errorf("faulty %q", got)
	}
}

func TestBindThenCall(t *testing.T) {
	e := Post("/x", "", NoAuth, echo)
	in, err := e.Bind(Query{}, []byte(`{"text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Call(t.Context(), Caller{}, in)
	if err != nil || out.(Data[echoRequest]).Data.Text != "x" || e.Key() != "POST /x" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestJSONValue(t *testing.T) {
	out, err := json.Marshal(struct{ A, B JSON }{JSON(`{"x":1}`), nil})
	if err != nil || string(out) != `{"A":{"x":1},"B":null}` {
		t.Errorf("%s, %v", out, err)
	}
	var back struct{ A JSON }
	if err := json.Unmarshal([]byte(`{"A":[1]}`), &back); err != nil || string(back.A) != `[1]` {
		t.Errorf("%s, %v", back.A, err)
	}
}

// TestRawErrors: what a raw handler may return, Fiber's own errors included.
func TestRawErrors(t *testing.T) {
	s := serve(t, allow())
	for status, c := range map[int]struct {
		status int
		code   fault.Code
	}{
		400: {400, fault.InvalidField}, 401: {401, fault.Unauthenticated}, 403: {403, fault.Forbidden}, 404: {404, fault.NotFound},
		405: {405, fault.MethodNotAllowed}, 408: {408, fault.RequestTimeout}, 413: {413, fault.PayloadTooLarge}, 418: {400, fault.InvalidField},
		426: {400, fault.InvalidField}, 431: {431, fault.HeadersTooLarge}, 500: {500, fault.Internal}, 503: {503, fault.Unavailable},
	} {
		path := "/e" + strings.Repeat("x", status-399)
		s.Raw("GET", path, func(*fiber.Ctx) error { return fiber.NewError(status, "secret text") })
		a := do(t, s, "GET", path, "")
		if a.status != c.status || a.code() != string(c.code) || strings.Contains(a.body, "secret") {
			t.Errorf("%d became %d %s", status, a.status, a.body)
		}
	}
}

func TestMessageInArabic(t *testing.T) {
	a := do(t, serve(t, allow(), Get("/x", "", NoAuth, fails(fault.New(fault.RecordNotFound, "no such thing")))), "GET", "/x", "", "accept-language: ar")
	if !strings.Contains(a.body, `"detail":"no such thing","message":"السجل غير موجود"`) {
		t.Error(a.body)
	}
}

// TestLargeBodyOnParameterPath: the limit of a path with parameters is not known
// before routing; the default still holds for the others.
func TestLargeBodyOnParameterPath(t *testing.T) {
	type in struct {
		ID   ID     `json:"id"`
		Text string `json:"text"`
	}
	read := func(context.Context, Caller, in) (None, error) { return None{}, nil }
	s := serve(t, allow(), Post("/things/{id}", "", NoAuth, read).Body(2<<20), Post("/other", "", NoAuth, echo))
	body := `{"text":"` + strings.Repeat("x", 3<<19) + `"}`
	if a := do(t, s, "POST", "/things/1", body); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := do(t, s, "POST", "/other", body); a.status != 413 || a.code() != "PAYLOAD_TOO_LARGE" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestRegistryIsComplete(t *testing.T) {
	if StatusOf("NO_SUCH_CODE") != 500 || StatusOf(fault.OTPInvalid) != 422 {
		t.Error("StatusOf")
	}
	for status, codes := range map[int]string{
		400: "INVALID_FIELD CHAR_LIMIT_EXCEEDED",
		401: "UNAUTHENTICATED TOKEN_EXPIRED TOKEN_REVOKED INVALID_CREDENTIALS DEVICE_SIGNATURE_REQUIRED DEVICE_SIGNATURE_INVALID",
		403: "FORBIDDEN TENANT_MISMATCH ACCESS_DENIED GEO_BLOCKED IP_NOT_ALLOWED OTP_REQUIRED",
		404: "RECORD_NOT_FOUND CHALLENGE_NOT_FOUND METHOD_NOT_FOUND NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 408: "REQUEST_TIMEOUT",
		409: "RECORD_ALREADY_EXIST RECORD_LIMIT_REACHED INVALID_STATE CHALLENGE_NOT_COMPLETED CHALLENGE_CLOSED METHOD_ALREADY_COMPLETED MFA_NOT_AVAILABLE TOTP_ALREADY_DEFINED TOTP_NOT_DEFINED RENEW_NOT_SUPPORTED RENEW_CLOSED IDEMPOTENCY_CONFLICT",
		410: "CHALLENGE_EXPIRED METHOD_EXPIRED", 413: "PAYLOAD_TOO_LARGE", 415: "UNSUPPORTED_MEDIA",
		422: "WD_NETWORK_ASSET_MISMATCH OTP_INVALID RECOVERY_CODE_INVALID PASSWORD_REUSED PASSWORD_WRONG IDEMPOTENCY_MISMATCH",
		423: "METHOD_LOCKED", 429: "RATE_LIMITED RENEW_TOO_EARLY", 431: "HEADERS_TOO_LARGE", 500: "INTERNAL", 503: "UNAVAILABLE OVERLOADED DRAINING",
	} {
		for code := range strings.FieldsSeq(codes) {
			if e, ok := registry[fault.Code(code)]; !ok || e.status != status {
				t.Errorf("%s: %d, want %d", code, e.status, status)
			}
		}
	}
}
