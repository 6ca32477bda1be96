package document_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

var (
	pdf    = []byte("%PDF-1.7\nany\n%%EOF\n")
	fields = document.Fields{Name: "fileName", NameTexts: "fileNameJson", Content: "base64Data"}
)

// desk is the service with the users u1 and u2.
type desk struct {
	*document.Service
	t  *testing.T
	db *persistence.DB
}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	now := time.UnixMilli(1_800_000_000_123)
	for _, id := range []string{"u1", "u2"} {
		u := user.New(id, now)
		u.Email = id + "@example.com"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	return &desk{&document.Service{Store: people.NewDocuments(db), Users: account.NewUsers(db),
		Files: persistencetest.Files(t), Pictures: picture.NewDecoder(), Ring: keyringtest.Ring(t, time.Now),
		Changes: admin.Changes{Commit: db, Now: func() time.Time { now = now.Add(1500 * time.Microsecond); return now }},
		Values:  parameter.NewCache(kit.NewParameters(db)).Set, Quota: 1 << 20}, t, db}
}

func as(userID string) audit.By { return audit.By{UserID: userID} }

// add uploads content for u1 under a name.
func (d *desk) add(name string, content []byte) (document.Document, error) {
	return d.Add(d.t.Context(), as("u1"), document.Document{UserID: "u1", Name: name}, content, fields)
}

func (d *desk) must(name string, content []byte) document.Document {
	d.t.Helper()
	doc, err := d.add(name, content)
	storetest.Must(d.t, err)
	return doc
}

// An uploaded document waits for its approval, sealed, under its own key. Its media type is detected from its bytes.
func TestAdd(t *testing.T) {
	d := newDesk(t)
	for name, c := range map[string]struct {
		content []byte
		name    string
		media   string
	}{
		`C:\scans\Kimlik ön.PNG`: {picturetest.PNG(20, 10), "Kimlik ön.PNG", "image/png"},
		"/a/b/ scan ":            {pdf, "scan", "application/pdf"},
		"a.jfif":                 {picturetest.JPEG(4, 4), "a.jfif", "image/jpeg"},
		"a.webp":                 {picturetest.WebP(4, 4), "a.webp", "image/webp"},
		"a.gif":                  {picturetest.GIF(4, 4), "a.gif", "image/gif"},
	} {
		got := d.must(name, c.content)
		want := document.Document{ID: got.ID, UserID: "u1", Name: c.name, MimeType: c.media, Status: "active",
			Reason: new("waitingApproval"), Path: got.Path, Size: int64(len(c.content)), CreatedAt: got.CreatedAt}
		storetest.Same(t, got, want)
		stored, err := d.Store.Get(t.Context(), got.ID)
		storetest.Must(t, err)
		want.CreatedAt = want.CreatedAt.UTC()
		storetest.Same(t, stored, want)
		raw, err := blob.Read(t.Context(), d.Files, got.Path, 1<<20)
		if storetest.Must(t, err); strings.Contains(string(raw), string(c.content[:8])) ||
			!strings.HasPrefix(got.Path, "document/") || got.CreatedAt.Nanosecond()%1e6 != 0 {
			t.Errorf("%+v is kept in the clear", got)
		}
		if content, err := d.Content(t.Context(), got); err != nil || string(content) != string(c.content) {
			t.Errorf("%s: %d bytes, %v", name, len(content), err)
		}
		acts := persistencetest.Acts(t, d.db)
		if last := acts[len(acts)-1]; last != "DOCUMENT_UPLOAD|u1|u1|"+got.ID+"|"+c.media {
			t.Error(last)
		}
	}
}

