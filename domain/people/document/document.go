// Package document owns the documents of users, such as a passport for the identity check (sections 2.8 and 4.11 of
// the interface; decisions D-DOC-01 to D-DOC-06).
//
// The one idea: a document is evidence. Its bytes are kept as they came, sealed under the id of its row, and handed out
// to administrators alone, as a download. What is in them is judged before they are kept: a picture that can be
// decoded, or a PDF.
//
// Start reading at Document, then Service in service.go.
package document

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture"
)

// Area is where the bytes are kept (domain/kit/blob).
const Area = "document"

// The states of a document: after its upload active and waitingApproval, then as it was decided (D-DOC-03).
const (
	Active          = "active"
	DeActive        = "deActive"
	WaitingApproval = "waitingApproval"
	Approved        = "approved"
	Rejected        = "rejected"
)

// Decision gives documents of a user a status and a reason: those of some ids, or all of a type.
type Decision struct {
	UserID         string
	IDs            []string // nil: by Type
	Type           int64
	Status, Reason string
}

// Unclassified is the type of a document that a user uploads without one (D-DOC-02).
const Unclassified = 0

const (
	maxNameChars = 200
	maxTextChars = 2000
	// leastCharge is what the smallest document takes of the quota, so that the quota also bounds their number.
	leastCharge = 32 << 10
)

// PDF is the media type of the documents that are no pictures.
const PDF = "application/pdf"

// MediaTypes are those that a document may have.
var MediaTypes = []string{string(picture.PNG), string(picture.JPEG), string(picture.WebP), string(picture.GIF), PDF}

// Document is what is known of one document. ID, Path and the bytes never change.
type Document struct {
	ID          string
	UserID      string // whose it is
	Name        string // of the file, without a path
	MimeType    string // by its bytes
	Type        int64
	Description *string
	// NameTexts and DescriptionTexts are by language; nil: none.
	NameTexts, DescriptionTexts map[string]string
	Status                      string
	Reason                      *string
	Path                        string // the key of the sealed bytes
	Size                        int64  // of the bytes as they came
	CreatedAt                   time.Time
	// OwnerName and OwnerKYC are of the account whose it is, where a list has them.
	OwnerName, OwnerKYC string
}

// Place is where a document stands in a list.
type Place struct{ ID string }

func (d Document) Mark() Place { return Place{d.ID} }

// charge is what the document takes of its user's quota, in bytes.
func (d Document) charge() int64 { return max(d.Size, leastCharge) }

// check judges what was sent of a document by its field names.
func (d Document) check(nameField string) (problems []fault.Problem) {
	problem := func(field, message string) {
		problems = append(problems, fault.Problem{Field: field, Message: message})
	}
	switch {
	case strings.TrimSpace(d.Name) == "":
		problem(nameField, "must not be blank")
	case utf8.RuneCountInString(d.Name) > maxNameChars || strings.ContainsFunc(d.Name, hidden):
		problem(nameField, "must be 1 to 200 visible characters")
	}
	if !short(d.Description) {
		problem("description", "must be at most 2000 characters")
	}
	if !short(d.Reason) {
		problem("reason", "must be at most 2000 characters")
	}
	return append(problems, checkTexts("descriptionJson", d.DescriptionTexts)...)
}

func short(text *string) bool { return text == nil || utf8.RuneCountInString(*text) <= maxTextChars }

// hidden reports whether a character is not seen, or turns the direction of those behind it.
func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

var languages = []string{"tr", "en", "ar"}

func checkTexts(field string, texts map[string]string) []fault.Problem {
	for language, text := range texts {
		if !slices.Contains(languages, language) || utf8.RuneCountInString(text) > maxTextChars {
			return []fault.Problem{{Field: field, Message: "must be texts of at most 2000 characters by tr, en or ar"}}
		}
	}
	return nil
}

// baseName is a file name without the path that some clients send with it.
func baseName(name string) string {
	return strings.TrimSpace(name[strings.LastIndexAny(name, `/\`)+1:])
}

// extensions are those that the name of a file may have, by the media type of its bytes.
var extensions = map[string][]string{
	string(picture.PNG): {"png"}, string(picture.JPEG): {"jpg", "jpeg", "jfif"}, string(picture.WebP): {"webp"},
	string(picture.GIF): {"gif"}, PDF: {"pdf"},
}

// fits reports whether a name has no extension, or one of its bytes' media type.
func fits(name, mimeType string) bool {
	ext := picture.Extension(name)
	return ext == "" || slices.Contains(extensions[mimeType], ext)
}

// isPDF reports whether bytes begin as PDF does (ISO 32000-2, section 7.5.2). What follows is not judged: a document is
// kept as evidence, sealed, and leaves the service as an attachment only.
func isPDF(content []byte) bool { return bytes.HasPrefix(content, []byte("%PDF-")) }

// Change is a partial update; nil: as it is. Description and Reason are changed where they are sent, also to nil.
type Change struct {
	ID     string
	UserID *string // must be the owner where it is sent
	// Description and Reason point to the next value, which may be none.
	Description, Reason **string
	DescriptionTexts    map[string]string // nil: as they are
	Status              *string
	Type                *int64
}

// decides reports whether it changes what an administrator alone may change (D-DOC-04).
func (c Change) decides() bool { return c.Status != nil || c.Reason != nil || c.Type != nil }

func (c Change) apply(d Document) Document {
	if c.Description != nil {
		d.Description = *c.Description
	}
	if c.Reason != nil {
		d.Reason = *c.Reason
	}
	if c.DescriptionTexts != nil {
		d.DescriptionTexts = c.DescriptionTexts
	}
	if c.Status != nil {
		d.Status = *c.Status
	}
	if c.Type != nil {
		d.Type = *c.Type
	}
	return d
}
