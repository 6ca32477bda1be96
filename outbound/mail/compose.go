package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"castellan/domain/delivery/message"
)

// Limits of RFC 5321 (section 4.5.3.1) and of a header line.
const (
	maxAddressBytes   = 254
	maxMessageIDBytes = 200
)

// envelope is one message in its wire form.
type envelope struct {
	from, to string // in angle brackets
	utf8     bool   // to needs SMTPUTF8 (RFC 6531)
	content  []byte
}

// compose encodes m before a connection is used. So an invalid message costs no connection and never interrupts a
// transfer. Its errors name no recipient.
func (s *Sender) compose(messageID string, m message.Rendered) (envelope, error) {
	if m.Channel != message.MAIL {
		return envelope{}, fmt.Errorf("message of channel %q", string(m.Channel))
	}
	to, err := bareAddress(m.To)
	if err != nil {
		return envelope{}, err
	}
	if messageID == "" {
		return envelope{}, errors.New("message without an id")
	}
	if m.Text == "" {
		return envelope{}, errors.New("message without a text")
	}
	if strings.ContainsFunc(m.Subject, unicode.IsControl) || !utf8.ValidString(m.Subject) {
		return envelope{}, errors.New("control character in the subject")
	}
	recipient := netmail.Address{Address: to}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&s.from)
	msg.ToMailAddress(&recipient)
	msg.Subject(m.Subject)
	msg.SetDateWithValue(s.cfg.Now())
	domain := s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:]
	msg.SetMessageIDWithValue(messageIDLeft(messageID) + "@" + domain)
	// Out-of-office replies to a code are useless (RFC 3834).
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader(gomail.HeaderXAutoResponseSuppress, "All")
	if isTag(m.Language) {
		msg.SetGenHeader("Content-Language", m.Language)
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	if a := m.Attachment; a != nil {
		if err := msg.AttachReader(a.Name, bytes.NewReader(a.Content),
			gomail.WithFileContentType(gomail.ContentType(a.Type))); err != nil {
			return envelope{}, errors.New("attachment cannot be read")
		}
	}
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return envelope{}, errors.New("message cannot be encoded") // the cause may quote it
	}
	return envelope{
		from:    (&netmail.Address{Address: s.from.Address}).String(),
		to:      recipient.String(),
		utf8:    !isASCII(to),
		content: b.Bytes(),
	}, nil
}

// bareAddress accepts only name@domain.
func bareAddress(s string) (string, error) {
	a, err := netmail.ParseAddress(s)
	if err != nil || a.Name != "" || len(s) > maxAddressBytes || strings.ContainsFunc(s, unicode.IsControl) ||
		strings.ContainsAny(s, "<>()") {
		return "", errors.New("malformed mail address")
	}
	return a.Address, nil
}

// messageIDLeft converts an id into the left side of a Message-ID, one to one. Letters, digits, '-' and '_' stay, and
// so does a single inner dot; any other byte becomes "=" and its hexadecimal number. A long id becomes its hash.
func messageIDLeft(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.' && i > 0 && i < len(id)-1 && id[i-1] != '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	if b.Len() > maxMessageIDBytes {
		sum := sha256.Sum256([]byte(id))
		return hex.EncodeToString(sum[:])
	}
	return b.String()
}

func isTag(s string) bool {
	return s != "" && len(s) <= 35 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}
