package app

import (
	"context"
	"testing"

	"castellan/domain/kit/change"
)

// The tasks of a node remove data that can no longer be requested.
func TestJobsPurge(t *testing.T) {
	s := assembled(t)
	if err := s.commit.Commit(t.Context(), change.Note{Topic: change.MFA}); err != nil {
		t.Fatal(err)
	}
	notes := func() int {
		n, err := s.DB.Conn(t.Context()).NewSelect().Table("change").Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	err := s.DB.InTx(t.Context(), func(ctx context.Context) error {
		_, err := s.DB.Conn(ctx).NewUpdate().Table("change").Set("at = 0").Where("1 = 1").Exec(ctx)
		return err
	})
	if err != nil || notes() == 0 {
		t.Fatalf("no old note: %v", err)
	}
	if len(s.purges) == 0 {
		t.Fatal("no part removes anything")
	}
	for _, j := range s.tasks {
		if err := j.do(t.Context()); err != nil {
			t.Errorf("%s: %v", j.complaint, err)
		}
	}
	if n := notes(); n != 0 {
		t.Errorf("%d old notes are still there after every job ran", n)
	}
}
