package agreement

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
)

// Area is the storage area of agreement files.
const Area = "agreement"

// Service publishes agreements. It is safe for concurrent use.
type Service struct {
	Store Store
	Files blob.Store
	Users interface {
		Get(ctx context.Context, id string) (user.User, error)
		user.Audiences
	}
	Jobs    *job.Service
	Changes admin.Changes // without a topic: no node caches agreements
}

// Draft is an agreement to publish.
type Draft struct {
	Agreement
	Content []byte
	Mail    bool // mail it to every active user
}

// Published is the result of publishing a draft.
type Published struct {
	Agreement
	JobID string // of the mailing; "" without one
	Count int    // its current number of recipients
}

// Publish stores the file, adds the agreement and starts its mailing. Without a version it gets the one after the
// newest of its name. INVALID_FIELD; RECORD_NOT_FOUND for an unknown creator; RECORD_ALREADY_EXIST for an existing
// version.
func (s *Service) Publish(ctx context.Context, by audit.By, d Draft) (out Published, err error) {
	if v := strings.TrimSpace(d.Version); v != "" { // a blank one is refused
		d.Version = v
	}
	d.Name = strings.TrimSpace(d.Name)
	form := d.Agreement
	if form.Version == "" {
		form.Version = "1"
	}
	ext, _ := fileType(d.Content)
	if err := form.Check(); err != nil {
		return out, err
	}
	if ext == "" {
		return out, fault.Invalid("base64String", "must be a PDF, a Word document or plain text")
	}
	if _, err := s.Users.Get(ctx, d.CreatedBy); err != nil {
		return out, err
	}
	d.FilePath = blob.NewKey(Area, ext, s.Changes.Now())
	if err := s.Files.Put(ctx, d.FilePath, d.Content); err != nil {
		return out, fmt.Errorf("store an agreement: %w", err)
	}
	changes := s.Changes
	changes.Lock = s.Store.Lock
	err = changes.Do(ctx, by, "AGREEMENT_ADD", func(ctx context.Context) (done admin.Done, err error) {
		if d.Version == "" {
			if d.Version, err = s.following(ctx, d.Name); err != nil {
				return done, err
			}
		}
		if d.ID, err = s.Store.Add(ctx, d.Agreement); err != nil {
			return done, err
		}
		id := strconv.FormatInt(d.ID, 10)
		out.Agreement = d.Agreement
		done = admin.Done{Target: id, Detail: "version " + d.Version}
		if d.Mail {
			var j job.Job
			j, _, err = s.Jobs.Start(ctx, by, job.Request{Kind: MailingKind, Key: id,
				Params: mailing{d.ID, d.Name, d.Version}})
			out.JobID, done.Detail = j.ID, done.Detail+", mailing "+j.ID
		}
		return done, err
	})
	if err == nil && d.Mail {
		out.Count, err = s.Users.CountAudience(ctx, mailAudience)
	}
	return out, err
}

func (s *Service) following(ctx context.Context, name string) (string, error) {
	last, err := s.Store.Last(ctx, name)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return "1", nil
	}
	return next(last.Version), err
}

// Of lists agreements for a user. RECORD_NOT_FOUND if the user does not exist.
func (s *Service) Of(ctx context.Context, q Query) ([]Agreement, error) {
	if _, err := s.Users.Get(ctx, q.UserID); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, q)
}

const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

// fileType detects the extension and media type of a file from its bytes (D-GEN-12); "" for an unsupported type.
func fileType(content []byte) (ext, media string) {
	switch http.DetectContentType(content) {
	case "application/pdf":
		return ".pdf", "application/pdf"
	case "text/plain; charset=utf-8":
		return ".txt", "text/plain; charset=utf-8"
	case "application/zip":
		if bytes.Contains(content, []byte("word/document.xml")) {
			return ".docx", docx
		}
	}
	return "", ""
}
