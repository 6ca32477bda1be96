package message

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Book is an immutable set of compiled templates: the built-in ones and an operator's. It is safe for concurrent use;
// a change of templates needs a new Book.
type Book struct {
	channels map[Channel]map[string]family
}

// family is one template in its languages, built-in ones first.
type family []*compiled

// NewBook compiles the built-in templates and custom ones under a brand, the displayed name of the service. A custom
// template replaces the built-in one of its channel, name and language. The error names every faulty template, and
// duplicates of channel, name and language.
func NewBook(brand string, custom []Template) (*Book, error) {
	if brand == "" || len(brand) > maxBrandBytes || !utf8.ValidString(brand) || hasControl(brand) {
		return nil, fmt.Errorf("brand must have 1 to %d bytes of text without control characters", maxBrandBytes)
	}
	b := &Book{channels: map[Channel]map[string]family{SMS: {}, MAIL: {}}}
	for _, t := range builtins() {
		c, err := t.compile(brand)
		if err != nil {
			return nil, err
		}
		names := b.channels[t.Channel]
		names[t.Name] = append(names[t.Name], c)
	}
	var faults []error
	type key struct {
		channel        Channel
		name, language string
	}
	seen := map[key]bool{}
	for _, t := range custom {
		c, err := t.compile(brand)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		k := key{t.Channel, t.Name, strings.ToLower(t.Language)}
		if seen[k] {
			faults = append(faults, fmt.Errorf("template %q %s %s: given twice", t.Name, t.Channel, t.Language))
			continue
		}
		seen[k] = true
		names := b.channels[t.Channel]
		names[t.Name] = names[t.Name].with(c)
	}
	if faults != nil {
		return nil, errors.Join(faults...)
	}
	return b, nil
}

func (f family) with(c *compiled) family {
	for i, have := range f {
		if strings.EqualFold(have.language, c.language) {
			f[i] = c
			return f
		}
	}
	return append(f, c)
}

// pick follows D-GEN-16: the requested language, its base, en, tr, the first. With code set, only templates that show
// the code count.
func (f family) pick(language string, code bool) *compiled {
	if c := f.find(language, code); c != nil {
		return c
	}
	for _, next := range [...]string{base(language), "en", "tr"} {
		if c := f.find(next, code); c != nil {
			return c
		}
	}
	for _, c := range f {
		if c.showsCode || !code {
			return c
		}
	}
	return nil
}

func (f family) find(language string, code bool) *compiled {
	for _, c := range f {
		if (c.showsCode || !code) && strings.EqualFold(c.language, language) {
			return c
		}
	}
	return nil
}

// Render fills the template of a channel and name in a language. It never fails, because a typo in a policy must not
// lock users out. For an unknown name, and for a template without the required code, it uses the channel's built-in
// code message. A channel without templates uses those of SMS. Render does not retain v.
func (b *Book) Render(ch Channel, name, lang, to string, v Values) Rendered {
	names, ok := b.channels[ch]
	if !ok {
		names = b.channels[SMS]
	}
	var values [slots]string
	for i, n := range slotNames {
		values[i] = v[n]
	}
	code := values[slotOTP] != ""
	c := names[name].pick(lang, code)
	if c == nil {
		c = names[OTP].pick(lang, code)
	}
	values[slotExpire] = lifetime(values[slotExpire], c.language)

	var out strings.Builder
	out.Grow(c.subject.size(&values) + c.text.size(&values) + c.html.size(&values))
	c.subject.write(&out, &values, asLine)
	subject := out.Len()
	c.text.write(&out, &values, asText)
	text := out.Len()
	c.html.write(&out, &values, asHTML)
	all := out.String()
	return Rendered{
		Channel: ch, To: to, Code: values[slotOTP], Language: c.language,
		Subject: all[:subject], Text: all[subject:text], HTML: all[text:],
	}
}

func (p *part) size(values *[slots]string) int {
	n := p.fixed
	for i, uses := range p.uses {
		n += uses * len(values[i])
	}
	return n
}

// form is how a value is written; a function value instead would cost the builder an allocation.
type form int

const (
	asText form = iota
	asLine
	asHTML
)

func (p *part) write(out *strings.Builder, values *[slots]string, f form) {
	for i := range p.segments {
		switch s := &p.segments[i]; {
		case s.slot == literal:
			out.WriteString(s.text)
		case f == asLine:
			writeLine(out, values[s.slot])
		case f == asHTML:
			writeEscaped(out, values[s.slot])
		default:
			out.WriteString(values[s.slot])
		}
	}
}

// writeLine replaces every control character by a space, so that no value ends its header line.
func writeLine(out *strings.Builder, s string) {
	for _, r := range s {
		if unsafeInSubject(r) {
			r = ' '
		}
		out.WriteRune(r)
	}
}

func writeEscaped(out *strings.Builder, s string) {
	for {
		i := strings.IndexAny(s, `&<>"'`)
		if i < 0 {
			out.WriteString(s)
			return
		}
		out.WriteString(s[:i])
		switch s[i] {
		case '&':
			out.WriteString("&amp;")
		case '<':
			out.WriteString("&lt;")
		case '>':
			out.WriteString("&gt;")
		case '"':
			out.WriteString("&#34;")
		default:
			out.WriteString("&#39;")
		}
		s = s[i+1:]
	}
}
