// Code generated from domain/factor/intent by tools/subset. DO NOT EDIT.

// Package intent has what the client needs of domain/factor/intent.
package intent

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// Row is one value of an operation. Values are complete: amounts, addresses and ids are never shortened.
type Row struct {
	Key   string `json:"key"`
	Label string `json:"label"` // in the language of the document
	Value string `json:"value"`
}

// Document describes one operation of one challenge to its approver.
type Document struct {
	Version     int    `json:"v"`
	ChallengeID string `json:"challengeId"`
	Action      string `json:"action"`
	UserID      string `json:"userId"`
	CreatedAt   int64  `json:"createdAt"` // epoch ms
	Language    string `json:"language"`
	Title       string `json:"title"`
	Rows        []Row  `json:"rows"`
	// CommandDigest is the Digest of the sealed command; of no bytes if the action has no command.
	CommandDigest string `json:"commandDigest"`
}

// Digest returns the base64url SHA-256 of data, without padding. Of a canonical document it is the value of the claim
// int, and named intentDigest on the wire.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Canonical returns the document as the canonical JSON of RFC 8785: members in the order of their names, no space, and
// the shortest escapes.
func (d Document) Canonical() []byte {
	b := make([]byte, 0, 512)
	b = text(append(b, `{"action":`...), d.Action)
	b = text(append(b, `,"challengeId":`...), d.ChallengeID)
	b = text(append(b, `,"commandDigest":`...), d.CommandDigest)
	b = strconv.AppendInt(append(b, `,"createdAt":`...), d.CreatedAt, 10)
	b = text(append(b, `,"language":`...), d.Language)
	b = append(b, `,"rows":[`...)
	for i, r := range d.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = text(append(b, `{"key":`...), r.Key)
		b = text(append(b, `,"label":`...), r.Label)
		b = append(text(append(b, `,"value":`...), r.Value), '}')
	}
	b = text(append(b, `],"title":`...), d.Title)
	b = text(append(b, `,"userId":`...), d.UserID)
	return append(strconv.AppendInt(append(b, `,"v":`...), int64(d.Version), 10), '}')
}

const hex = "0123456789abcdef"

// text appends a JSON string by RFC 8785, section 3.2.2.2. Bytes that are no UTF-8 become U+FFFD.
func text(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ':
			b = append(b, c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		}
	}
	return append(b, '"')
}
