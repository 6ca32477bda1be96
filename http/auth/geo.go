package auth

import (
	"context"

	"castellan/domain/access/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/http/rest"
)

// Geo judges whether an account may be used from where a request comes from
// (D-GEO-02). It reads no row: filters are the node's copy, and the owner of a
// challenge knows its user.
type Geo struct {
	Policy geo.Policy
	// Filter is the present filter of an account.
	Filter func(userID string) geo.Filter
	// Holder names the user of a challenge.
	Holder func(ctx context.Context, challengeID string) (challenge.Holder, error)
}

// user judges a request in the name of an account.
func (g *Geo) user(userID string, who rest.Caller) error {
	if g == nil {
		return nil
	}
	return g.judge(g.Filter(userID), who)
}

// challenge judges a request in the name of a challenge. A decoy has no user and
// no filter; a challenge that does not exist is for the endpoint to refuse. The
// caller that comes back names the challenge's user, so that the endpoint need not
// ask again; with a refusal it also names the account, for the audit.
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
