// Package intent is the document that an approver signs: the words and values of an operation as they were shown
// (D-EXT-09).
//
// The one idea: a document has one spelling, the canonical JSON of RFC 8785, so its SHA-256 names it. The signature of
// a device covers that digest, and the document covers the command. So an approval is evidence of one exact operation.
//
// Start reading at Document.
package intent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Version is the version of the documents that this package writes and reads.
const Version = 1

// The policy option intent.
const (
	Optional = "optional" // a proof without the claim int is accepted
	Required = "required" // a proof without the claim int is refused
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

// ErrNotCanonical reports a text that is not the canonical form of a document of this version.
var ErrNotCanonical = errors.New("intent: not a canonical document of version 1")

// Covers reports whether a canonical document is for an action of a challenge and covers a command. It compares the
// beginning of the text, so a check at every execution costs no parsing.
func Covers(canonical []byte, action, challengeID, commandDigest string) bool {
	head := make([]byte, 0, 256)
	head = text(append(head, `{"action":`...), action)
	head = text(append(head, `,"challengeId":`...), challengeID)
	head = append(text(append(head, `,"commandDigest":`...), commandDigest), `,"createdAt":`...)
	return bytes.HasPrefix(canonical, head)
}

// Parse reads a canonical document. A text that Canonical would write in another way is ErrNotCanonical, so two
// different texts are never the same document.
func Parse(canonical []byte) (d Document, err error) {
	if json.Unmarshal(canonical, &d) != nil || d.Version != Version || string(d.Canonical()) != string(canonical) {
		return Document{}, ErrNotCanonical
	}
	return d, nil
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
