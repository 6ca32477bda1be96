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

// A document whose bytes cannot be stored has no row.
func TestAddFails(t *testing.T) {
	d := newDesk(t)
	d.Files = full{d.Files}
	_, err := d.add("a.pdf", pdf)
	if storetest.Wants(t, err, fault.Unavailable); len(persistencetest.Acts(t, d.db)) != 0 {
		t.Error("a row without its bytes")
	}
	all, err := d.Store.List(t.Context(), document.Query{}, page.Query[document.Place]{})
	if err != nil || len(all.Records) != 0 {
		t.Errorf("%d rows, %v", len(all.Records), err)
	}
}

// full is a storage that rejects every file.
type full struct{ blob.Store }

func (full) Put(context.Context, string, []byte) error {
	return blob.Failed("write", fmt.Errorf("full"))
}
