package announcement_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
	"castellan/outbound/folder"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

type (
	ann    = announcement.Announcement
	texts  = announcement.Texts
	routes = announcement.Routes
	images = announcement.Images
)

var start = time.UnixMilli(1_700_000_000_000).UTC()

// sample is a valid announcement.
func sample() ann {
	return ann{Title: "t", Message: "m", StartAt: start, EndAt: start.Add(time.Hour)}
}

// An announcement may end when it begins, and never before.
func TestEndMayEqualStart(t *testing.T) {
	a := sample()
	a.EndAt = a.StartAt
	storetest.WantsFields(t, a.Check(true), "")
	a.EndAt = a.StartAt.Add(-time.Millisecond)
	storetest.WantsFields(t, a.Check(true), "endDate")
}

// Each limit is exact, for every field.
func TestCheck(t *testing.T) {
	text := func(n int) string { return strings.Repeat("ü", n) }
	route := func(n int) json.RawMessage { return json.RawMessage(`{"a":"` + strings.Repeat("x", n-8) + `"}`) }
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	for name, c := range map[string]struct {
		edit func(a *ann)
		want string
	}{
		"nothing":         {func(a *ann) { *a = ann{} }, "title message startDate endDate"},
		"blank title":     {func(a *ann) { a.Title = " \n" }, "title"},
		"longest title":   {func(a *ann) { a.Title = text(200) }, ""},
		"long title":      {func(a *ann) { a.Title = text(201) }, "title"},
		"longest message": {func(a *ann) { a.Message = text(4000) }, ""},
		"long message":    {func(a *ann) { a.Message = text(4001) }, "message"},
		"longest HTML":    {func(a *ann) { a.HTML = new(text(200_000)) }, ""},
		"long HTML":       {func(a *ann) { a.HTML = new(text(200_001)) }, "htmlContent"},
		"longest texts": {func(a *ann) {
			a.Titles = texts{"tr": text(200), "en": "", "ar": "x"}
		}, ""},
		"long texts":              {func(a *ann) { a.Titles = texts{"tr": text(201)} }, "titleJson"},
		"unknown language":        {func(a *ann) { a.Messages = texts{"de": "x", "tr": "y"} }, "messageJson"},
		"long HTML of a language": {func(a *ann) { a.HTMLs = texts{"tr": text(200_001)} }, "htmlContentJson"},
		"longest name":            {func(a *ann) { a.SliderName, a.ClientType = text(200), new(text(200)) }, ""},
		"long name": {func(a *ann) { a.SliderName, a.ClientType = text(201), new(text(201)) },
			"sliderName sliderClientType"},
		"blank names": {func(a *ann) { a.SliderName, a.ClientType = " ", new("") },
			"sliderName sliderClientType"},
		"longest route":      {func(a *ann) { a.Route = route(16 << 10) }, ""},
		"long route":         {func(a *ann) { a.Route = route(16<<10 + 1) }, "routeContent"},
		"no object":          {func(a *ann) { a.Route = json.RawMessage(`[]`) }, "routeContent"},
		"object after space": {func(a *ann) { a.Route = json.RawMessage(" {}") }, ""},
		"routes": {func(a *ann) {
			a.Routes = routes{"tr": json.RawMessage(`{}`), "de": json.RawMessage(`{}`)}
		}, "routeContentJson"},
		"routes without object": {func(a *ann) {
			a.Routes = routes{"tr": json.RawMessage(`1`), "en": json.RawMessage(`{}`)}
		}, "routeContentJson"},
		"the first instant": {func(a *ann) { a.StartAt = time.UnixMilli(1) }, ""},
		"before the first":  {func(a *ann) { a.StartAt = time.UnixMilli(0) }, "startDate"},
		"the last instant":  {func(a *ann) { a.StartAt, a.EndAt = last, last }, ""},
		"after the last":    {func(a *ann) { a.EndAt = last.Add(time.Millisecond) }, "endDate"},
		"start after it":    {func(a *ann) { a.StartAt = last.Add(1); a.EndAt = last.Add(1) }, "startDate endDate"},
		"end before the first": {func(a *ann) { a.StartAt, a.EndAt = time.UnixMilli(0), time.UnixMilli(0) },
			"startDate endDate"},
		"no slider": {func(a *ann) { a.Slider = new(false) }, ""},
		"slider": {func(a *ann) { a.Slider = new(true) },
			"sliderImageData iosSliderImageData webSliderImageData sliderName routeContent type"},
		"whole slider": {func(a *ann) {
			a.Slider, a.SliderName, a.Type, a.Route = new(true), "s", new(int64(0)), json.RawMessage(`{}`)
			a.Pictures = [...]string{"a", "i", "w"}
		}, ""},
	} {
		a := sample()
		c.edit(&a)
		t.Run(name, func(t *testing.T) { storetest.WantsFields(t, a.Check(true), c.want) })
	}
}

