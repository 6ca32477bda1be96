package app

import (
	"castellan/domain/kit/blob"
	"castellan/domain/kit/richtext"
	"castellan/domain/office/announcement"
	"castellan/domain/office/contract"
	httpannouncement "castellan/http/office/announcement"
	httpcontract "castellan/http/office/contract"
	"castellan/persistence/office"
)

// content builds the texts that administrators write for users.
func (s *service) content() error {
	html := richtext.New(s.cdnURL)
	contracts := office.NewContracts(s.DB)
	agreed := &contract.Service{Store: contracts, HTML: html, Changes: s.changes("", nil)}
	agreed.Changes.Lock = contracts.Lock
	s.join(part{groups: groups(httpcontract.Group{Service: agreed})})
	s.registration(agreed)

	announcements := office.NewAnnouncements(s.DB)
	told := &announcement.Service{Store: announcements, HTML: html, Pictures: s.pictures, Files: s.files,
		Changes: s.changes("", nil)}
	told.Changes.Lock = announcements.Lock
	s.join(part{groups: groups(httpannouncement.Group{Service: told, CDN: s.cdnURL}),
		files: []blob.Owner{{Area: announcement.Area, ReferencedKeys: announcements.ReferencedKeys}}})
	return nil
}
