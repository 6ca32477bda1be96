package blackbox

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A refusal as unavailable with a time to wait is repeated after it; the last answer counts. Other answers stand.
func TestRequestIsRepeatedWhenUnavailable(t *testing.T) {
	refusal := func(code, after string) Answer {
		h := http.Header{"Content-Type": {"application/problem+json"}}
		if after != "" {
			h.Set("Retry-After", after)
		}
		return Answer{503, h, []byte(`{"code":"` + code + `"}`)}
	}
	served := Answer{Status: 200}
	for name, c := range map[string]struct {
		answers []Answer
		sent    int
		status  int
		took    time.Duration
	}{
		"once":            {[]Answer{refusal("UNAVAILABLE", "2"), served}, 2, 200, 2 * time.Second},
		"still":           {[]Answer{refusal("UNAVAILABLE", "1")}, 3, 503, 2 * time.Second},
		"without a time":  {[]Answer{refusal("UNAVAILABLE", "")}, 1, 503, 0},
		"for a long time": {[]Answer{refusal("UNAVAILABLE", "60")}, 1, 503, 0},
		"draining":        {[]Answer{refusal("DRAINING", "1")}, 1, 503, 0},
		"served":          {[]Answer{served}, 1, 200, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, sent := time.Now(), 0
			got, _ := Patiently(func() (Answer, error) {
				sent++
				return c.answers[min(sent, len(c.answers))-1], nil
			})
			if took := time.Since(began); got.Status != c.status || sent != c.sent || took != c.took {
				t.Errorf("%s: %d after %d requests in %v", name, got.Status, sent, took)
			}
		})
	}
}
