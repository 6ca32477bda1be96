package edge

import (
	"context"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// TestRawErrors: what a raw handler may return, Fiber's own errors included.
func TestRawErrors(t *testing.T) {
	s := serve(t, allow())
	for status, c := range map[int]struct {
		status int
		code   fault.Code
	}{
		400: {400, fault.InvalidField}, 401: {401, fault.Unauthenticated}, 403: {403, fault.Forbidden}, 404: {404,
			fault.NotFound},
		405: {405, fault.MethodNotAllowed}, 408: {408, fault.RequestTimeout}, 413: {413, fault.PayloadTooLarge}, 418: {400,
			fault.InvalidField},
		426: {400, fault.InvalidField}, 431: {431, fault.HeadersTooLarge}, 500: {500, fault.Internal}, 503: {503,
			fault.Unavailable},
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
	a := do(t, serve(t, allow(), rest.Get("/x", "", rest.NoAuth,
		fails(fault.New(fault.RecordNotFound, "no such thing")))), "GET", "/x", "", "accept-language: ar")
	if !strings.Contains(a.body, `"detail":"no such thing","message":"السجل غير موجود"`) {
		t.Error(a.body)
	}
}

// TestLargeBodyOnParameterPath: the limit of a path with parameters holds for it
// alone.
func TestLargeBodyOnParameterPath(t *testing.T) {
	type in struct {
		ID   rest.ID `json:"id"`
		Text string  `json:"text"`
	}
	read := func(context.Context, rest.Caller, in) (rest.None, error) { return rest.None{}, nil }
	s := serve(t, allow(), rest.Post("/things/{id}", "", rest.User, read).Body(2<<20),
		rest.Post("/other", "", rest.NoAuth, echo))
	body := `{"text":"` + strings.Repeat("x", 3<<19) + `"}`
	if a := do(t, s, "POST", "/things/1", body, "x-auth: u1"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := do(t, s, "POST", "/other", body); a.status != 413 || a.code() != "PAYLOAD_TOO_LARGE" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
