package app

import (
	"castellan/domain/kyc"
	httpkyc "castellan/http/kyc"
	"castellan/persistence"
)

// kyc builds how accounts are confirmed.
func (s *service) kyc() error {
	c := s.cfg.KYC
	s.join(part{groups: groups(httpkyc.Group{Service: &kyc.Service{Store: persistence.NewDecisions(s.DB), Users: s.users,
		Documents: s.papers.Store, Originals: s.papers, Pictures: s.pictures, Changes: s.changes("", nil),
		Types: kyc.Types{Front: int64(c.FrontType), Back: int64(c.BackType), Selfie: int64(c.SelfieType),
			Address: int64(c.AddressType)},
		Language: s.cfg.Language.Default, Tell: s.starter.Tell}})})
	return nil
}
