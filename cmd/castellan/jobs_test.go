package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// aJob is what the interface shows of a job.
type aJob struct {
	ID, Type, Status                      string
	Done, Total, Failed, Unknown, Skipped int
	StartedAt, FinishedAt, Error          *string
}

func (j aJob) over() bool {
	return j.Status == "done" || j.Status == "failed" || j.Status == "cancelled"
}

// mailing is the job that mails an agreement to many, and the server that gets the mail.
type mailing struct {
	*blackbox.Site
	t    testing.TB
	box  *blackbox.Postbox
	id   string
	who  blackbox.Headers
	many int
}

// bulk makes accounts with a mail address each, as copies of a seeded one.
func bulk(t *testing.T, s *blackbox.Site, n int) {
	t.Helper()
	of := map[string]string{"id": "'BULK' || k", "email": "'bulk' || k || '@example.test'", "phone": "'+90500' || k"}
	var names, values []string
	for _, name := range s.Columns("users") {
		value := "u." + name
		if v := of[name]; v != "" {
			value = v
		}
		names, values = append(names, name), append(values, value)
	}
	s.Exec(fmt.Sprintf(`INSERT INTO users (%s)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT %s FROM (SELECT CAST(1000000 + i AS TEXT) AS k FROM n) AS m, users AS u WHERE u.email = '%s'`,
		strings.Join(names, ", "), n, strings.Join(values, ", "), s.Seeded("user").Mail))
}

// startMailing has a node mail an agreement to n accounts and those that are seeded.
func startMailing(t *testing.T, s *blackbox.Site, box *blackbox.Postbox, n *blackbox.Node, many int) *mailing {
	t.Helper()
	bulk(t, s, many)
	m := &mailing{Site: s, t: t, box: box, who: admin(t, s, n), many: s.Count("users WHERE email <> ''")}
	for _, d := range box.Deliveries() { // of the login
		if strings.HasPrefix(d.To, "bulk") {
			t.Fatalf("mail before the mailing: %+v", d)
		}
	}
	var started struct{ Data struct{ ID string } }
	n.Ok(t, "POST", "/admin/terms-of-service", map[string]any{"base64String": "JVBERi0xLjQKJSVFT0YK", "name": "Terms",
		"description": "New", "sendEmail": true, "userId": "BULK1000001"}, m.who).Read(t, &started)
	m.id = started.Data.ID
	return m
}

// at asks a node for the job; false where it does not answer.
func (m *mailing) at(n *blackbox.Node) (j aJob, ok bool) {
	a, err := n.Try("GET", "/admin/jobs/"+m.id, nil, m.who)
	if err != nil || a.Status != 200 {
		return j, false
	}
	a.Read(m.t, &j)
	return j, true
}

// moves waits until more mail arrives than has so far.
func (m *mailing) moves(within time.Duration, what string) {
	m.t.Helper()
	before := m.box.Taken()
	blackbox.Until(m.t, within, what, func() bool { return m.box.Taken() > before })
}

// ends waits for the end and holds the job to its accounts: nobody is mailed twice,
// and everybody is accounted for.
func (m *mailing) ends(n *blackbox.Node, within time.Duration, kills int) {
	t := m.t
	t.Helper()
	var j aJob
	blackbox.Until(t, within, "the job over", func() bool {
		var ok bool
		j, ok = m.at(n)
		return ok && j.over()
	})
	got := map[string]int{}
	for _, d := range m.box.Deliveries() {
		if !d.Refused && strings.HasPrefix(d.To, "bulk") {
			got[d.To]++
		}
	}
	for to, times := range got {
		if times > 1 {
			t.Errorf("%s was mailed %d times", to, times)
		}
	}
	if j.Status != "done" || j.Total != m.many || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total || j.Failed != 0 ||
		j.Unknown > 20*kills {
		t.Errorf("after %d kills: %+v, want %d in total", kills, j, m.many)
	}
	if least := j.Done - (m.many - len(got)) + j.Unknown; len(got) < m.many-2-j.Unknown || len(got) > m.many || least < 0 {
		t.Errorf("%d got mail of %d: %+v", len(got), m.many, j)
	}
	t.Logf("%d kills: %d done, %d unknown of %d", kills, j.Done, j.Unknown, j.Total)
}

