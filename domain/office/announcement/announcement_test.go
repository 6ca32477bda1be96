package announcement_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
)

type (
	ann    = announcement.Announcement
	texts  = announcement.Texts
	routes = announcement.Routes
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
