package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/picture"
)

// The audit names of operations on documents.
const (
	ActionUpload = "DOCUMENT_UPLOAD"
	ActionUpdate = "DOCUMENT_UPDATE"
	ActionRead   = "DOCUMENT_READ"
)

// Query selects documents; a nil field does not filter.
type Query struct {
	UserID *string
	Type   *int64
	Status *string
	Reason *string
	// OwnerKYC is the identity status of the owner.
	OwnerKYC *string
	Pictures bool // only
}

// Store stores the rows of documents. Every method joins the transaction that its context carries. It is safe for
// concurrent use.
type Store interface {
	// Add inserts a document and charges its user's quota. RECORD_LIMIT_REACHED if the quota, in bytes, would be
	// exceeded, also under concurrent calls.
	Add(ctx context.Context, d Document, charge, quota int64) error
	// Used returns how many bytes of the quota a user's documents take.
	Used(ctx context.Context, userID string) (int64, error)
	// Get reads a document. RECORD_NOT_FOUND.
	Get(ctx context.Context, id string) (Document, error)
	// ByPath reads the document whose bytes are stored at a path. RECORD_NOT_FOUND.
	ByPath(ctx context.Context, path string) (Document, error)
	// Change calls f with the document and saves the result, as one step. RECORD_NOT_FOUND.
	Change(ctx context.Context, id string, f func(Document) (Document, error)) error
	// List returns a page of the matching documents, newest first.
	List(ctx context.Context, q Query, p page.Query[Place]) (page.Of[Document], error)
	// Owned returns those of the ids that are documents of a user.
	Owned(ctx context.Context, userID string, ids []string) ([]string, error)
	// Decide sets the status and the reason of documents of one user, and returns the ids of those that changed.
	Decide(ctx context.Context, d Decision) (changed []string, err error)
	// ReferencedPaths returns those of the paths that belong to a row.
	ReferencedPaths(ctx context.Context, paths []string) ([]string, error)
}

// Service manages documents for users and administrators. Besides the errors listed at each method, all methods return
// UNAVAILABLE if the database or the storage fails.
type Service struct {
	Store    Store
	Users    user.Store
	Files    blob.Store
	Pictures *picture.Decoder
	Ring     *keyring.Ring
	Changes  admin.Changes         // without a topic
	Values   func() *parameter.Set // with the codes of documents (D-GEN-17)
	Quota    int64                 // per user, in bytes
	// Follows returns the writes that commit with a new document, in the transaction of ctx; nil: none.
	Follows func(ctx context.Context, by audit.By, d Document) ([]commit.Write, error)
}

// Fields are the request field names used in refusals.
type Fields struct{ Name, NameTexts, Content string }

// Add stores a document: its bytes first, then its row. Add sets the id, the path and the fields detected from the
// bytes; status and reason are those after an upload (D-DOC-03). Errors: INVALID_FIELD with every invalid field,
// RECORD_NOT_FOUND for an unknown user, RECORD_LIMIT_REACHED for a full quota, OVERLOADED.
func (s *Service) Add(ctx context.Context, by audit.By, d Document, content []byte, f Fields) (Document, error) {
	d.Name, d.Status, d.Reason, d.Size = baseName(d.Name), Active, new(WaitingApproval), int64(len(content))
	ps := d.check(f.Name)
	checkTexts(&ps, f.NameTexts, d.NameTexts)
	ps.Require(s.allowsType(d.Type), "type", "is not a document type")
	if err := fault.All(ps); err != nil {
		return Document{}, err
	}
	var err error
	if d.MimeType, err = s.judge(ctx, d.Name, content, f); err != nil {
		return Document{}, err
	}
	if _, err := s.Users.Get(ctx, d.UserID); err != nil {
		return Document{}, err
	}
	used, err := s.Store.Used(ctx, d.UserID)
	if err != nil {
		return Document{}, err
	}
	if used+d.charge() > s.Quota {
		return Document{}, full()
	}
	d.CreatedAt = s.Changes.Now().Truncate(time.Millisecond)
	d.ID, d.Path = id.New(d.CreatedAt), blob.NewKey(Area, "", d.CreatedAt)
	if err := s.Files.Put(ctx, d.Path, s.Ring.Seal(content, []byte(d.ID))); err != nil {
		return Document{}, err
	}
	// If the row is not committed, the sweeper removes the bytes: the outcome may be unknown here.
	err = s.Changes.Do(ctx, by, ActionUpload, func(ctx context.Context) (done admin.Done, err error) {
		done = admin.Done{Target: d.ID, UserID: d.UserID, Detail: d.MimeType}
		if s.Follows != nil {
			done.Writes, err = s.Follows(ctx, by, d)
		}
		if err != nil {
			return done, err
		}
		return done, s.Store.Add(ctx, d, d.charge(), s.Quota)
	})
	if err != nil {
		return Document{}, err
	}
	return d, nil
}

