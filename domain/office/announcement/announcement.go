// Package announcement manages the announcements to users (sections 2.11 and 4.19 of the interface; decisions D-ANN-01
// to D-ANN-06): texts in several languages with a time, a position in the list and pictures for a slider.
//
// Start reading at Announcement, then Service.
package announcement

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/richtext"
)

// The platforms with their own slider picture.
const (
	Android = iota
	IOS
	Web
	platforms
)

// pictureFields are the request fields of the pictures.
var pictureFields = [platforms]string{"sliderImageData", "iosSliderImageData", "webSliderImageData"}

// Announcement is one text with its time and its position in the list. Pointers may be nil.
type Announcement struct {
	ID   int64
	Slug string // unique; made from the first title and never changed
	// Title, Message and HTML are used if Titles, Messages and HTMLs are empty.
	Title, Message           string
	HTML                     *string
	Titles, Messages, HTMLs  Texts
	Policy                   string // the policy that cleaned HTML and HTMLs
	Route                    json.RawMessage
	Routes                   Routes
	StartAt, EndAt           time.Time
	Active                   bool
	Priority                 int64 // the highest comes first
	OrderNo                  *int64
	Expanded, Pinned, Slider *bool
	SliderName               string
	Type                     *int64
	ClientType               *string
	Pictures                 [platforms]string // keys of files, "" for none
	CreatedBy, UpdatedBy     string            // user ids
}

// languages are the languages of the interface, in the order of fallback.
var languages = []string{"en", "tr", "ar"}

// Texts is a text by language: tr, en, ar.
type Texts map[string]string

// Routes are the destinations of a client, a JSON object by language.
type Routes map[string]json.RawMessage

// In returns the text in a language, or else in the first available one (D-GEN-16); plain if there is none (D-ANN-06).
func (t Texts) In(language string, plain *string) *string {
	for _, l := range append([]string{language}, languages...) {
		if text := t[l]; strings.TrimSpace(text) != "" {
			return &text
		}
	}
	return plain
}

// HTMLIn returns the HTML in a language as allowed by policy p; nil for none.
func (a Announcement) HTMLIn(language string, p *richtext.Policy) *string {
	html := a.HTMLs.In(language, a.HTML)
	if html == nil {
		return nil
	}
	shown := p.Shown(*html, a.Policy)
	return &shown
}

// RouteIn returns the route in a language, or else the general one (D-ANN-05).
func (a Announcement) RouteIn(language string) json.RawMessage {
	if r, ok := a.Routes[language]; ok {
		return r
	}
	return a.Route
}

// The limits of texts, in characters, and of a route, in bytes.
const (
	maxTitleChars   = 200
	maxMessageChars = 4000
	maxHTMLChars    = 200_000
	maxNameChars    = 200
	maxRouteBytes   = 16 << 10
)

// earliest and latest limit a date: responses write years with four digits.
var earliest, latest = time.UnixMilli(1), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)

// Check validates an announcement as a whole. A new one requires its own route for the slider; an existing one may have
// routes by language instead (D-ANN-03). INVALID_FIELD with every invalid field.
func (a Announcement) Check(added bool) error {
	var ps fault.Problems
	text := func(field, s string, most int) {
		good := strings.TrimSpace(s) != "" && utf8.RuneCountInString(s) <= most
		ps.Require(good, field, "must be text of at most %d characters", most)
	}
	texts := func(field string, t Texts, most int) {
		good := true
		for l, s := range t {
			good = good && slices.Contains(languages, l) && utf8.RuneCountInString(s) <= most
		}
		ps.Require(good, field, "must have the keys tr, en or ar, and texts of at most %d characters", most)
	}
	text("title", a.Title, maxTitleChars)
	texts("titleJson", a.Titles, maxTitleChars)
	text("message", a.Message, maxMessageChars)
	texts("messageJson", a.Messages, maxMessageChars)
	ps.Require(a.HTML == nil || utf8.RuneCountInString(*a.HTML) <= maxHTMLChars, "htmlContent",
		"is longer than %d characters", maxHTMLChars)
	texts("htmlContentJson", a.HTMLs, maxHTMLChars)
	if a.SliderName != "" {
		text("sliderName", a.SliderName, maxNameChars)
	}
	if a.ClientType != nil {
		text("sliderClientType", *a.ClientType, maxNameChars)
	}
	ps.Require(a.Route == nil || object(a.Route), "routeContent", "must be an object of at most %d bytes", maxRouteBytes)
	good := true
	for l, r := range a.Routes {
		good = good && slices.Contains(languages, l) && object(r)
	}
	ps.Require(good, "routeContentJson", "must have the keys tr, en or ar, and objects of at most %d bytes", maxRouteBytes)
	ps.Require(!a.StartAt.Before(earliest) && !a.StartAt.After(latest), "startDate", "must be from %d to %d", 1970, 9999)
	ps.Require(!a.EndAt.Before(earliest) && !a.EndAt.After(latest), "endDate", "must be from %d to %d", 1970, 9999)
	ps.Require(!a.EndAt.Before(a.StartAt), "endDate", "is before startDate")
	if a.Slider != nil && *a.Slider {
		const missing = "is required for the slider"
		for i, field := range pictureFields {
			ps.Require(a.Pictures[i] != "", field, missing)
		}
		ps.Require(a.SliderName != "", "sliderName", missing)
		ps.Require(a.Route != nil || !added && len(a.Routes) > 0, "routeContent", missing)
		ps.Require(a.Type != nil, "type", missing)
	}
	return fault.All(ps)
}

// object reports whether JSON is an object that may be stored.
func object(r json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(r), []byte("{")) && len(r) <= maxRouteBytes
}
