package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/delivery/message/placeholder"
)

// Bounds of a template, in bytes: a rendered message is sealed and stored.
const (
	maxNameBytes    = 128
	maxSubjectBytes = 512
	maxTextBytes    = 4 << 10
	maxHTMLBytes    = 32 << 10
	maxBrandBytes   = 64
)

// Template is one text in one language for one channel. Its placeholders are {{otp}}, {{action}}, {{expire}},
// {{brand}}, {{device}}, {{ip}}, {{time}}, {{reason}} and {{amount}}. HTML is trusted markup in which placeholders
// are allowed only between tags, because no escaping is sufficient inside a tag.
type Template struct {
	Name, Language string
	Channel        Channel
	Subject        string // MAIL only
	Text           string
	HTML           string // MAIL only, optional
}

// Validate returns all faults of t at once.
func (t Template) Validate() error {
	_, err := t.compile("brand")
	return err
}

// The blanks that differ between messages. brand is not one of them: the book writes it into the literals.
const (
	slotOTP = iota
	slotAction
	slotExpire
	slotDevice
	slotIP
	slotTime
	slotReason
	slotAmount
	slots
	literal = -1
)

var slotNames = [slots]string{"otp", "action", "expire", "device", "ip", "time", "reason", "amount"}

type segment struct {
	text string
	slot int // literal, or the index of a value
}

// part is one compiled text.
type part struct {
	segments []segment
	fixed    int        // bytes of the literals
	uses     [slots]int // number of copies of each value
}

type compiled struct {
	language            string
	subject, text, html part
	// showsCode reports whether every body shows the code.
	showsCode bool
}

func (t Template) compile(brand string) (*compiled, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if t.Name == "" || len(t.Name) > maxNameBytes || hasControl(t.Name) {
		fault("name must have 1 to %d bytes and no control characters", maxNameBytes)
	}
	if !isLanguage(t.Language) {
		fault("language must be a tag such as tr or ar-EG")
	}
	if t.Text == "" {
		fault("text must not be empty")
	}
	switch t.Channel {
	case SMS:
		if t.Subject != "" || t.HTML != "" {
			fault("an SMS has neither subject nor html")
		}
	case MAIL:
		if t.Subject == "" {
			fault("a mail needs a subject")
		}
	default:
		fault("channel must be SMS or MAIL")
	}
	if hasControl(t.Subject) {
		fault("subject must not hold control characters")
	}
	c := &compiled{language: t.Language}
	rtl := isRightToLeft(t.Language)
	for _, f := range []struct {
		name, text string
		max        int
		html       bool
		into       *part
	}{
		{"subject", t.Subject, maxSubjectBytes, false, &c.subject},
		{"text", t.Text, maxTextBytes, false, &c.text},
		{"html", t.HTML, maxHTMLBytes, true, &c.html},
	} {
		if len(f.text) > f.max || !utf8.ValidString(f.text) {
			fault("%s must be UTF-8 of at most %d bytes", f.name, f.max)
			continue
		}
		p, err := compilePart(f.text, brand, f.html, rtl)
		if err != nil {
			fault("%s: %w", f.name, err)
			continue
		}
		*f.into = p
	}
	c.showsCode = c.text.uses[slotOTP] > 0 && (t.HTML == "" || c.html.uses[slotOTP] > 0)
	if t.Name == OTP && !c.showsCode {
		// Render falls back to this name for a code and must find one there.
		fault("the template %s must hold {{otp}} in its text and in its html", OTP)
	}
	if faults != nil {
		return nil, fmt.Errorf("template %.128q %.32q %.32q: %w", t.Name, string(t.Channel), t.Language,
			errors.Join(faults...))
	}
	return c, nil
}

func compilePart(text, brand string, html, rtl bool) (part, error) {
	pieces, err := placeholder.Parse(text, append([]string{"brand"}, slotNames[:]...)...)
	if err != nil {
		return part{}, err
	}
	var p part
	var m markup
	pending := "" // literals joined until the next blank
	flush := func() {
		if pending != "" {
			p.segments = append(p.segments, segment{pending, literal})
			p.fixed += len(pending)
			pending = ""
		}
	}
	for _, s := range pieces {
		if s.Name == "" {
			m.read(s.Literal)
			pending += s.Literal
			continue
		}
		if html && m.inside() {
			return part{}, fmt.Errorf("placeholder %q is inside a tag, comment, style or script", s.Name)
		}
		if s.Name == "brand" {
			if html {
				pending += escaper.Replace(brand)
			} else {
				pending += brand
			}
			continue
		}
		slot := slices.Index(slotNames[:], s.Name) // placeholder.Parse accepts only known names
		before, after := "", ""
		if rtl {
			before, after = isolate(slot, html, pending)
		}
		pending += before
		flush()
		p.segments = append(p.segments, segment{slot: slot})
		p.uses[slot]++
		pending = after
	}
	flush()
	return p, nil
}

// isolate returns the characters around a value in right-to-left text, so that it and its neighbours keep their
// order. A code gets the plain mark, which even old telephones support. After "#" it is machine-readable (the
// domain-bound last line of an SMS) and gets none. Device, address and time are usually left to right, and a reason
// has either direction. They get an isolate that follows their own first letter.
func isolate(slot int, html bool, preceding string) (before, after string) {
	const leftToRightMark, firstStrong, popIsolate = "\u200e", "\u2068", "\u2069"
	switch {
	case slot == slotAction || slot == slotExpire: // words of the message's own language
		return "", ""
	case slot != slotOTP && html:
		return "<bdi>", "</bdi>"
	case slot != slotOTP:
		return firstStrong, popIsolate
	case html:
		return `<bdi dir="ltr">`, "</bdi>"
	case strings.HasSuffix(preceding, "#"):
		return "", ""
	}
	return leftToRightMark, leftToRightMark
}

// escaper is for the brand, when a book is created; values use writeEscaped.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func hasControl(s string) bool { return strings.IndexFunc(s, unsafeInSubject) >= 0 }

// unsafeInSubject reports whether a character could end a header line in some reader.
func unsafeInSubject(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

func isLanguage(tag string) bool {
	for i, sub := range strings.Split(tag, "-") {
		if len(sub) < 1 || len(sub) > 8 || i == 0 && (len(sub) < 2 || strings.ContainsAny(sub, "0123456789")) {
			return false
		}
		for _, c := range []byte(sub) {
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
				return false
			}
		}
	}
	return true
}

// base returns the language of a tag without region or script, in lower case.
func base(tag string) string {
	if i := strings.IndexAny(tag, "-_"); i >= 0 {
		tag = tag[:i]
	}
	return strings.ToLower(tag)
}

func isRightToLeft(tag string) bool {
	return slices.Contains([]string{"ar", "he", "fa", "ur"}, base(tag))
}
