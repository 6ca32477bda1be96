package announcement

import (
	"cmp"
	"context"
	"maps"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/slug"
)

// Store stores the announcements. Every method joins the transaction that its context carries. It is safe for
// concurrent use.
type Store interface {
	// Lock serialises transactions across all nodes: the transaction that ctx carries is the only one that holds the
	// lock, until its end.
	Lock(ctx context.Context) error
	// List lists the matching announcements: pinned ones first, then by priority, then by order number, those without
	// one last, then the latest start (D-ANN-04).
	List(ctx context.Context, q Query) ([]Announcement, error)
	// Slugs lists the slugs that equal base, or begin with base and a dash.
	Slugs(ctx context.Context, base string) ([]string, error)
	// Add inserts an announcement and returns its id; RECORD_ALREADY_EXIST if the slug is taken, also under concurrent
	// calls.
	Add(ctx context.Context, a Announcement) (int64, error)
	// Change calls f with the announcement and saves the result, as one step; the slug and the creator are unchanged.
	// RECORD_NOT_FOUND.
	Change(ctx context.Context, id int64, f func(Announcement) (Announcement, error)) error
	// Remove deletes an announcement. RECORD_NOT_FOUND.
	Remove(ctx context.Context, id int64) error
	// ReferencedKeys returns those of the keys that are pictures of an announcement.
	ReferencedKeys(ctx context.Context, keys []string) ([]string, error)
}

// Query selects announcements; a nil field does not filter.
type Query struct {
	ID     *int64
	Slug   *string
	Active *bool
}

// Service applies changes made by administrators.
type Service struct {
	Store    Store
	Changes  admin.Changes // without a topic: no node caches announcements; its Lock is that of Store
	HTML     *richtext.Policy
	Pictures *picture.Decoder
	Files    blob.Store
}

// Area is the storage area of the pictures.
const Area = blob.Public + "/announcement"

// Images are the pictures of a request by platform, in any supported format. nil: unchanged. A pointer to an empty
// slice removes the picture.
type Images [platforms]*[]byte

// Add adds an announcement and returns it. INVALID_FIELD, OVERLOADED for the
// pictures.
func (s *Service) Add(ctx context.Context, by audit.By, a Announcement, images Images) (Announcement, error) {
	clean, err := s.clean(ctx, images)
	if err != nil {
		return a, err
	}
	a.CreatedBy = by.UserID
	if a, err = s.complete(a, by, clean, true); err != nil {
		return a, err
	}
	if err := s.put(ctx, clean); err != nil {
		return a, err
	}
	err = s.Changes.Do(ctx, by, "ANNOUNCEMENT_ADD", func(ctx context.Context) (_ admin.Done, err error) {
		base := cmp.Or(slug.Of(a.Title), "announcement")
		taken, err := s.Store.Slugs(ctx, base)
		if err == nil {
			a.Slug = slug.Free(base, taken)
			a.ID, err = s.Store.Add(ctx, a)
		}
		return done(a.ID, a.Slug), err
	})
	return a, err
}

// Change applies edit to an announcement and returns it. INVALID_FIELD, RECORD_NOT_FOUND, OVERLOADED for the pictures.
func (s *Service) Change(ctx context.Context, by audit.By, id int64, edit func(*Announcement),
	images Images) (next Announcement, err error) {
	clean, err := s.clean(ctx, images)
	if err == nil {
		err = s.put(ctx, clean)
	}
	if err != nil {
		return next, err
	}
	err = s.Changes.Do(ctx, by, "ANNOUNCEMENT_UPDATE", func(ctx context.Context) (_ admin.Done, err error) {
		var before Announcement
		err = s.Store.Change(ctx, id, func(a Announcement) (_ Announcement, err error) {
			before = a
			edit(&a)
			next, err = s.complete(a, by, clean, false)
			return next, err
		})
		if err == nil {
			blob.Replaced(ctx, s.Files, before.Pictures[:], next.Pictures[:])
		}
		return done(id, admin.Differ(before, next)), err
	})
	return next, err
}

// Remove deletes an announcement. RECORD_NOT_FOUND.
func (s *Service) Remove(ctx context.Context, by audit.By, id int64) error {
	return s.Changes.Do(ctx, by, "ANNOUNCEMENT_DELETE", func(ctx context.Context) (d admin.Done, err error) {
		there, err := s.Store.List(ctx, Query{ID: &id})
		if err == nil {
			err = s.Store.Remove(ctx, id)
		}
		if err == nil {
			d = done(id, there[0].Slug)
			blob.Replaced(ctx, s.Files, there[0].Pictures[:], nil)
		}
		return d, err
	})
}

func done(id int64, detail string) admin.Done {
	return admin.Done{Target: strconv.FormatInt(id, 10), Detail: detail}
}

// complete sets the author and the pictures of an edited announcement, validates it, and cleans its HTML.
func (s *Service) complete(a Announcement, by audit.By, clean [platforms]*file, added bool) (Announcement, error) {
	a.UpdatedBy, a.Policy = by.UserID, s.HTML.ID
	for i, f := range clean {
		if f != nil {
			a.Pictures[i] = f.key
		}
	}
	if err := a.Check(added); err != nil {
		return a, err
	}
	if a.HTML != nil {
		a.HTML = new(s.HTML.Clean(*a.HTML))
	}
	a.HTMLs = maps.Clone(a.HTMLs)
	for l, html := range a.HTMLs {
		a.HTMLs[l] = s.HTML.Clean(html)
	}
	return a, a.Check(added) // cleaned HTML may be longer than the sent HTML
}

// file is a clean picture and its key; the zero value is none.
type file struct {
	key     string
	content []byte
}

// clean validates pictures and encodes them again.
func (s *Service) clean(ctx context.Context, images Images) (clean [platforms]*file, err error) {
	for i, data := range images {
		if data == nil {
			continue
		}
		clean[i] = new(file)
		if *data != nil {
			p, err := s.Pictures.Clean(ctx, pictureFields[i], *data)
			if err != nil {
				return clean, err
			}
			*clean[i] = file{blob.NewKey(Area, p.Format.Ext(), s.Changes.Now()), p.Bytes}
		}
	}
	return clean, nil
}

// put stores clean pictures. If their row is not committed, the sweeper removes them.
func (s *Service) put(ctx context.Context, clean [platforms]*file) error {
	for _, f := range clean {
		if f == nil || f.key == "" {
			continue
		}
		if err := s.Files.Put(ctx, f.key, f.content); err != nil {
			return err
		}
	}
	return nil
}
