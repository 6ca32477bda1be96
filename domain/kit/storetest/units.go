package storetest

import (
	"context"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
)

// Units is a Committer in memory that keeps the writes of committed units. Its transactions roll nothing back.
type Units struct {
	Writes []commit.Write
	// Fails are the errors of the next units, in turn; nil commits one.
	Fails []error
}

var _ commit.Committer = (*Units)(nil)

func (u *Units) Commit(_ context.Context, writes ...commit.Write) error {
	if len(u.Fails) > 0 {
		err := u.Fails[0]
		if u.Fails = u.Fails[1:]; err != nil {
			return err
		}
	}
	u.Writes = append(u.Writes, writes...)
	return nil
}

func (u *Units) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// Audit returns the audit rows of the committed units, in short.
func (u *Units) Audit() (rows []string) {
	for _, w := range u.Writes {
		if r, is := w.(audit.Record); is {
			rows = append(rows, r.ActorID+" "+r.Action+" "+r.UserID+" "+r.Target+" "+r.Detail)
		}
	}
	return rows
}
