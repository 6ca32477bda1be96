package parameter_test

import (
	"encoding/json"
	"slices"
	"testing"

	"castellan/domain/kit/parameter"
)

// The users that only one of two objects ignores are named in order, whatever the case of the member.
func TestIgnoredDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":          {`{"ignoredUsers":["a","b"]}`, `{"ignoredUsers":["b","a"]}`, nil},
		"added":            {`{"ignoredUsers":[]}`, `{"ignoredUsers":["b","a"]}`, []string{"a", "b"}},
		"removed":          {`{"ignoredUsers":["b","a"]}`, `{}`, []string{"a", "b"}},
		"both":             {`{"ignoredUsers":["c","a"]}`, `{"ignoredUsers":["a","b"]}`, []string{"b", "c"}},
		"another case":     {`{"IGNOREDUSERS":["a"]}`, `{}`, []string{"a"}},
		"two members":      {`{"ignoredUsers":["a"],"IgnoredUsers":["b"]}`, `{}`, []string{"a", "b"}},
		"another shape":    {`{"ignoredUsers":7}`, `[]`, nil},
		"no object before": {``, `{"ignoredUsers":["a"]}`, []string{"a"}},
	} {
		if got := parameter.IgnoredDiffer(json.RawMessage(c.before), json.RawMessage(c.after)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The service reads each parameter by one code.
func TestCodesAreDifferent(t *testing.T) {
	codes := parameter.Codes()
	for _, want := range []string{"KYC_LEVEL", "EXPLANATION"} {
		if !slices.Contains(codes, want) {
			t.Errorf("%v lack %s", codes, want)
		}
	}
	slices.Sort(codes)
	if len(codes) != len(slices.Compact(slices.Clone(codes))) {
		t.Errorf("a code twice: %v", codes)
	}
}
