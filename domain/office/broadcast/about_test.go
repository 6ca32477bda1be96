package broadcast_test

import (
	"testing"

	"castellan/domain/kit/job"
	"castellan/domain/office/broadcast"
)

// The subject of a notification is its title, that of an SMS its text.
func TestAbout(t *testing.T) {
	for _, k := range (&broadcast.Service{}).Kinds() {
		for params, want := range map[string]string{
			`{"ids":["u"],"message":{"topic":"news","title":"A title","body":"A text"}}`: "A title",
			`{"message":{"topic":"","title":"","body":"A text"}}`:                        "A text",
			`{`: "",
		} {
			if got := k.About(job.Job{Params: []byte(params)}); got != want {
				t.Errorf("%s of %s: %q, want %q", params, k.Name, got, want)
			}
		}
	}
}
