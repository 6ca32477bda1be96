// Package document stores the documents of users, such as a passport for the identity check (sections 2.8 and 4.11 of
// the interface; decisions D-DOC-01 to D-DOC-06).
//
// The one idea: a document is evidence. Its original bytes are stored, sealed under the id of its row, and only
// administrators can download them. The content is validated first: a picture that can be decoded, or a PDF.
//
// Start reading at Document, then Service in service.go.
package document

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/kit/picture"
)

// Area is the storage area of the bytes (domain/kit/blob).
const Area = "document"

// The statuses of a document: active and waitingApproval after its upload, then the decision (D-DOC-03).
const (
	Active          = "active"
	DeActive        = "deActive"
	WaitingApproval = "waitingApproval"
	Approved        = "approved"
	Rejected        = "rejected"
)

// Decision sets the status and the reason of documents of a user: those with given ids, or all of a type.
type Decision struct {
	UserID         string
	IDs            []string // nil: by Type
	Type           int64
	Status, Reason string
}

// Unclassified is the type of a document that a user uploads without a type (D-DOC-02).
const Unclassified = 0

const (
	maxNameChars = 200
	maxTextChars = 2000
	// leastCharge is the minimum charge of a document, so that the quota also limits the number of documents.
	leastCharge = 32 << 10
)

// PDF is the media type of the documents that are not pictures.
const PDF = "application/pdf"

// MediaTypes are the allowed media types of a document.
var MediaTypes = []string{string(picture.PNG), string(picture.JPEG), string(picture.WebP), string(picture.GIF), PDF}

// Document is the metadata of a document. ID, Path and the bytes never change.
type Document struct {
	ID          string
	UserID      string // the owner
	Name        string // of the file, without a path
	MimeType    string // detected from its bytes
	Type        int64
	Description *string
	// NameTexts and DescriptionTexts are by language; nil: none.
	NameTexts, DescriptionTexts map[string]string
	Status                      string
	Reason                      *string
	Path                        string // the key of the sealed bytes
	Size                        int64  // of the original bytes
	CreatedAt                   time.Time
	// OwnerName and OwnerKYC are fields of the owner's account, if the list includes them.
	OwnerName, OwnerKYC string
}

// Place is the position of a document in a list.
type Place struct{ ID string }

func (d Document) Mark() Place { return Place{d.ID} }

// charge returns the number of bytes that the document takes of its user's quota.
func (d Document) charge() int64 { return max(d.Size, leastCharge) }

// check validates the metadata sent by the client, by its field names.
func (d Document) check(nameField string) (ps fault.Problems) {
	blank := strings.TrimSpace(d.Name) == ""
	ps.Require(!blank, nameField, "must not be blank")
	ps.Require(blank || utf8.RuneCountInString(d.Name) <= maxNameChars && legible.Valid(d.Name), nameField,
		"must be 1 to 200 visible characters")
	ps.Require(short(d.Description), "description", "must be at most 2000 characters")
	ps.Require(short(d.Reason), "reason", "must be at most 2000 characters")
	checkTexts(&ps, "descriptionJson", d.DescriptionTexts)
	return ps
}

func short(text *string) bool { return text == nil || utf8.RuneCountInString(*text) <= maxTextChars }

var languages = []string{"tr", "en", "ar"}

func checkTexts(ps *fault.Problems, field string, texts map[string]string) {
	good := true
	for language, text := range texts {
		good = good && slices.Contains(languages, language) && short(&text)
	}
	ps.Require(good, field, "must be texts of at most 2000 characters by tr, en or ar")
}

// baseName returns a file name without the path that some clients send with it.
func baseName(name string) string {
	return strings.TrimSpace(name[strings.LastIndexAny(name, `/\`)+1:])
}

// extensions are the allowed extensions of a file name, by the media type of the bytes.
var extensions = map[string][]string{
	string(picture.PNG): {"png", "apng"}, string(picture.JPEG): {"jpg", "jpeg", "jfif", "jpe", "mpo"},
	string(picture.WebP): {"webp"}, string(picture.GIF): {"gif"}, PDF: {"pdf"},
}

// fits reports whether a name has no extension, or one that matches the media type of its bytes.
func fits(name, mimeType string) bool {
	ext := picture.Extension(name)
	return ext == "" || slices.Contains(extensions[mimeType], ext)
}

// pdfWithin is the number of bytes before the head of a PDF. Spools, mail programs and scanners write some there, and
// readers look for the head this far.
const pdfWithin = 1024

// isPDF reports whether bytes begin like a PDF (ISO 32000-2, section 7.5.2). The rest is not validated: a document is
// stored as evidence, sealed, and leaves the service only as an attachment.
func isPDF(content []byte) bool {
	const head = "%PDF-"
	return bytes.Contains(content[:min(len(content), pdfWithin+len(head))], []byte(head))
}

// Change is a partial update; nil: unchanged. Description and Reason are changed if they are sent, even to nil.
type Change struct {
	ID     string
	UserID *string // must be the owner if it is sent
	// Description and Reason point to the new value, which may be nil.
	Description, Reason **string
	DescriptionTexts    map[string]string // nil: unchanged
	Status              *string
	Type                *int64
}

// decides reports whether it changes fields that only an administrator may change (D-DOC-04).
func (c Change) decides() bool { return c.Status != nil || c.Reason != nil || c.Type != nil }

func (c Change) apply(d Document) Document {
	admin.Set(&d.Description, c.Description)
	admin.Set(&d.Reason, c.Reason)
	admin.Set(&d.Status, c.Status)
	admin.Set(&d.Type, c.Type)
	if c.DescriptionTexts != nil {
		d.DescriptionTexts = c.DescriptionTexts
	}
	return d
}
