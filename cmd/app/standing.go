package app

import (
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/money/blockage"
	"castellan/domain/people/standing"
	httpblockage "castellan/http/money/blockage"
	httpintegration "castellan/http/people/integration"
	httpstanding "castellan/http/people/standing"
	"castellan/persistence/access"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
)

// standings builds the restrictions on accounts and money.
func (s *service) standings() error {
	blockages := &blockage.Service{Store: money.NewBlockages(s.DB), Ledger: s.ledger, Users: s.users,
		Currencies: s.currencies, Now: time.Now}
	store := people.NewStandings(s.DB)
	service := &standing.Service{Store: store, Users: s.users, Blockages: blockages,
		Administrators: access.NewResources(s.DB), Dev: s.cfg.Dev, Parameters: s.parameters,
		Ignored: kit.NewParameters(s.DB), Changes: s.changes(change.Parameters, s.parameters),
		ClosureType: int64(s.cfg.Blockage.ClosureType)}
	service.Changes.Lock, service.Claims = store.Lock, s.external
	s.join(part{groups: groups(httpblockage.Group{Service: blockages}, httpstanding.Group{Service: service},
		httpintegration.Findings{Service: service})})
	return nil
}
