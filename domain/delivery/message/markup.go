package message

import "strings"

// markup follows just enough of HTML to distinguish text from tags with their quoted attributes, comments, and the
// raw content of style and script. It reads a template piece by piece.
type markup struct {
	state markupState
	quote byte
	tag   string // the current tag so far, lower case, or the text that may end raw content
	raw   string // "style" or "script" while inside
}

type markupState int

const (
	inText markupState = iota
	afterOpen
	inTag
	inQuote
	inComment
	inRaw
)

func (m *markup) inside() bool { return m.state != inText }

// tailBytes is how much is kept of a tag or of raw content: enough to recognise "</script".
const tailBytes = 16

func (m *markup) read(s string) {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch m.state {
		case inText:
			if c == '<' {
				m.state, m.tag = afterOpen, ""
			}
		case afterOpen:
			switch {
			case 'a' <= c && c <= 'z', c == '/', c == '!', c == '?':
				m.state, m.tag = inTag, string(c)
			case c != '<':
				m.state = inText // a lone less-than sign
			}
		case inTag:
			m.readTag(c)
		case inQuote:
			if c == m.quote {
				m.state = inTag
			}
		case inComment:
			m.keep(c)
			if strings.HasSuffix(m.tag, "-->") {
				m.state = inText
			}
		case inRaw:
			m.keep(c)
			if strings.HasSuffix(m.tag, "</"+m.raw) {
				m.state, m.tag = inTag, "/"
			}
		}
	}
}

func (m *markup) readTag(c byte) {
	switch {
	case c == '>':
		m.state = inText
		for _, name := range []string{"style", "script"} {
			rest, ok := strings.CutPrefix(m.tag, name)
			if ok && (rest == "" || !('a' <= rest[0] && rest[0] <= 'z')) {
				m.state, m.raw, m.tag = inRaw, name, ""
			}
		}
	case c == '"' || c == '\'':
		m.state, m.quote = inQuote, c
	case len(m.tag) < tailBytes:
		m.tag += string(c)
		if m.tag == "!--" {
			m.state = inComment
		}
	}
}

func (m *markup) keep(c byte) {
	m.tag += string(c)
	if len(m.tag) > tailBytes {
		m.tag = m.tag[len(m.tag)-tailBytes:]
	}
}
