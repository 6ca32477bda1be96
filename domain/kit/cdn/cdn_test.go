package cdn_test

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/cdn"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
)

var errFull = errors.New("the disk is full")

// files are stored files by key, and the audit of their uploads.
type files struct {
	blob.Store
	commit.Committer
	content       map[string][]byte
	audit         []audit.Record
	full, refused bool
}

func (f *files) Put(_ context.Context, key string, content []byte) error {
	if f.full {
		return errFull
	}
	f.content[key] = content
	return nil
}

func (f *files) InTx(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

func (f *files) Commit(_ context.Context, writes ...commit.Write) error {
	if f.refused {
		return errFull
	}
	for _, w := range writes {
		if r, is := w.(audit.Record); is {
			f.audit = append(f.audit, r)
		}
	}
	return nil
}

func newService() (*cdn.Service, *files) {
	f := &files{content: map[string][]byte{}}
	return &cdn.Service{Files: f, Pictures: picture.NewDecoder(), Values: parameter.NewCache(nil).Set, URL: "/cdn",
		Changes: admin.Changes{Commit: f, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}, f
}

var by = audit.By{UserID: "u1"}

// An upload is stored as clean pixels, under the harmless characters of its name.
func TestUpload(t *testing.T) {
	s, f := newService()
	folder := parameter.CDN.In(s.Values()).FolderTypes[0]
	long := strings.Repeat("a", 100)
	shapes := map[string][]byte{"png": picturetest.PNG(20, 10), "jpeg": picturetest.JPEG(20, 10),
		"webp": picturetest.WebP(8, 8), "gif": picturetest.GIF(5, 7)}
	for _, c := range []struct {
		shape, name string
		suffix      bool
		path        string
	}{
		{"png", "logo.png", false, "logo.png"}, {"png", "logo", false, "logo.png"}, {"jpeg", "logo", false, "logo.jpg"},
		{"jpeg", "logo.JPEG", false, "logo.JPEG"}, {"jpeg", "logo.jpg", false, "logo.jpg"}, {"gif", "g.gif", false, "g.gif"},
		{"webp", "w.webp", false, "w.webp"}, {"png", `C:\a/b\c d.é.png`, false, "cd.png"},
		{"png", "../../etc/x.png", false, "x.png"}, {"png", "x.png", true, "x_1700000000000.png"},
		{"png", ".x.", false, "x.png"}, {"png", "a.b.png", false, "a.b.png"}, {"png", long + ".png", false, long + ".png"},
		{"png", "v1.0", false, "v1.0.png"},
	} {
		address, err := s.Upload(t.Context(), by, cdn.Upload{Content: shapes[c.shape], Name: c.name, FolderOf: folder,
			Suffix: c.suffix})
		path := "upload/" + folder + "/" + c.path
		if err != nil || address != "/cdn/"+path || len(f.content[blob.PublicKey(path)]) == 0 {
			t.Errorf("%s: %s, %v", c.name, address, err)
			continue
		}
		if last := f.audit[len(f.audit)-1]; last.Action != cdn.ActionUpload || last.Target != path || last.ActorID != "u1" {
			t.Errorf("%s: %+v", c.name, last)
		}
	}
	stored, err := png.DecodeConfig(bytes.NewReader(f.content[blob.PublicKey("upload/"+folder+"/logo.png")]))
	if err != nil || stored.Width != 20 || stored.Height != 10 {
		t.Errorf("%+v, %v", stored, err)
	}
}
