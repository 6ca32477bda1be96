package persistence

import (
	"testing"

	"castellan/domain/office/announcement"
	"castellan/domain/office/announcement/announcementtest"
)

func TestAnnouncementStore(t *testing.T) {
	suite(t, announcementtest.Run, func(db *DB) announcement.Store { return NewAnnouncements(db) }, "announcement")
}