// An existing announcement may have only routes by language.
func TestRoutesOfAChangedSlider(t *testing.T) {
	a := sample()
	a.Slider, a.SliderName, a.Type, a.Pictures = new(true), "s", new(int64(1)), [...]string{"a", "i", "w"}
	storetest.WantsFields(t, a.Check(false), "routeContent")
	a.Routes = routes{"tr": json.RawMessage(`{}`)}
	storetest.WantsFields(t, a.Check(false), "")
	storetest.WantsFields(t, a.Check(true), "routeContent")
}

// A text is shown in the requested language, or else in the first available one, or else the plain one.
func TestLanguages(t *testing.T) {
	plain := "plain"
	for _, c := range []struct {
		words          texts
		language, want string
	}{
		{nil, "tr", "plain"}, {texts{"tr": "T", "en": "E", "ar": "A"}, "ar", "A"},
		{texts{"tr": "T", "en": "E"}, "ar", "E"}, {texts{"tr": "T", "en": " "}, "ar", "T"},
		{texts{"ar": "A"}, "tr", "A"}, {texts{"tr": "\n"}, "tr", "plain"},
	} {
		if got := c.words.In(c.language, &plain); *got != c.want {
			t.Errorf("%v in %s: %s, want %s", c.words, c.language, *got, c.want)
		}
	}
	if texts(nil).In("tr", nil) != nil {
		t.Error("a text of nothing")
	}
	a := ann{Route: json.RawMessage(`{"n":1}`),
		Routes: routes{"tr": json.RawMessage(`{"n":2}`)}}
	if string(a.RouteIn("tr")) != `{"n":2}` || string(a.RouteIn("en")) != `{"n":1}` {
		t.Errorf("%s, %s", a.RouteIn("tr"), a.RouteIn("en"))
	}
	p := richtext.New("")
	if a.HTMLIn("tr", p) != nil {
		t.Error("HTML of nothing")
	}
	a.HTML = new("<b onclick='x'>b</b>")
	if got := a.HTMLIn("tr", p); *got != "<b>b</b>" {
		t.Errorf("HTML that another policy let through: %s", *got)
	}
}

// desk is the service with a database and a folder.
type desk struct {
	*announcement.Service
	t  *testing.T
	db *persistence.DB
}

var by = audit.By{UserID: "boss"}

func newDesk(t *testing.T) *desk {
	db := persistencetest.SQLite(t)
	files, err := folder.Open(t.TempDir())
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, files.Close()) })
	store := office.NewAnnouncements(db)
	return &desk{&announcement.Service{Store: store, HTML: richtext.New(""), Pictures: picture.NewDecoder(), Files: files,
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return start }, Lock: store.Lock}}, t, db}
}

func (d *desk) add(edit func(*ann), pictures images) ann {
	d.t.Helper()
	a := sample()
	edit(&a)
	a, err := d.Add(d.t.Context(), by, a, pictures)
	storetest.Must(d.t, err)
	return a
}

// kept returns the number of files.
func (d *desk) kept() (n int) {
	d.t.Helper()
	for _, err := range d.Files.List(d.t.Context(), announcement.Area) {
		storetest.Must(d.t, err)
		n++
	}
	return n
}