func full() error {
	return fault.New(fault.RecordLimitReached, "the documents of the user have reached their storage limit")
}

var errKind = errors.New("must be a PNG, JPEG, WebP or GIF picture or a PDF")

// judge detects the media type of a file from its bytes alone.
func (s *Service) judge(ctx context.Context, name string, content []byte, f Fields) (mimeType string, err error) {
	switch {
	case picture.Sniff(content) == "" && isPDF(content):
		mimeType = PDF
	case picture.Sniff(content) == "":
		return "", fault.Invalid(f.Content, "%v", cmp.Or(picture.Unsupported(content), errKind))
	default:
		format, err := s.Pictures.Check(ctx, f.Content, content)
		if err != nil {
			return "", err
		}
		mimeType = string(format)
	}
	if !fits(name, mimeType) {
		return "", fault.Invalid(f.Name, "has the extension of another file type")
	}
	return mimeType, nil
}

func (s *Service) allowsType(kind int64) bool {
	return kind == Unclassified || parameter.DocumentType.In(s.Values()).Allows(strconv.FormatInt(kind, 10))
}

// Change changes a document and returns it. With asAdmin, by may change any document. Otherwise by may change own
// documents only, and only their description (D-DOC-04). Errors: INVALID_FIELD, FORBIDDEN, and RECORD_NOT_FOUND, also
// for another user's document.
func (s *Service) Change(ctx context.Context, by audit.By, asAdmin bool, c Change) (d Document, err error) {
	ps := c.apply(Document{Name: "-"}).check("")
	ps.Require(c.Status == nil || parameter.DocumentStatus.In(s.Values()).Allows(*c.Status), "status",
		"is not a document status")
	ps.Require(c.Type == nil || s.allowsType(*c.Type), "type", "is not a document type")
	if err := fault.All(ps); err != nil {
		return d, err
	}
	if !asAdmin && (c.decides() || c.UserID != nil && *c.UserID != by.UserID) {
		return d, fault.New(fault.Forbidden, "only an administrator may do this")
	}
	err = s.Changes.Do(ctx, by, ActionUpdate, func(ctx context.Context) (done admin.Done, err error) {
		err = s.Store.Change(ctx, c.ID, func(old Document) (Document, error) {
			if !asAdmin && old.UserID != by.UserID || c.UserID != nil && *c.UserID != old.UserID {
				return old, fault.New(fault.RecordNotFound, "no such document")
			}
			d = c.apply(old)
			done = admin.Done{Target: d.ID, UserID: d.UserID, Detail: difference(old, d)}
			return d, nil
		})
		return done, err
	})
	return d, err
}

// difference describes a change for investigators: the values of the status and the type, and the names of the other
// fields, because their texts are those of users.
func difference(old, next Document) string {
	detail := "status=" + next.Status
	if old.Status != next.Status {
		detail = "status=" + old.Status + " -> " + next.Status
	}
	if old.Type != next.Type {
		detail += fmt.Sprintf(", type=%d -> %d", old.Type, next.Type)
	}
	old.Status, old.Type = next.Status, next.Type
	if fields := admin.Differ(old, next); fields != "" {
		detail += ", " + fields
	}
	return detail
}

// Reference identifies a document by its id, its path or both.
type Reference struct{ ID, Path string }

// File opens the original bytes of a document and writes an audit row. RECORD_NOT_FOUND.
func (s *Service) File(ctx context.Context, by audit.By, r Reference) (d Document, content []byte, err error) {
	if r.ID != "" {
		d, err = s.Store.Get(ctx, r.ID)
	} else {
		d, err = s.Store.ByPath(ctx, r.Path)
	}
	if err == nil && r.Path != "" && d.Path != r.Path {
		err = fault.New(fault.RecordNotFound, "no such document")
	}
	if err != nil {
		return d, nil, err
	}
	if content, err = s.Content(ctx, d); err != nil {
		return d, nil, err
	}
	err = s.Changes.Do(ctx, by, ActionRead, func(context.Context) (admin.Done, error) {
		return admin.Done{Target: d.ID, UserID: d.UserID}, nil
	})
	return d, content, err
}

// Content opens the original bytes of a document without an audit row. A caller that shows them to other users writes
// one.
func (s *Service) Content(ctx context.Context, d Document) ([]byte, error) {
	content, err := blob.Read(ctx, s.Files, d.Path, d.Size+sealOverhead)
	if err == nil {
		content, err = s.Ring.Open(content, []byte(d.ID))
	}
	if err != nil {
		return nil, fmt.Errorf("document %s: %w", d.ID, err)
	}
	return content, nil
}

// sealOverhead is more than sealing adds to the bytes.
const sealOverhead = 1 << 10