// owner is the node at which the job lives; nil while it is not known.
func (m *mailing) owner(nodes []*blackbox.Node) *blackbox.Node {
	for _, n := range nodes {
		var status struct {
			Data struct{ Activations map[string]int }
		}
		if a, err := n.Try("GET", "/admin/cluster", nil, m.who); err == nil && a.Status == 200 {
			if a.Read(m.t, &status); status.Data.Activations["job"] > 0 {
				return n
			}
		}
	}
	return nil
}

func (m *mailing) found(nodes []*blackbox.Node) (owner *blackbox.Node) {
	m.t.Helper()
	blackbox.Until(m.t, within(5), "the owner of the job", func() bool { owner = m.owner(nodes); return owner != nil })
	return owner
}

// clusterMails is a cluster of three whose mailing is on its way, a mail taking some time.
func clusterMails(t *testing.T, many int, slow time.Duration) (*blackbox.Cluster, *mailing) {
	t.Helper()
	s := blackbox.NewSite(t, "postgres")
	s.Set("FILES_FOLDER=" + t.TempDir()) // all nodes see one folder
	box := s.Relay()
	c := s.Cluster()
	for range 3 {
		c.Join()
	}
	box.Slow(slow)
	return c, startMailing(t, s, box, c.Nodes[0], many)
}

// A mailing goes on at another node when its owner is killed (15 s) or drains (1 s),
// and mails nobody twice.
func TestJobMoves(t *testing.T) {
	t.Parallel()
	c, m := clusterMails(t, 250, 40*time.Millisecond)
	m.moves(within(5), "the first mail")
	victim := m.found(c.Nodes)
	victim.Kill()
	c.Forget(victim)
	m.moves(within(15), "mail after the kill")
	leaving := m.found(c.Nodes)
	leaving.Terminate()
	time.Sleep(100 * time.Millisecond) // what was being sent has arrived
	m.moves(within(0.9), "mail after the drain")
	c.Forget(leaving)
	m.box.Slow(0)
	m.ends(c.Nodes[0], within(20), 1)
}

// The commands, on a job that is cancelled while it sends, and on one that fails
// because the mail server is away.
func TestJobCommands(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		box := s.Relay()
		n := s.Start()
		run := func(code int, args ...string) string {
			t.Helper()
			got := s.Command("", append([]string{"jobs"}, args...)...)
			if got.Code != code {
				t.Fatalf("jobs %v: exit %d, want %d: %s%s", args, got.Code, code, got.Out, got.ErrOut)
			}
			return got.Out + got.ErrOut
		}
		box.Slow(50 * time.Millisecond)
		m := startMailing(t, s, box, n, 150)
		m.moves(within(5), "the first mail")
		began := time.Now()
		run(0, "cancel", m.id)
		blackbox.Until(t, within(2), "cancelled", func() bool { j, ok := m.at(n); return ok && j.Status == "cancelled" })
		t.Logf("cancelled after %v", time.Since(began))
		j, _ := m.at(n)
		if j.Skipped == 0 || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total || j.FinishedAt == nil {
			t.Errorf("%+v", j)
		}
		if out := run(1, "watch", m.id); !strings.Contains(out, "cancelled [") || !strings.Contains(out, "skipped") {
			t.Errorf("watch: %q", out)
		}
		if out := run(0, "list", "--status", "cancelled"); !strings.HasPrefix(out, m.id+"  terms-of-service") {
			t.Errorf("list: %q", out)
		}
		if done := strings.Count(run(0, "items", m.id, "--state", "done"), "\tdone\t"); done != j.Done {
			t.Errorf("%d items are done, want %d", done, j.Done)
		}
		run(1, "resend", m.id)
		for _, command := range []string{"watch", "items", "cancel", "resend"} {
			if out := run(1, command, "nobody"); !strings.Contains(out, `no job "nobody"`) {
				t.Errorf("%s: %q", command, out)
			}
		}
		// A crash leaves items of which nobody knows; a person has them sent again.
		s.Exec("UPDATE job SET state = 'done', unknown = 3, skipped = skipped - 3 WHERE id = $1", m.id)
		s.Exec("UPDATE job_item SET state = 4 WHERE job_id = $1 AND n > 147 AND n <= 150", m.id)
		s.Exec("UPDATE job_item SET state = 5 WHERE job_id = $1 AND state = 0", m.id)
		box.Slow(0)
		run(0, "resend", m.id)
		if out := run(0, "watch", m.id); !strings.Contains(out, "terms-of-service done [") {
			t.Errorf("watch: %q", out)
		}
		if again, _ := m.at(n); again.Unknown != 0 || again.Done != j.Done+3 {
			t.Errorf("sent again: %+v, before %+v", again, j)
		}
	})
}