func (d *desk) get(id int64) ann {
	d.t.Helper()
	all, err := d.Store.List(d.t.Context(), announcement.Query{ID: &id})
	if storetest.Must(d.t, err); len(all) != 1 {
		d.t.Fatalf("%d announcements of the id %d", len(all), id)
	}
	return all[0]
}

func (d *desk) acts() (acts []string) {
	d.t.Helper()
	rows, err := kit.NewAudit(d.db).List(d.t.Context(), audit.Query{}, page.Query[audit.Place]{})
	storetest.Must(d.t, err)
	for _, r := range rows.Records {
		acts = append(acts, fmt.Sprint(r.Action, " ", r.Target, " ", r.Detail))
	}
	slices.Reverse(acts)
	return acts
}

// A new announcement gets a free slug, its author and clean HTML; a change keeps slug and creator.
func TestAddAndChange(t *testing.T) {
	d := newDesk(t)
	html := func(a *ann) {
		a.Title, a.HTML = "Yeni Şube", new("<p onclick='x'>p</p>")
		a.HTMLs = texts{"tr": "<i id='i'>i</i>"}
	}
	first, second := d.add(html, images{}), d.add(html, images{})
	odd := d.add(func(a *ann) { a.Title = "!" }, images{})
	if first.Slug != "yeni-sube" || second.Slug != "yeni-sube-2" || odd.Slug != "announcement" || first.ID == second.ID {
		t.Errorf("%+v, %+v, %+v", first, second, odd)
	}
	got := d.get(first.ID)
	storetest.Same(t, got, first)
	if *got.HTML != "<p>p</p>" || got.HTMLs["tr"] != "<i>i</i>" || got.Policy != d.HTML.ID || got.CreatedBy != "boss" ||
		got.UpdatedBy != "boss" {
		t.Errorf("%+v", got)
	}
	changed, err := d.Change(t.Context(), audit.By{UserID: "other"}, first.ID, func(a *ann) {
		a.Title, a.HTML, a.Active = "Other", new("<b style='x'>b</b>"), true
	}, images{})
	storetest.Must(t, err)
	if changed.Slug != "yeni-sube" || changed.CreatedBy != "boss" || changed.UpdatedBy != "other" ||
		*changed.HTML != "<b>b</b>" {
		t.Errorf("%+v", changed)
	}
	storetest.Same(t, d.get(first.ID), changed)
	_, err = d.Change(t.Context(), by, first.ID, func(a *ann) { a.Title = "" }, images{})
	storetest.WantsFields(t, err, "title")
	_, err = d.Change(t.Context(), by, 99, func(*ann) {}, images{})
	storetest.Wants(t, err, fault.RecordNotFound)
	bad := sample()
	bad.EndAt = start.Add(-time.Hour)
	_, err = d.Add(t.Context(), by, bad, images{})
	storetest.WantsFields(t, err, "endDate")
	storetest.Must(t, d.Remove(t.Context(), by, odd.ID))
	storetest.Wants(t, d.Remove(t.Context(), by, odd.ID), fault.RecordNotFound)
	storetest.Same(t, d.acts(), []string{"ANNOUNCEMENT_ADD 1 yeni-sube", "ANNOUNCEMENT_ADD 2 yeni-sube-2",
		"ANNOUNCEMENT_ADD 3 announcement", "ANNOUNCEMENT_UPDATE 1 Title HTML Active UpdatedBy",
		"ANNOUNCEMENT_DELETE 3 announcement"})
}

// Cleaned HTML is checked again: it may be longer than the sent HTML.
func TestCleanHTMLIsValidated(t *testing.T) {
	d := newDesk(t)
	a := sample()
	a.HTML = new(strings.Repeat("&", 100_000))
	_, err := d.Add(t.Context(), by, a, images{})
	storetest.WantsFields(t, err, "htmlContent")
}

