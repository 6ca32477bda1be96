package app

import (
	"context"
	"fmt"
	"time"

	"castellan/config"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/issuer"
	"castellan/http/auth"
	httpissuer "castellan/http/proof/issuer"
	"castellan/outbound/fetch"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/proof"
)

// Foreign builds the links of users who log in elsewhere (guard.issuers). It reads no keys yet. refresh notifies the
// owner of a closed challenge.
func (d *Deployment) Foreign(cfg config.Guard, changes admin.Changes, notices challenge.Notices,
	refresh func(challengeID string)) (*issuer.Service, error) {
	client, err := fetch.New(cfg.CAFile, cfg.Timeout, time.Now)
	if err != nil {
		return nil, fmt.Errorf("guard.ca_file: %w", err)
	}
	var all []issuer.Issuer
	for _, i := range cfg.ParsedIssuers() {
		all = append(all, issuer.Issuer(i))
	}
	users := account.NewUsers(d.DB)
	return &issuer.Service{Verifier: issuer.NewVerifier(all, client.Get, time.Now), Store: proof.NewUserLinks(d.DB),
		Changes: changes, Notices: notices, Hash: d.Ring.StableHash, Pending: factor.NewChallenges(d.DB).Pending,
		Refresh: refresh, Account: func(ctx context.Context, userID string) (challenge.Account, error) {
			u, err := users.Get(ctx, userID)
			return u.Account(), err
		}}, nil
}

// foreignUsers builds the acceptance of tokens of other login services.
func (s *service) foreignUsers() (err error) {
	if s.foreign, err = s.Foreign(s.cfg.Guard, s.changes("", nil), s.starter, s.client.Refresh); err == nil {
		s.join(part{groups: groups(httpissuer.Group{Service: s.foreign})})
	}
	return err
}

// foreignBearer is auth.Foreign: it returns the active account of a token of another login service. Errors: those of
// issuer.Service.User; TOKEN_REVOKED if the account is not active, as for an x-auth of such an account.
func (s *service) foreignBearer(ctx context.Context, raw string) (u auth.ForeignUser, ok bool, err error) {
	if !s.foreign.Names(raw) {
		return u, false, nil
	}
	userID, of, err := s.foreign.User(ctx, raw)
	if err != nil {
		return u, true, err
	}
	_, err = accounts{s.users}.Account(ctx, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.TokenRevoked, "the account of the subject is not active")
	}
	return auth.ForeignUser{UserID: userID, Session: of.Session, Login: of.Login}, true, err
}
