package announcement_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
)

type (
	ann   = announcement.Announcement
	texts = announcement.Texts
)

var start = time.UnixMilli(1_700_000_000_000).UTC()

// sample is a valid announcement.
func sample() ann {
	return ann{Title: "t", Message: "m", StartAt: start, EndAt: start.Add(time.Hour)}
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
		"long HTML of a language": {func(a *ann) { a.HTMLs = texts{"tr": text(200_001)} }, "htmlContentJson"},
		"longest name":            {func(a *ann) { a.SliderName, a.ClientType = text(200), new(text(200)) }, ""},
		"long name": {func(a *ann) { a.SliderName, a.ClientType = text(201), new(text(201)) },
			"sliderName sliderClientType"},
		"longest route":      {func(a *ann) { a.Route = route(16 << 10) }, ""},
		"long route":         {func(a *ann) { a.Route = route(16<<10 + 1) }, "routeContent"},
		"object after space": {func(a *ann) { a.Route = json.RawMessage(" {}") }, ""},
		"end at the start":   {func(a *ann) { a.EndAt = a.StartAt }, ""},
		"end before it":      {func(a *ann) { a.EndAt = a.StartAt.Add(-time.Millisecond) }, "endDate"},
		"the first instant":  {func(a *ann) { a.StartAt = time.UnixMilli(1) }, ""},
		"before the first":   {func(a *ann) { a.StartAt = time.UnixMilli(0) }, "startDate"},
		"the last instant":   {func(a *ann) { a.StartAt, a.EndAt = last, last }, ""},
		"after the last":     {func(a *ann) { a.EndAt = last.Add(time.Millisecond) }, "endDate"},
		"the last day":       {func(a *ann) { a.EndAt = last.Add(time.Millisecond - 1) }, ""}, // a date sent as the end
		"start after it": {func(a *ann) { a.StartAt = last.Add(time.Millisecond); a.EndAt = a.StartAt },
			"startDate endDate"},
		"end before the first": {func(a *ann) { a.StartAt, a.EndAt = time.UnixMilli(0), time.UnixMilli(0) },
			"startDate endDate"},
	} {
		a := sample()
		c.edit(&a)
		t.Run(name, func(t *testing.T) { storetest.WantsFields(t, a.Check(true), c.want) })
	}
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
		storetest.Equal(t, p.Message, "must be from 1970 to 9999", p.Field)
	}
}
