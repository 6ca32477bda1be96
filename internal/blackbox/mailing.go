package blackbox

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// AJob is a job as the interface shows it.
type AJob struct {
	ID, Type, Status                      string
	Done, Total, Failed, Unknown, Skipped int
	StartedAt, FinishedAt, Error          *string
}

func (j AJob) Over() bool {
	return j.Status == "done" || j.Status == "failed" || j.Status == "cancelled"
}

// Mailing is a job that mails an agreement to many, and the mail server that receives it.
type Mailing struct {
	*Site
	T    testing.TB
	Box  *Postbox
	ID   string
	Who  Headers
	Many int
}

// Bulk makes accounts with a mail address each, as copies of a seeded one.
func Bulk(t *testing.T, s *Site, n int) {
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

// StartMailing makes a node mail an agreement to n new accounts and the seeded ones.
func StartMailing(t *testing.T, s *Site, box *Postbox, n *Node, many int) *Mailing {
	t.Helper()
	Bulk(t, s, many)
	m := &Mailing{Site: s, T: t, Box: box, Who: Admin(t, s, n), Many: s.Count("users WHERE email <> ''")}
	for _, d := range box.Deliveries() { // of the login
		if strings.HasPrefix(d.To, "bulk") {
			t.Fatalf("mail before the mailing: %+v", d)
		}
	}
	m.ID = n.Ok(t, "POST", "/admin/terms-of-service", map[string]any{"base64String": "JVBERi0xLjQKJSVFT0YK",
		"name": "Terms", "description": "New", "sendEmail": true, "userId": "BULK1000001"}, m.Who).At(t, "data", "id")
	return m
}

// At reads the job at a node; ok is false if the node does not answer.
func (m *Mailing) At(n *Node) (j AJob, ok bool) {
	a, err := n.Try("GET", "/admin/jobs/"+m.ID, nil, m.Who)
	if err != nil || a.Status != 200 {
		return j, false
	}
	a.Read(m.T, &j)
	return j, true
}

// Moves waits until more mail arrives.
func (m *Mailing) Moves(within time.Duration, what string) {
	m.T.Helper()
	before := m.Box.Taken()
	Until(m.T, within, what, func() bool { return m.Box.Taken() > before })
}

// Over waits for the end of the job.
func (m *Mailing) Over(n *Node, within time.Duration) (j AJob) {
	m.T.Helper()
	Until(m.T, within, "the job over", func() (ok bool) {
		j, ok = m.At(n)
		return ok && j.Over()
	})
	return j
}

// Ends waits for the end of the job and checks its accounts: no account gets two mails, and every account is
// counted.
func (m *Mailing) Ends(n *Node, within time.Duration, kills int) {
	t := m.T
	t.Helper()
	j := m.Over(n, within)
	got := map[string]int{}
	for _, d := range m.Box.Deliveries() {
		if !d.Refused && strings.HasPrefix(d.To, "bulk") {
			got[d.To]++
		}
	}
	for to, times := range got {
		if times > 1 {
			t.Errorf("%s was mailed %d times", to, times)
		}
	}
	if j.Status != "done" || j.Total != m.Many || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total || j.Failed != 0 ||
		j.Unknown > 20*kills {
		t.Errorf("after %d kills: %+v, want %d in total", kills, j, m.Many)
	}
	if least := j.Done - (m.Many - len(got)) + j.Unknown; len(got) < m.Many-2-j.Unknown || len(got) > m.Many || least < 0 {
		t.Errorf("%d got mail of %d: %+v", len(got), m.Many, j)
	}
	t.Logf("%d kills: %d done, %d unknown of %d", kills, j.Done, j.Unknown, j.Total)
}

// Owner returns the node that runs the job; nil while it is unknown.
func (m *Mailing) Owner(nodes []*Node) *Node {
	for _, n := range nodes {
		var status struct {
			Data struct{ Activations map[string]int }
		}
		if a, err := n.Try("GET", "/admin/cluster", nil, m.Who); err == nil && a.Status == 200 {
			if a.Read(m.T, &status); status.Data.Activations["job"] > 0 {
				return n
			}
		}
	}
	return nil
}

func (m *Mailing) Found(nodes []*Node) (owner *Node) {
	m.T.Helper()
	Until(m.T, Within(5), "the owner of the job", func() bool { owner = m.Owner(nodes); return owner != nil })
	return owner
}

// ClusterMails starts a cluster of three whose mailing is under way, with a slow mail server.
func ClusterMails(t *testing.T, many int, slow time.Duration) (*Cluster, *Mailing) {
	t.Helper()
	s := NewSite(t, "postgres")
	s.Set("FILES_FOLDER=" + t.TempDir()) // all nodes share one folder
	box := s.Relay()
	c := s.Cluster()
	for range 3 {
		c.Join()
	}
	box.Slow(slow)
	return c, StartMailing(t, s, box, c.Nodes[0], many)
}
