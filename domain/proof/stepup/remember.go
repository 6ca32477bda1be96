package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// recall completes the method for which the client of a new challenge is remembered (D-AUTH-17), and returns the write
// of its use; nil if there is none. The write fails if the client was forgotten meanwhile. The client must show that it
// holds its key now: neither a token nor a cookie is enough.
//
// Errors: those of the proof, UNAVAILABLE.
func (s *Starter) recall(ctx context.Context, now time.Time, c *challenge.Challenge, plan mfa.Plan,
	k challenge.ClientKey) ([]commit.Write, error) {
	if s.Remembered == nil || plan.RememberDays <= 0 || k.Thumbprint == "" || !c.Proven || !c.Kind.Owned() {
		return nil, nil
	}
	if !slices.ContainsFunc(c.Methods, func(m challenge.Method) bool { return remembered.Eligible(*c, m) }) {
		return nil, nil
	}
	c.Key, c.RememberDays = k.Thumbprint, plan.RememberDays
	if !k.Proven && k.Prove == nil {
		return nil, nil
	}
	client, err := s.Remembered.Find(ctx, c.UserID, k.Thumbprint, c.Action)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Methods, func(m challenge.Method) bool {
		return m.Name == client.Method && remembered.Eligible(*c, m)
	})
	if i < 0 || !client.Counts(now, c.CV, plan.RememberDays) {
		return nil, nil
	}
	if !k.Proven {
		if err := k.Prove(ctx); err != nil {
			return nil, err
		}
	}
	*c = c.Recall(now, i, client.ID)
	return []commit.Write{remembered.Used{ID: client.ID, UserID: c.UserID, Thumbprint: k.Thumbprint, At: now}}, nil
}

// finish runs the action of a challenge that its start has completed, if the action only writes rows. It returns the
// challenge in its last state, with the writes of its effect and its outcome: all commit with the challenge. The owner
// of the challenge does the same for one that is completed later.
func (s *Starter) finish(ctx context.Context, now time.Time, a challenge.Action, c challenge.Challenge,
	command []byte) (challenge.Challenge, *challenge.Result, []commit.Write, error) {
	result, writes, err := a.Build(ctx, challenge.Execution{Challenge: c, Command: command, Now: now})
	next := c.Finish()
	if err != nil {
		switch fault.CodeOf(err) {
		case fault.Unavailable, fault.Overloaded, fault.Internal:
			return c, nil, nil, err
		}
		result, writes = challenge.Failed(err), nil
		if a.Ended != nil {
			if writes, err = a.Ended(ctx, next, now); err != nil {
				return c, nil, nil, err
			}
		}
	}
	plain, err := result.AppendBinary(nil)
	if err != nil {
		return c, nil, nil, err
	}
	outcome := challenge.Record{Outcome: challenge.Outcome{ChallengeID: c.ID, CreatedAt: now.UnixMilli(),
		ExpiresAt: c.ExpiresAt + s.Config.Grace.Milliseconds(),
		Sealed:    s.Ring.Seal(plain, challenge.OutcomeData(c.ID))}}
	row := audit.Record{At: now, ActorID: c.UserID, UserID: c.UserID, Action: c.Action, Target: c.ID,
		Outcome: audit.Success, IP: c.Starter.IP, RequestID: c.Starter.RequestID}
	switch {
	case !result.Success:
		row.Outcome, row.Detail = audit.Refused, string(result.Code)
	case result.SessionID != "":
		row.Detail = "session " + result.SessionID
	}
	return next, &result, append(writes, outcome, row), nil
}

// executed waits for the action of a challenge that its start has completed. It returns nil as long as the action has
// not reported: the client then asks for the result. Within a transaction it does not wait, because the challenge is
// not there before its end.
func (s *Starter) executed(ctx context.Context, id string) *challenge.Result {
	if commit.Inside(ctx) {
		commit.After(ctx, func() { s.Challenges.Resume(id) })
		return nil
	}
	var r challenge.Result
	got, err := s.Challenges.Result(ctx, id, s.Config.ExecWait)
	var plain []byte
	if err == nil { // an outcome that is not there cannot be opened
		plain, err = s.Ring.Open(got.Outcome, challenge.OutcomeData(id))
	}
	if err == nil {
		err = r.UnmarshalBinary(plain)
	}
	if err != nil {
		return nil
	}
	return &r
}
