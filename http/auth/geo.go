package auth

import (
	"context"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/http/rest"
)

// Geo checks whether an account may be used from the country of a request (D-GEO-02). It reads
// no row: filters come from the node's copy, and the user of a challenge from its owner.
type Geo struct {
	Policy geo.Policy
	// Filter returns the current filter of an account.
	Filter func(userID string) geo.Filter
	// Holder names the user of a challenge.
	Holder func(ctx context.Context, challengeID string) (challenge.Holder, error)
}

// user checks a request in the name of an account.
func (g *Geo) user(userID string, who rest.Caller) error {
	if g == nil {
		return nil
	}
	return g.judge(g.Filter(userID), who)
}

// challenge checks a request in the name of a challenge. A decoy has no user and no filter;
// the endpoint refuses an unknown challenge. The returned caller names the challenge's user,
// so that the endpoint need not look it up again. On a refusal it also names the account, for
// the audit.
func (g *Geo) challenge(ctx context.Context, who rest.Caller) (rest.Caller, error) {
	if g == nil {
		return who, nil
	}
	h, err := g.Holder(ctx, who.ChallengeID)
	switch {
	case fault.CodeOf(err) == fault.ChallengeNotFound:
		return who, nil
	case err != nil:
		return who, err
	case !h.KeepsFilter:
		h.Filter = g.Filter(h.UserID)
	}
	who.ChallengeUser = &h.UserID
	if err := g.judge(h.Filter, who); err != nil {
		who.UserID = h.UserID
		return who, err
	}
	return who, nil
}

func (g *Geo) judge(f geo.Filter, who rest.Caller) error {
	if f == "" || g.Policy.Admits(f, who.Country, who.IP) {
		return nil
	}
	return fault.New(fault.GeoBlocked, "the account cannot be used from this country")
}
