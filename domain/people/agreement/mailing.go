package agreement

import (
	"context"
	"strings"
	"sync"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/office/broadcast"
)

// MailingKind is the kind of job that mails an agreement to every active user with a mail address (D-ADM-03).
const MailingKind = "terms-of-service"

const (
	mailGroup = 800         // recipients between two pauses (section 8 of the interface)
	mailPause = time.Second // between two groups
	// MaxFile is the maximum size of the file, in bytes. As base64 it fits a request of 20 MiB.
	MaxFile = 15 << 20
	// parallel is how many mails are sent in parallel.
	parallel = 4
)

// mailing holds the parameters of the job.
type mailing struct {
	AgreementID int64  `json:"agreementId"`
	Name        string `json:"name,omitempty"`
	Version     string `json:"version,omitempty"`
}

var mailAudience = user.Audience{Statuses: []string{string(user.Active)}, Mail: true}

// Mailing is the kind of job that mails an agreement.
func (s *Service) Mailing(post broadcast.Post) job.Kind {
	m := &mailer{service: s, post: post}
	return job.Kind{Name: MailingKind, About: about, Items: &job.Items{Snapshot: m.recipients, Send: m.send,
		Group: mailGroup, Pause: mailPause, Parallel: parallel}}
}

// about returns the name and the version of the agreement of a job.
func about(j job.Job) string {
	var p mailing
	if j.Into(&p) != nil {
		return ""
	}
	return strings.TrimSpace(p.Name + " " + p.Version)
}

// mailer sends agreements. It caches the file of the last one, which never changes.
type mailer struct {
	service *Service
	post    broadcast.Post

	mu   sync.Mutex
	last agreementFile
}

type agreementFile struct {
	Agreement
	file *message.Attachment
}

func (m *mailer) recipients(ctx context.Context, _ job.Job, after string, limit int) ([]string, error) {
	return m.service.Users.Audience(ctx, mailAudience, after, limit)
}

func (m *mailer) send(ctx context.Context, j job.Job, userID string) ([]commit.Write, error) {
	var p mailing
	if err := j.Into(&p); err != nil {
		return nil, err
	}
	u, err := m.service.Users.Get(ctx, userID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound, err == nil && (!u.Active() || u.Email == ""):
		return nil, job.Skip
	case err != nil:
		return nil, job.Later(err)
	}
	l, err := m.readAgreement(ctx, p.AgreementID)
	if err != nil {
		return nil, job.Later(err)
	}
	language := u.Language
	if _, known := mailTexts[language]; !known {
		language = "en"
	}
	w := mailTexts[language]
	return m.post.Send(ctx, j.ID+"-"+u.ID, u.ID, message.Rendered{Channel: message.MAIL, To: u.Email,
		Subject: broadcast.Line(l.Name), Language: language, Attachment: l.file,
		Text: l.Name + " (" + w.version + " " + l.Version + ")\n\n" + l.Description + "\n\n" + w.attached + "\n"})
}

func (m *mailer) readAgreement(ctx context.Context, id int64) (l agreementFile, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.ID == id {
		return m.last, nil
	}
	if l.Agreement, err = m.service.Store.Get(ctx, id); err != nil {
		return l, err
	}
	content, err := blob.Read(ctx, m.service.Files, l.FilePath, MaxFile)
	if err != nil {
		return l, err
	}
	ext, media := fileType(content)
	l.file = &message.Attachment{Name: "agreement-" + fileName(l.Version) + ext, Type: media, Content: content}
	m.last = l
	return l, nil
}

// fileName returns a version in a form that is allowed in a file name.
func fileName(version string) string {
	name := []rune(version)
	for i, r := range name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-') {
			name[i] = '_'
		}
	}
	return string(name)
}

// mailTexts are the words of a mail by language.
var mailTexts = map[string]struct{ version, attached string }{
	"en": {"version", "The agreement is attached to this mail."},
	"tr": {"sürüm", "Sözleşme bu e-postanın ekindedir."},
	"ar": {"الإصدار", "الاتفاقية مرفقة بهذه الرسالة."},
}
