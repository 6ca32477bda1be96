package office

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A mailing continues on another node when its owner is killed (15 s) or drains (1 s), and sends no mail
// twice.
func TestMailingMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	c, m := blackbox.ClusterMails(t, 250, 40*time.Millisecond)
	m.Moves(blackbox.Within(5), "the first mail")
	victim := m.Found(c.Nodes)
	victim.Kill()
	c.Forget(victim)
	m.Moves(blackbox.Within(15), "mail after the kill")
	leaving := m.Found(c.Nodes)
	leaving.Terminate()
	time.Sleep(100 * time.Millisecond) // the mails under way have arrived
	m.Moves(blackbox.Within(0.9), "mail after the drain")
	c.Forget(leaving)
	m.Box.Slow(0)
	m.Ends(c.Nodes[0], blackbox.Within(20), 1)
}

// The job commands, for a job that is cancelled while it sends, and for one that fails because the mail server
// is down.
func TestJobCommandsCancelAndRetry(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		box := s.Relay()
		n := s.Start()
		box.Slow(50 * time.Millisecond)
		m := blackbox.StartMailing(t, s, box, n, 150)
		m.Moves(blackbox.Within(5), "the first mail")
		s.Says(0, "jobs cancel "+m.ID)
		blackbox.Until(t, blackbox.Within(2), "cancelled", func() bool {
			j, ok := m.At(n)
			return ok && j.Status == "cancelled"
		})
		j, _ := m.At(n)
		if j.Skipped == 0 || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total || j.FinishedAt == nil {
			t.Errorf("%+v", j)
		}
		out := s.Says(1, "jobs watch "+m.ID).Out
		if !strings.Contains(out, "cancelled [") || !strings.Contains(out, "skipped") {
			t.Errorf("watch: %q", out)
		}
		s.Says(0, "jobs list --status cancelled", m.ID+"  terms-of-service")
		items := s.Says(0, "jobs items "+m.ID+" --state done").Out
		storetest.Equal(t, strings.Count(items, "\tdone\t"), j.Done, "items are done")
		s.Says(1, "jobs resend "+m.ID)
		for _, command := range []string{"watch", "items", "cancel", "resend"} {
			s.Says(1, "jobs "+command+" nobody", `no job "nobody"`)
		}
		// A crash leaves items with an unknown result; an operator sends them again.
		s.Exec("UPDATE job SET state = 'done', unknown = 3, skipped = skipped - 3 WHERE id = $1", m.ID)
		s.Exec("UPDATE job_item SET state = 4 WHERE job_id = $1 AND n > 147 AND n <= 150", m.ID)
		s.Exec("UPDATE job_item SET state = 5 WHERE job_id = $1 AND state = 0", m.ID)
		box.Slow(0)
		s.Says(1, "jobs cancel "+m.ID, "over: done")
		s.Says(0, "jobs resend "+m.ID)
		s.Says(0, "jobs watch "+m.ID, "terms-of-service done [")
		if again, _ := m.At(n); again.Unknown != 0 || again.Done != j.Done+3 {
			t.Errorf("sent again: %+v, before %+v", again, j)
		}
	})
}
