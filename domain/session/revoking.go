package session

import (
	"context"

	"castellan/domain/commit"
	"castellan/domain/user"
)

// Revoking is a Committer that tells this node's table of every end of a
// session as soon as it is durable, and so before anybody is answered. It
// serves writers that cannot do so themselves, such as the action of a
// challenge, whose writes are committed by the challenge's owner.
type Revoking struct {
	commit.Committer
	Revocations *Revocations
	// Also, which may be nil, is told of every write that has become durable: a
	// copy of the node that must be true before anybody is answered.
	Also func(w commit.Write)
}

type revokingKey struct{}

// Commit implements commit.Committer.
func (r Revoking) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := r.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	if later, ok := ctx.Value(revokingKey{}).(*[]commit.Write); ok {
		*later = append(*later, writes...) // durable when the transaction is
		return nil
	}
	r.tell(writes)
	return nil
}

// InTx implements commit.Committer.
func (r Revoking) InTx(ctx context.Context, fn func(context.Context) error) error {
	if _, nested := ctx.Value(revokingKey{}).(*[]commit.Write); nested {
		return r.Committer.InTx(ctx, fn)
	}
	var later []commit.Write
	if err := r.Committer.InTx(context.WithValue(ctx, revokingKey{}, &later), fn); err != nil {
		return err
	}
	r.tell(later)
	return nil
}

func (r Revoking) tell(writes []commit.Write) {
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
