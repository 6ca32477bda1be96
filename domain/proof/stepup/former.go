package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/id"
)

// countedFor is how long wrong values of a decoy may still count.
const countedFor = 24 * time.Hour

// Subject returns the subject of a public start for a phone, and its former ones, with which its starts are counted.
// The subject is Conceal, except after a rotation of the key. While the phone has open decoys, or wrong values of the
// last day, it keeps its former subject. Otherwise a stranger would see them forgotten, which happens for phones
// without an account only.
func (s *Messenger) Subject(ctx context.Context, phone string) (subject string, former []string, err error) {
	var all []string
	for _, sum := range s.Ring.StableHashes("decoy", phone) {
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
