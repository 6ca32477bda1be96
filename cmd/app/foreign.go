package app

import (
	"context"
	"fmt"
	"time"

	"castellan/config"
	"castellan/domain/access/issuer"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	httpissuer "castellan/http/access/issuer"
	"castellan/outbound/fetch"
	"castellan/persistence"
	"castellan/persistence/access"
)

// Foreign builds the links of users who log in elsewhere (guard.issuers). It reads no keys yet.
func Foreign(cfg config.Guard, db *persistence.DB, changes admin.Changes) (*issuer.Service, error) {
	client, err := fetch.New(cfg.CAFile, cfg.Timeout, time.Now)
	if err != nil {
		return nil, fmt.Errorf("guard.ca_file: %w", err)
	}
	var all []issuer.Issuer
	for _, i := range cfg.ParsedIssuers() {
		all = append(all, issuer.Issuer(i))
	}
	users := access.NewUsers(db)
	return &issuer.Service{Verifier: issuer.NewVerifier(all, client.Get, time.Now), Store: access.NewUserLinks(db),
		Changes: changes, Exists: func(ctx context.Context, userID string) error {
			_, err := users.Get(ctx, userID)
			return err
		}}, nil
}

// foreignUsers builds the acceptance of tokens of other login services.
func (s *service) foreignUsers() (err error) {
	if s.foreign, err = Foreign(s.cfg.Guard, s.DB, s.changes("", nil)); err == nil {
		s.join(part{groups: groups(httpissuer.Group{Service: s.foreign})})
	}
	return err
}

// foreignUser returns the active account of a token of another login service. Errors: those of issuer.Service.User;
// TOKEN_REVOKED if the account is not active, as for an x-auth of such an account.
func (s *service) foreignUser(ctx context.Context, raw string) (userID string, of issuer.Identity, err error) {
	if userID, of, err = s.foreign.User(ctx, raw); err != nil {
		return "", of, err
	}
	_, err = accounts{s.users}.Account(ctx, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.TokenRevoked, "the account of the subject is not active")
	}
	return userID, of, err
}
