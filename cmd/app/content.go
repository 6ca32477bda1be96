package app

import (
	"castellan/domain/contract"
	"castellan/domain/richtext"
	httpcontract "castellan/http/contract"
	"castellan/persistence"
)

// content builds the texts that administrators write for users.
func (s *service) content() error {
	html := richtext.New("")
	contracts := persistence.NewContracts(s.DB)
	agreed := &contract.Service{Store: contracts, HTML: html, Changes: s.changes("", nil)}
	agreed.Changes.Lock = contracts.Lock
	s.join(part{groups: groups(httpcontract.Group{Service: agreed})})
	return nil
}
