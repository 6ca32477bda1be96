package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/kit/id"
)

// countedFor is for how long wrong values of a decoy may still count.
const countedFor = 24 * time.Hour

// Subject is the subject of a public start for a phone, and those that it may have
// had before, with which its starts are counted. It is Conceal, but for the day after
// the key of that was replaced: where decoys of the phone are open, or wrong values
// for one still count, the phone keeps its subject, or a stranger would see them
// forgotten as those of no account are.
func (s *Messenger) Subject(ctx context.Context, phone string) (subject string, former []string, err error) {
	var all []string
	for _, sum := range s.Ring.Steadies("decoy", phone) {
		all = append(all, decoySubject(sum))
	}
	subject, now := all[0], s.Now()
	for _, f := range all[1:] {
		open, err := s.Store.Open(ctx, f, now)
		if err != nil {
			return "", nil, err
		}
		var spent []int64
		for _, flow := range []challenge.Flow{challenge.FlowReset, challenge.FlowRegister} {
			b, err := s.Store.Budget(ctx, f, flow)
			if err != nil {
				return "", nil, err
			}
			spent = append(spent, b.OTP...)
		}
		since := now.Add(-countedFor).UnixMilli()
		if len(open) > 0 || slices.ContainsFunc(spent, func(at int64) bool { return at > since }) {
			subject = f
		}
	}
	return subject, slices.DeleteFunc(all, func(s string) bool { return s == subject }), nil
}

func decoySubject(sum []byte) string { return challenge.DecoyMark + id.Encode([16]byte(sum))[1:] }
