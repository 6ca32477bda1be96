package system

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/storetest"
)

// TestHealth: the separate listener reports the same health as the public one.
func TestHealth(t *testing.T) { synctest.Test(t, testHealth) }

func testHealth(t *testing.T) {
	var draining bool
	var ill error
	h := Health(Options{Draining: func() bool { return draining }, Ready: func(context.Context) error { return ill }})
	for _, c := range []struct {
		path     string
		draining bool
		ill      error
		status   int
		has      string
	}{
		{livePath, false, nil, 200, healthy}, {livePath, true, errors.New("x"), 200, healthy},
		{readyPath, false, nil, 200, healthy},
		{readyPath, true, nil, 503, `"code":"DRAINING"`}, {readyPath, false, errors.New("secret"), 503,
			`"code":"UNAVAILABLE"`},
		{"/health/other", false, nil, 404, ""},
	} {
		draining, ill = c.draining, c.ill
		time.Sleep(readyAge)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) ||
			strings.Contains(w.Body.String(), "secret") ||
			(c.status == 503) != (w.Header().Get("Retry-After") == "1") {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
}

// Frequent readiness checks cost one round trip in a quarter of a second.
func TestReadinessIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trips := 0
		ready := lately(func(context.Context) error { trips++; return nil })
		for range 100 {
			_ = ready(t.Context())
			time.Sleep(10 * time.Millisecond)
		}
		storetest.Equal(t, trips, 4, "round trips in a second")
	})
}
