package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/kit/blob"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
	"castellan/domain/people/agreement"
	"castellan/domain/people/document"
	"castellan/persistence"
)

// The job of the sweeper removes an old file without a row from the area of every slice, and keeps a file that
// a row names.
func TestSweeperKnowsEveryOwner(t *testing.T) {
	s := assembled(t)
	ctx, old := t.Context(), time.Now().Add(-2*blob.SweepAfter)
	put := func(key string) {
		t.Helper()
		storetest.Must(t, s.files.Put(ctx, key, []byte("x")))
		storetest.Must(t, os.Chtimes(filepath.Join(s.cfg.Files.Folder, key), old, old))
	}
	var lost, named []string
	for _, area := range []string{document.Area, announcement.Area, agreement.Area, blob.Temporary} {
		lost = append(lost, blob.NewKey(area, ".png", old))
		named = append(named, blob.NewKey(area, ".png", old))
	}
	named = named[:3] // a temporary file has no row
	storetest.Must(t, persistence.NewDocuments(s.DB).Add(ctx, document.Document{ID: "D1", UserID: "u1", Name: "a.png",
		MimeType: "image/png", Status: document.Active, Path: named[0], Size: 1, CreatedAt: old}, 1, 100))
	_, err := persistence.NewAnnouncements(s.DB).Add(ctx, announcement.Announcement{Slug: "a", Title: "t", Message: "m",
		StartAt: old, EndAt: old, Pictures: [3]string{named[1]}})
	storetest.Must(t, err)
	_, err = persistence.NewAgreements(s.DB).Add(ctx, agreement.Agreement{Name: "A", Version: "1", FilePath: named[2]})
	storetest.Must(t, err)
	for _, key := range append(lost, named...) {
		put(key)
	}
	done, _, err := s.kinds["sweep-files"].Step(ctx, job.Job{})
	if storetest.Must(t, err); done.Done != int64(len(lost)) || !done.State.Over() {
		t.Errorf("%d of %d files without a row were removed: %+v", done.Done, len(lost), done)
	}
	for _, key := range lost {
		if _, err := s.files.Stat(ctx, key); err == nil {
			t.Errorf("%s has no row and is kept", key)
		}
	}
	for _, key := range named {
		if _, err := s.files.Stat(ctx, key); err != nil {
			t.Errorf("%s is named by a row: %v", key, err)
		}
	}
}
