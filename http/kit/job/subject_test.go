package job

import (
	"testing"

	"castellan/domain/kit/job"
	"castellan/http/rest"
)

// A user sees the subject and the starter of a job; a service client sees neither (D-EXT-16).
func TestSubject(t *testing.T) {
	g := Group{Service: &job.Service{
		Kinds: map[string]job.Kind{"k": {About: func(job.Job) string { return "a title" }}},
		Open:  func(sealed, _ []byte) ([]byte, error) { return sealed, nil },
	}}
	j := job.Job{ID: "id", Kind: "k", ActorID: "u"}
	if r := g.shown(rest.Caller{UserID: "admin"})(j); r.Subject != "a title" || r.ActorID != "u" {
		t.Errorf("a user gets %+v", r)
	}
	if r := g.shown(rest.Caller{Service: "wallet"})(j); r.Subject != "" || r.ActorID != "" || r.ID != "id" {
		t.Errorf("a service client gets %+v", r)
	}
}
