package job_test

import (
	"errors"
	"strings"
	"testing"

	"castellan/domain/kit/job"
)

// The subject of a job comes from its unsealed parameters, has at most 100 characters, and is empty without a kind,
// without About, and for parameters of a deleted key.
func TestAbout(t *testing.T) {
	long := strings.Repeat("ş", 101)
	s := &job.Service{
		Kinds: map[string]job.Kind{
			"letter": {About: func(j job.Job) string { return string(j.Params) }},
			"silent": {},
		},
		Open: func(sealed, ad []byte) ([]byte, error) {
			plain, found := strings.CutPrefix(string(sealed), string(ad)+":")
			if !found {
				return nil, errors.New("unknown key")
			}
			return []byte(plain), nil
		},
	}
	for _, c := range []struct{ kind, params, want string }{
		{"letter", "id:a title", "a title"},
		{"letter", "id:" + long[:200], long[:200]},
		{"letter", "id:" + long, long[:198] + "…"},
		{"letter", "other:a title", ""},
		{"silent", "id:a title", ""},
		{"unknown", "id:a title", ""},
	} {
		if got := s.About(job.Job{ID: "id", Kind: c.kind, Params: []byte(c.params)}); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.params, c.kind, got, c.want)
		}
	}
}
