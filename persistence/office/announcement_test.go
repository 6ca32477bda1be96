package office_test

import (
	"testing"

	"castellan/domain/office/announcement"
	"castellan/domain/office/announcement/announcementtest"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestAnnouncementStore(t *testing.T) {
	persistencetest.RunBoth(t, announcementtest.Run,
		func(db *persistence.DB) announcement.Store { return office.NewAnnouncements(db) }, "announcement")
}
