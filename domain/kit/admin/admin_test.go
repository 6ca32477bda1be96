package admin_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
)

var (
	now  = time.UnixMilli(1_700_000_000_000)
	by   = audit.By{UserID: "u1", IP: "192.0.2.1", RequestID: "r1"}
	errs = errors.New("no")
)

type extra struct{ commit.Unflushed }

// steps is a Committer that records the order of the steps.
type steps struct {
	seen   []string
	writes []commit.Write
	fail   error // of the commit
}

func (s *steps) Commit(_ context.Context, ws ...commit.Write) error {
	s.seen, s.writes = append(s.seen, "write"), ws
	return s.fail
}

func (s *steps) InTx(ctx context.Context, fn func(context.Context) error) error {
	s.seen = append(s.seen, "begin")
	err := fn(ctx)
	if err == nil {
		s.seen = append(s.seen, "commit")
	}
	return err
}

func (s *steps) step(name string, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		s.seen = append(s.seen, name)
		return errors.Join(err, ctx.Err())
	}
}

// follow is the step that applies the change of t1.
func (s *steps) follow(t *testing.T, err error) func(context.Context, ...string) error {
	return func(ctx context.Context, keys ...string) error {
		if len(keys) != 1 || keys[0] != "t1" {
			t.Errorf("told to follow %v", keys)
		}
		return s.step("follow", err)(ctx)
	}
}

func TestDo(t *testing.T) {
	done := admin.Done{Target: "t1", Detail: "d", UserID: "u2", Writes: []commit.Write{extra{}}}
	row := audit.Record{At: now, ActorID: "u1", UserID: "u2", Action: "A", Target: "t1", Outcome: audit.Success,
		IP: "192.0.2.1", RequestID: "r1", Detail: "d"}
	for name, c := range map[string]struct {
		done                    admin.Done
		lock, do, write, follow error
		seen                    []string
	}{
		"done":              {done: done, seen: []string{"begin", "lock", "do", "write", "commit", "follow"}},
		"nothing to change": {seen: []string{"begin", "lock", "do", "commit"}},
		"lock refused":      {done: done, lock: errs, seen: []string{"begin", "lock"}},
		"change refused":    {done: done, do: errs, seen: []string{"begin", "lock", "do"}},
		"row not written":   {done: done, write: errs, seen: []string{"begin", "lock", "do", "write"}},
		"follow not possible": {done: done, follow: errs,
			seen: []string{"begin", "lock", "do", "write", "commit", "follow"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &steps{fail: c.write}
			changes := admin.Changes{Commit: s, Now: func() time.Time { return now }, Topic: change.MFA,
				Lock: s.step("lock", c.lock), Follow: s.follow(t, c.follow)}
			err := changes.Do(t.Context(), by, "A", func(ctx context.Context) (admin.Done, error) {
				return c.done, s.step("do", c.do)(ctx)
			})
			if want := errors.Join(c.lock, c.do, c.write); (err == nil) != (want == nil) {
				t.Errorf("error %v, want %v", err, want)
			}
			if !reflect.DeepEqual(s.seen, c.seen) {
				t.Errorf("steps %v, want %v", s.seen, c.seen)
			}
			want := []commit.Write{extra{}, row, change.Note{Topic: change.MFA, Key: "t1"}}
			if s.writes != nil && !reflect.DeepEqual(s.writes, want) {
				t.Errorf("writes %+v, want %+v", s.writes, want)
			}
		})
	}
}

// Records that no node caches need no note. A caller that has disconnected does not stop the node from reading the
// committed data.
func TestDoWithoutTopicAndWithoutCaller(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	s := &steps{}
	changes := admin.Changes{Commit: s, Now: func() time.Time { return now }, Follow: s.follow(t, nil)}
	err := changes.Do(gone, by, "A", func(context.Context) (admin.Done, error) {
		leave()
		return admin.Done{Target: "t1"}, nil
	})
	if err != nil || len(s.writes) != 1 {
		t.Errorf("error %v, writes %+v", err, s.writes)
	}
	// The key of the note may differ from the target of the row.
	changes.Topic, changes.Follow = change.Roles, nil
	err = changes.Do(t.Context(), by, "A", func(context.Context) (admin.Done, error) {
		return admin.Done{Target: "t1", Key: "k1"}, nil
	})
	if note := (change.Note{Topic: change.Roles, Key: "k1"}); err != nil || s.writes[len(s.writes)-1] != note {
		t.Errorf("error %v, writes %+v", err, s.writes)
	}
}

func TestDiffer(t *testing.T) {
	type record struct {
		Name  string
		Tags  []string
		Limit *int
		quiet int
	}
	before := record{"secret", []string{"a"}, new(1), 1}
	for _, c := range []struct {
		after record
		want  string
	}{
		{record{"secret", []string{"a"}, new(1), 2}, ""},
		{record{"other", []string{"a", "b"}, new(1), 1}, "Name Tags"},
		{record{"secret", []string{"a"}, nil, 1}, "Limit"},
	} {
		if got := admin.Differ(before, c.after); got != c.want {
			t.Errorf("%+v: %q, want %q", c.after, got, c.want)
		}
	}
}
