package office

import (
	"context"
	"slices"

	"github.com/uptrace/bun"

	"castellan/domain/office/announcement"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Announcements struct{ db *engine.DB }

func NewAnnouncements(db *engine.DB) announcement.Store { return Announcements{db} }

// announcementLock is the key under which announcements change.
const announcementLock = 0x616e6e6f756e6365 // "announce"

type announcementRow struct {
	bun.BaseModel `bun:"table:announcement,alias:a"`

	ID                                     int64 `bun:",pk,autoincrement"`
	Slug                                   string
	Title, Message                         string
	Titles, Messages                       record.JSON[announcement.Texts]
	HTML                                   *string                         `bun:"html"`
	HTMLs                                  record.JSON[announcement.Texts] `bun:"htmls"`
	Policy                                 string
	Route                                  string `bun:",nullzero"`
	Routes                                 record.JSON[announcement.Routes]
	StartAt, EndAt                         int64
	Active                                 bool
	Priority                               int64
	OrderNo                                *int64
	Expanded, Pinned, Slider               *bool
	SliderName                             string
	Type                                   *int64
	ClientType                             *string
	AndroidPicture, IOSPicture, WebPicture string
	CreatedBy, UpdatedBy                   string
	record.Stamps
}

var announcements = record.Of(record.Table[announcementRow, announcement.Announcement]{
	Order: record.Keyset{Columns: "COALESCE(pinned, FALSE) DESC, priority DESC, order_no IS NULL, order_no, " +
		"start_at DESC, id"},
	Fixed: []string{"slug", "created_by", "created_at"},
	Reads: func(r announcementRow, a *announcement.Announcement) error {
		a.Pictures[announcement.Android], a.Pictures[announcement.IOS] = r.AndroidPicture, r.IOSPicture
		a.Pictures[announcement.Web] = r.WebPicture
		return nil
	},
	Writes: func(a announcement.Announcement, r *announcementRow) {
		r.AndroidPicture, r.IOSPicture = a.Pictures[announcement.Android], a.Pictures[announcement.IOS]
		r.WebPicture = a.Pictures[announcement.Web]
	},
}, record.Names{"AndroidPicture": "", "IOSPicture": "", "WebPicture": ""}, "Pictures")

func (s Announcements) Lock(ctx context.Context) error { return s.db.LockTx(ctx, announcementLock) }

func (s Announcements) List(ctx context.Context, q announcement.Query) ([]announcement.Announcement, error) {
	return announcements.List(ctx, s.db, record.Part{Where: []record.Filter{
		record.Sent("id", q.ID), record.Sent("slug", q.Slug), record.Sent("active", q.Active)}})
}

func (s Announcements) Slugs(ctx context.Context, base string) (slugs []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Model((*announcementRow)(nil)).Column("slug").
		Where("slug = ? OR slug LIKE ?", base, base+"-%"), &slugs)
	return slugs, err
}

func (s Announcements) Add(ctx context.Context, a announcement.Announcement) (int64, error) {
	return announcements.Add(ctx, s.db, a)
}

func (s Announcements) Change(ctx context.Context, id int64,
	f func(announcement.Announcement) (announcement.Announcement, error)) error {
	return announcements.Change(ctx, s.db, f, record.Is("id", id))
}

func (s Announcements) Remove(ctx context.Context, id int64) error {
	return announcements.Remove(ctx, s.db, record.Is("id", id))
}

func (s Announcements) ReferencedKeys(ctx context.Context, keys []string) (named []string, err error) {
	in := bun.List(keys)
	all, err := announcements.List(ctx, s.db, record.Part{Where: []record.Filter{
		record.Where("android_picture IN (?) OR ios_picture IN (?) OR web_picture IN (?)", in, in, in)}})
	for _, a := range all {
		for _, key := range a.Pictures {
			if slices.Contains(keys, key) {
				named = append(named, key)
			}
		}
	}
	return named, err
}
