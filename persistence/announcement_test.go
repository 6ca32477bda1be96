package persistence

import (
	"testing"

	"castellan/domain/announcement"
	"castellan/domain/announcement/announcementtest"
)

func TestAnnouncementStore(t *testing.T) {
	suite(t, announcementtest.Run, func(db *DB) announcement.Store { return NewAnnouncements(db) }, "announcement")
}
