package edge

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"

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