// Every invalid field is named, and then nothing is stored.
func TestAddRefuses(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("ü", 2000)
	good := document.Document{UserID: "u1", Name: strings.Repeat("ü", 196) + ".pdf", Description: &long,
		DescriptionTexts: map[string]string{"tr": long, "en": "", "ar": ""},
		NameTexts:        map[string]string{"ar": long}, Type: 5}
	got, err := d.Add(t.Context(), as("u1"), good, pdf, fields)
	if err != nil || got.Type != 5 || *got.Description != long || got.NameTexts["ar"] != long {
		t.Fatalf("%.200v, %v", err, got)
	}
	kept := len(persistencetest.Kept(t, d.Files, document.Area))
	for name, c := range map[string]struct {
		edit func(x *document.Document)
		want string
	}{
		"blank":   {func(x *document.Document) { x.Name = "/a/ " }, "fileName"},
		"long":    {func(x *document.Document) { x.Name = strings.Repeat("ü", 201) }, "fileName"},
		"hidden":  {func(x *document.Document) { x.Name = "a\u202eb.pdf" }, "fileName"},
		"control": {func(x *document.Document) { x.Name = "a\x07.pdf" }, "fileName"},
		"texts":   {func(x *document.Document) { x.NameTexts = map[string]string{"de": "x"} }, "fileNameJson"},
		"texts 2": {func(x *document.Document) { x.DescriptionTexts = map[string]string{"tr": long + "x"} },
			"descriptionJson"},
		"describe": {func(x *document.Document) { x.Description = new(long + "x") }, "description"},
		"type":     {func(x *document.Document) { x.Type = 6 }, "type"},
		"two":      {func(x *document.Document) { x.Type, x.Name = -1, "" }, "fileName type"},
		"sort":     {func(x *document.Document) { x.Name = "a.png" }, "fileName"},
	} {
		x := good
		c.edit(&x)
		_, err := d.Add(t.Context(), as("u1"), x, pdf, fields)
		t.Run(name, func(t *testing.T) { storetest.WantsFields(t, err, c.want) })
	}
	for _, content := range [][]byte{nil, []byte("%PDF"), []byte("<html>"), picturetest.PNG(4, 4)[:40]} {
		_, err := d.add("a", content)
		storetest.WantsFields(t, err, "base64Data")
	}
	_, err = d.Add(t.Context(), as("u1"), document.Document{UserID: "nobody", Name: "a"}, pdf, fields)
	storetest.Wants(t, err, fault.RecordNotFound)
	if got := len(persistencetest.Kept(t, d.Files, document.Area)); got != kept {
		t.Errorf("%d files were kept of what was refused", got-kept)
	}
}

// The quota counts at least 32 KiB for each document.
func TestQuota(t *testing.T) {
	d := newDesk(t)
	d.Quota = 3 << 15
	for n := range 4 {
		_, err := d.add("a", pdf)
		if want := map[int]fault.Code{3: fault.RecordLimitReached}[n]; fault.CodeOf(err) != want {
			t.Errorf("document %d: %v", n, err)
		}
	}
	if kept := persistencetest.Kept(t, d.Files, document.Area); len(kept) != 3 {
		t.Errorf("%d files", len(kept))
	}
	d = newDesk(t)
	large := append([]byte("%PDF-"), make([]byte, 1<<16)...)
	d.Quota = int64(len(large)) + 1<<15
	d.must("a", large)
	d.must("b", pdf)
	_, err := d.add("c", pdf)
	storetest.Wants(t, err, fault.RecordLimitReached)
}