// A picture is cleaned and stored under its own key. A replaced, removed or orphaned one is deleted.
func TestPictures(t *testing.T) {
	d := newDesk(t)
	png := picturetest.PNG(3, 2)
	a := d.add(func(*ann) {}, images{&png, nil, &png})
	if a.Pictures[announcement.Android] == "" || a.Pictures[announcement.IOS] != "" ||
		a.Pictures[announcement.Web] == "" || !strings.HasPrefix(a.Pictures[0], announcement.Area+"/") || d.kept() != 2 {
		t.Fatalf("%v, %d files", a.Pictures, d.kept())
	}
	if kept, err := blob.Read(t.Context(), d.Files, a.Pictures[0], 1<<20); err != nil || len(kept) == 0 {
		t.Errorf("%d bytes, %v", len(kept), err)
	}
	same, err := d.Change(t.Context(), by, a.ID, func(a *ann) { a.Title = "x" }, images{})
	storetest.Must(t, err)
	if same.Pictures != a.Pictures || d.kept() != 2 {
		t.Errorf("%v, %d files", same.Pictures, d.kept())
	}
	var none []byte
	next, err := d.Change(t.Context(), by, a.ID, func(*ann) {},
		images{&none, nil, &png})
	storetest.Must(t, err)
	if next.Pictures[0] != "" || next.Pictures[2] == a.Pictures[2] || d.kept() != 1 {
		t.Errorf("%v, %d files", next.Pictures, d.kept())
	}
	text := []byte("no picture")
	_, err = d.Change(t.Context(), by, a.ID, func(*ann) {}, images{nil, &text})
	storetest.WantsFields(t, err, "iosSliderImageData")
	_, err = d.Add(t.Context(), by, sample(), images{&text})
	storetest.WantsFields(t, err, "sliderImageData")
	if d.get(a.ID).Pictures != next.Pictures || d.kept() != 1 {
		t.Errorf("%v, %d files", d.get(a.ID).Pictures, d.kept())
	}
	storetest.Must(t, d.Remove(t.Context(), by, a.ID))
	if d.kept() != 0 {
		t.Errorf("%d files are left", d.kept())
	}
}

// If a picture cannot be stored, nothing is added or changed.
func TestPictureStorageFails(t *testing.T) {
	d := newDesk(t)
	png := picturetest.PNG(3, 2)
	a := d.add(func(*ann) {}, images{})
	storetest.Must(t, d.Files.(*folder.Store).Close())
	_, err := d.Add(t.Context(), by, sample(), images{&png})
	storetest.Wants(t, err, fault.Unavailable)
	_, err = d.Change(t.Context(), by, a.ID, func(a *ann) { a.Title = "x" }, images{&png})
	storetest.Wants(t, err, fault.Unavailable)
	if got := d.get(a.ID); got.Title != "t" || len(d.acts()) != 1 {
		t.Errorf("%+v, %v", got, d.acts())
	}
}

// A refused date is answered with the years that are accepted.
func TestDatesNameTheirBounds(t *testing.T) {
	a := sample()
	a.StartAt, a.EndAt = time.Time{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	var f *fault.Error
	if err := a.Check(true); !errors.As(err, &f) || len(f.Fields) != 2 {
		t.Fatal(err)
	}
	for _, p := range f.Fields {
		if p.Message != "must be from 1970 to 9999" {
			t.Errorf("%s %s", p.Field, p.Message)
		}
	}
}

// A new slider needs a route of its own: routes by language are no substitute, as they are for an existing one.
func TestNewSliderNeedsARoute(t *testing.T) {
	d, png := newDesk(t), picturetest.PNG(9, 9)
	a := sample()
	a.Slider, a.SliderName, a.Type = new(true), "s", new(int64(1))
	a.Routes = routes{"tr": json.RawMessage(`{"n":2}`)}
	var pictures images
	for i := range pictures {
		pictures[i] = &png
	}
	_, err := d.Add(t.Context(), by, a, pictures)
	storetest.WantsFields(t, err, "routeContent")
	a.Route = json.RawMessage(`{"n":1}`)
	_, err = d.Add(t.Context(), by, a, pictures)
	storetest.Must(t, err)
}
