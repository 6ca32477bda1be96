package agreement_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/broadcast"
	"castellan/domain/people/agreement"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

var errDown = errors.New("it is down")

// files keep the content of files by key.
type files struct {
	blob.Store
	content map[string][]byte
	reads   int
	err     error
}

func (f *files) Put(_ context.Context, key string, content []byte) error {
	f.content[key] = content
	return f.err
}

type open struct{ *bytes.Reader }

func (open) Close() error { return nil }

func (f *files) Get(_ context.Context, key string) (blob.File, error) {
	f.reads++
	var r io.ReadSeekCloser = open{bytes.NewReader(f.content[key])}
	return blob.File{Info: blob.Info{Size: int64(len(f.content[key]))}, ReadSeekCloser: r}, f.err
}

// members are the accounts, of which the audience is u1.
type members struct {
	user.Audiences
	err error
	u   user.User
}

func (m *members) Get(_ context.Context, id string) (user.User, error) {
	if id == "gone" {
		return user.User{}, fault.New(fault.RecordNotFound, "none")
	}
	return m.u, m.err
}

func (m *members) Audience(_ context.Context, a user.Audience, after string, limit int) ([]string, error) {
	if after != "u0" || limit != 7 || !a.Mail {
		return nil, errDown
	}
	return []string{"u1"}, m.err
}

func (m *members) CountAudience(_ context.Context, a user.Audience) (int, error) {
	if !a.Mail || len(a.Statuses) != 1 {
		return 0, errDown
	}
	return 9, m.err
}

// mails keep the mails that were sent.
type mails struct {
	keys []string
	sent []message.Rendered
}

func (m *mails) Send(_ context.Context, key string, r message.Rendered) error {
	m.keys, m.sent = append(m.keys, key), append(m.sent, r)
	return nil
}

type desk struct {
	*agreement.Service
	files   *files
	members *members
	jobs    job.Store
	mails   *mails
	send    func(context.Context, job.Job, string) error
	kind    job.Kind
}

var by = audit.By{UserID: "admin"}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db := persistencetest.SQLite(t)
	changes := admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}
	u := user.New("u1", changes.Now())
	u.Email, u.Language = "a@example.com", "tr"
	d := &desk{files: &files{content: map[string][]byte{}}, members: &members{u: u}, jobs: kit.NewJobs(db),
		mails: &mails{}}
	d.Service = &agreement.Service{Store: people.NewAgreements(db), Files: d.files, Users: d.members, Changes: changes,
		Jobs: &job.Service{Store: d.jobs, Changes: changes, Seal: func(plain, _ []byte) []byte { return plain }}}
	d.kind = d.Mailing(broadcast.Post{Senders: map[message.Channel]message.Sender{message.MAIL: d.mails}})
	d.send = func(ctx context.Context, j job.Job, id string) error {
		_, err := d.kind.Items.Send(ctx, j, id)
		return err
	}
	return d
}

func draft(change func(*agreement.Draft)) agreement.Draft {
	d := agreement.Draft{Agreement: agreement.Agreement{Name: "Terms", Description: "All of them", CreatedBy: "admin",
		AcceptRequired: true, CreatedAt: time.UnixMilli(1_700_000_000_000)}, Content: []byte("%PDF-1.7 text")}
	change(&d)
	return d
}

// The mailing sends the agreement with its file to every active user, in the language of the user.
func TestMailing(t *testing.T) {
	d := newDesk(t)
	got, err := d.Publish(t.Context(), by, draft(func(x *agreement.Draft) { x.Mail, x.Version = true, "2/ä b-1.C" }))
	if err != nil || got.JobID == "" || got.Count != 9 {
		t.Fatalf("%+v, %v", got, err)
	}
	j, err := d.jobs.Get(t.Context(), got.JobID)
	storetest.Must(t, err)
	// The store of this test keeps parameters unsealed.
	if about := d.kind.About(j); about != "Terms 2/ä b-1.C" {
		t.Errorf("the subject is %q", about)
	}
	if d.kind.Name != agreement.MailingKind || d.kind.Items.Group != 800 || d.kind.Items.Pause != time.Second {
		t.Errorf("%+v", d.kind)
	}
	if ids, err := d.kind.Items.Snapshot(t.Context(), j, "u0", 7); err != nil || len(ids) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
	for language, words := range map[string]string{"tr": "Terms (sürüm 2/ä b-1.C)\n\nAll of them\n\nSözleşme",
		"en": "Terms (version 2/ä b-1.C)\n\nAll of them\n\nThe agreement is attached", "": "Terms (version ",
		"ar": "Terms (الإصدار "} {
		d.members.u.Language = language
		storetest.Must(t, d.send(t.Context(), j, "u1"))
		m := d.mails.sent[len(d.mails.sent)-1]
		if m.Channel != message.MAIL || m.To != "a@example.com" || m.Subject != "Terms" ||
			!strings.HasPrefix(m.Text, words) ||
			m.Attachment == nil || m.Attachment.Name != "agreement-2___b-1.C.pdf" || m.Attachment.Type != "application/pdf" ||
			string(m.Attachment.Content) != "%PDF-1.7 text" || m.Language == "" || language != "" && m.Language != language {
			t.Errorf("%s: %+v", language, m)
		}
		if d.mails.keys[0] != j.ID+"-u1" {
			t.Error(d.mails.keys)
		}
	}
	if d.files.reads != 1 {
		t.Errorf("the file was read %d times", d.files.reads)
	}
	if err := d.send(t.Context(), j, "gone"); !errors.Is(err, job.Skip) {
		t.Error(err)
	}
	u := d.members.u
	for name, change := range map[string]func(*user.User){"inactive": func(u *user.User) { u.Status = "CLOSED" },
		"no address": func(u *user.User) { u.Email = "" }} {
		if change(&d.members.u); !errors.Is(d.send(t.Context(), j, "u1"), job.Skip) {
			t.Error(name)
		}
		d.members.u = u
	}
	d.members.err = errDown
	if err := d.send(t.Context(), j, "u1"); err == nil || errors.Is(err, job.Skip) || err.Error() == errDown.Error() {
		t.Error(err)
	}
	broken := j
	broken.Params = []byte("{")
	d.members.err = nil
	sent := len(d.mails.sent)
	if err := d.send(t.Context(), broken, "u1"); err == nil || job.IsLater(err) || len(d.mails.sent) != sent {
		t.Errorf("a job without parameters is tried again or sends: %v", err)
	}
	if about := d.kind.About(broken); about != "" {
		t.Errorf("a job without parameters has the subject %q", about)
	}
	unknown := j
	unknown.Params = []byte(`{"agreementId":999}`)
	if err := d.send(t.Context(), unknown, "u1"); !job.IsLater(err) || len(d.mails.sent) != sent {
		t.Errorf("an agreement that cannot be read: %v", err)
	}
	again := newDesk(t)
	again.files.err = errDown
	if _, err = again.Publish(t.Context(), by, draft(func(*agreement.Draft) {})); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if err := again.send(t.Context(), j, "u1"); err == nil || len(again.mails.sent) != 0 {
		t.Error(err)
	}
}