// A user changes the description of own documents; an administrator decides on all documents.
func TestChange(t *testing.T) {
	d := newDesk(t)
	doc := d.must("a.pdf", pdf)
	change := func(who string, asAdmin bool, c document.Change) error {
		c.ID = doc.ID
		got, err := d.Change(t.Context(), as(who), asAdmin, c)
		if err == nil {
			stored, err := d.Store.Get(t.Context(), doc.ID)
			storetest.Must(t, err)
			got.CreatedAt = got.CreatedAt.UTC()
			storetest.Same(t, stored, got)
			doc = stored
		}
		return err
	}
	description, reason := new("mine"), new("blurred")
	storetest.Must(t, change("u1", false, document.Change{UserID: new("u1"), Description: &description,
		DescriptionTexts: map[string]string{"tr": "t"}}))
	if *doc.Description != "mine" || doc.DescriptionTexts["tr"] != "t" || doc.Status != "active" {
		t.Errorf("%+v", doc)
	}
	for name, c := range map[string]document.Change{"status": {Status: new("deActive")}, "reason": {Reason: &reason},
		"owner": {UserID: new("u2")}, "type": {Type: new(int64(1))}} {
		if err := change("u1", false, c); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	storetest.Wants(t, change("u2", false, document.Change{Description: &description}), fault.RecordNotFound)
	storetest.Wants(t, change("boss", true, document.Change{UserID: new("u2")}), fault.RecordNotFound)
	storetest.WantsFields(t, change("boss", true, document.Change{Status: new("x")}), "status")
	storetest.WantsFields(t, change("boss", true, document.Change{Type: new(int64(99))}), "type")
	long := new(strings.Repeat("x", 2001))
	storetest.WantsFields(t, change("boss", true, document.Change{Reason: &long, Description: &long,
		DescriptionTexts: map[string]string{"x": ""}}), "description reason descriptionJson")
	storetest.Must(t, change("boss", true, document.Change{UserID: new("u1"), Status: new("deActive"), Reason: &reason}))
	if doc.Status != "deActive" || *doc.Reason != "blurred" || *doc.Description != "mine" {
		t.Errorf("%+v", doc)
	}
	var none *string
	storetest.Must(t, change("boss", true, document.Change{Reason: &none, Description: &none}))
	if doc.Reason != nil || doc.Description != nil || doc.DescriptionTexts["tr"] != "t" {
		t.Errorf("%+v", doc)
	}
	storetest.Must(t, change("boss", true, document.Change{Type: new(int64(4))}))
	if doc.Type != 4 || doc.Status != "deActive" {
		t.Errorf("%+v", doc)
	}
	row := func(who, detail string) string { return "DOCUMENT_UPDATE|" + who + "|u1|" + doc.ID + "|" + detail }
	storetest.Same(t, persistencetest.Acts(t, d.db)[1:], []string{row("u1", "status=active, Description DescriptionTexts"),
		row("boss", "status=active -> deActive, Reason"), row("boss", "status=deActive, Description Reason"),
		row("boss", "status=deActive, type=0 -> 4")})
	persistencetest.Fails(t, d.db, "document audit", func(ctx context.Context) error {
		_, err := d.Change(ctx, as("boss"), true, document.Change{ID: doc.ID, Status: new("active")})
		return err
	})
}

// Each opening of the bytes writes an audit row.
func TestFile(t *testing.T) {
	d := newDesk(t)
	doc, other := d.must("a.pdf", pdf), d.must("b.png", picturetest.PNG(4, 4))
	for _, r := range []document.Reference{{ID: doc.ID}, {Path: doc.Path}, {ID: doc.ID, Path: doc.Path}} {
		got, content, err := d.File(t.Context(), as("boss"), r)
		if err != nil || got.ID != doc.ID || string(content) != string(pdf) {
			t.Errorf("%+v: %+v, %v", r, got, err)
		}
	}
	for _, r := range []document.Reference{{ID: "x"}, {Path: "document/x"}, {ID: doc.ID, Path: other.Path}} {
		_, _, err := d.File(t.Context(), as("boss"), r)
		storetest.Wants(t, err, fault.RecordNotFound)
	}
	if acts := persistencetest.Acts(t, d.db); len(acts) != 5 || acts[4] != "DOCUMENT_READ|boss|u1|"+doc.ID+"|" {
		t.Errorf("%v", acts)
	}
	open := func(ctx context.Context) error {
		_, _, err := d.File(ctx, as("boss"), document.Reference{ID: doc.ID})
		return err
	}
	persistencetest.Fails(t, d.db, "document audit", open)
	storetest.Must(t, d.Files.Put(t.Context(), doc.Path, []byte("other bytes")))
	if err := open(t.Context()); err == nil || !strings.Contains(err.Error(), doc.ID) {
		t.Errorf("bytes that are not sealed: %v", err)
	}
	storetest.Must(t, d.Files.Delete(t.Context(), doc.Path))
	if open(t.Context()) == nil {
		t.Error("no error without the bytes")
	}
	if acts := len(persistencetest.Acts(t, d.db)); acts != 6 {
		t.Errorf("%d rows in the audit", acts)
	}
}

// A document that cannot be stored has no row, and invalid fields are reported before a full quota.
func TestAddFails(t *testing.T) {
	d := newDesk(t)
	persistencetest.Fails(t, d.db, "document document_quota users audit", func(context.Context) error {
		_, err := d.add("a.pdf", pdf)
		return err
	})
	d.Files = full{d.Files}
	_, err := d.add("a.pdf", pdf)
	if storetest.Wants(t, err, fault.Unavailable); len(persistencetest.Acts(t, d.db)) != 1 {
		t.Error("a row without its bytes")
	}
	all, err := d.Store.List(t.Context(), document.Query{}, page.Query[document.Place]{})
	if err != nil || len(all.Records) != 1 {
		t.Errorf("%d rows, %v", len(all.Records), err)
	}
}

// full is a storage that rejects every file.
type full struct{ blob.Store }

func (full) Put(context.Context, string, []byte) error {
	return blob.Failed("write", fmt.Errorf("full"))
}
