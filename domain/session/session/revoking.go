package session

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
)

// Revoking is a Committer that passes every end of a session to this node's table as soon as it is durable, and so
// before any caller is answered. It is for writers that cannot do so themselves, such as the action of a challenge,
// whose writes the challenge's owner commits.
type Revoking struct {
	commit.Committer
	Revocations *Revocations
	// Also, which may be nil, gets every write that has become durable. It updates another copy on this node before
	// any caller is answered.
	Also func(w commit.Write)
}

func (r Revoking) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := r.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	commit.After(ctx, func() { r.report(writes) })
	return nil
}

func (r Revoking) report(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case End:
			r.Revocations.End(w.SessionID)
		case user.EndSessions:
			r.Revocations.Raise(w.UserID, w.SV+1)
		}
		if r.Also != nil {
			r.Also(w)
		}
	}
}
